import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { FilesStore } from "../../src/entry-store.ts";
import { createStore } from "../../src/entry-store.ts";
import { SessionTree } from "../../src/index.ts";
import { workDbName } from "../../src/store/files/layout.ts";
import { thisProcess } from "../../src/store/files/process-identity.ts";
import { WorkDb } from "../../src/store/files/work-db.ts";
import { SimStore } from "../support/sim-store.ts";
import { append, create, ids, listed, said } from "../support/store-calls.ts";

const scope = { agentId: "main" };
const init = { key: "agent:main:session:copy", sessionId: "copy", cwd: "/" };
let root = "";
let store: FilesStore;

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), "skein-abandoned-"));
  store = await createStore({ dir: root });
  await create(store, scope, "s");
  await append(store, scope, "s", "a", "b");
});
afterEach(async () => {
  await store.close();
  rmSync(root, { recursive: true, force: true });
});

/** Creates the state that a process leaves behind when it dies during a fork, with or without the files. */
async function abandoned(isWritten: boolean, maker: object, claimedAt?: number): Promise<void> {
  await store.sessions.fork(scope, "s", "a", init);
  const first = JSON.stringify({ cwd: "/", meta: {}, maker, claimedAt });
  const db = new DatabaseSync(join(root, "work.db"), { timeout: 30_000 });
  // The session was created long ago.
  const sql = "UPDATE sessions SET state = 'forking', first = ?, created_at = 0 WHERE session_id = 'copy'";
  db.prepare(sql).run(first);
  db.close();
  if (!isWritten)
    for (const end of ["log.jsonl", "jsonl"]) rmSync(join(root, `agents/main/sessions/copy.${end}`));
}

const dead = () => ({ ...thisProcess(), pid: spawnSync("true").pid, started: "0" });

describe("a fork whose process died", () => {
  test("releases its names if it wrote nothing", async () => {
    await abandoned(false, dead());
    expect((await store.sessions.fork(scope, "s", "b", init)).leafId).toBe("b");
    expect(await ids(store, scope, "copy")).toEqual(["a", "b"]);
  });

  test("exists if it had written everything", async () => {
    await abandoned(true, dead());
    expect(await store.sessions.get(scope, "copy")).toBeNull();
    await expect(store.sessions.fork(scope, "s", "b", init)).rejects.toMatchObject({ code: "conflict" });
    expect(await ids(store, scope, "copy")).toEqual(["a"]);
  });

  test("is left alone while its process is alive", async () => {
    await abandoned(false, thisProcess(), 0);
    await (await createStore({ dir: root })).close();
    await expect(store.sessions.fork(scope, "s", "b", init)).rejects.toMatchObject({ code: "conflict" });
    expect(await store.sessions.get(scope, "copy")).toBeNull();
  });

  test.each([
    ["left alone", () => Date.now() + 3_600_000, "conflict"],
    ["ended", () => 0, undefined],
  ])("of another host is %s by the time of its claim", async (_, claimedAt, code) => {
    await abandoned(false, { ...thisProcess(), host: "elsewhere" }, claimedAt());
    await (await createStore({ dir: root })).close();
    const refusal = await store.sessions.fork(scope, "s", "b", init).then(
      () => undefined,
      (error: { readonly code: string }) => error.code,
    );
    expect(refusal).toBe(code);
  });

  test("records when it was claimed, however old the session is", async () => {
    const begun = Date.now();
    const tree = SessionTree.create({ cwd: "/", id: "old" }, { clock: { now: () => 0 } });
    await store.sessions.adopt(scope, init, tree);
    const db = new DatabaseSync(join(root, "work.db"), { timeout: 30_000 });
    const row = db.prepare("SELECT first, created_at FROM sessions WHERE session_id = 'copy'").get();
    db.close();
    expect(row?.created_at).toBe(0);
    expect(JSON.parse(String(row?.first)).claimedAt).toBeGreaterThanOrEqual(begun);
  });

  test("[ST26] a session adopted while another process takes over its claim is kept", async () => {
    const sim = new SimStore();
    const ours = await sim.open();
    const other = new WorkDb(join(sim.databases, workDbName));
    sim.disk.fault = () => {
      for (const { uid } of other.inState("forking")) other.release(uid);
      return null;
    };
    const tree = SessionTree.create({ cwd: "/", id: "theirs" }, { clock: { now: () => 0 } });
    tree.append(said("kept"), { id: "kept" });
    await ours.sessions.adopt(scope, { key: "agent:main:main", sessionId: "ours", cwd: "/" }, tree);
    expect(await listed(ours, scope)).toEqual(["ours"]);
    expect(await ids(ours, scope, "ours")).toEqual(["kept"]);
    other.close();
    await sim.dispose();
  });
});
