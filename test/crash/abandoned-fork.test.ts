import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { append, create, ids } from "../../src/conformance/expect.ts";
import { thisProcess } from "../../src/store/files/process-identity.ts";
import type { FilesStore } from "../../src/store/files/store.ts";
import { openFilesStore } from "../../src/store/files/store.ts";

const scope = { agentId: "main" };
const init = { key: "agent:main:session:copy", sessionId: "copy", cwd: "/" };
let root = "";
let store: FilesStore;

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), "skein-abandoned-"));
  store = await openFilesStore({ root });
  await create(store, scope, "s");
  await append(store, scope, "s", "a", "b");
});
afterEach(async () => {
  await store.close();
  rmSync(root, { recursive: true, force: true });
});

/** As a process leaves it that dies while it forks: the files are made or not. */
async function abandoned(isWritten: boolean, maker: object): Promise<void> {
  await store.sessions.fork(scope, "s", "a", init);
  const first = JSON.stringify({ cwd: "/", meta: {}, maker });
  const db = new DatabaseSync(join(root, "work.db"));
  db.prepare("UPDATE sessions SET state = 'forking', first = ? WHERE session_id = 'copy'").run(first);
  db.close();
  if (!isWritten)
    for (const end of ["log.jsonl", "jsonl"]) rmSync(join(root, `agents/main/sessions/copy.${end}`));
}

const dead = () => ({ ...thisProcess(), pid: spawnSync("true").pid, started: "0" });

describe("a fork whose process died", () => {
  test("[CRS5] gives its names back where it wrote nothing", async () => {
    await abandoned(false, dead());
    expect((await store.sessions.fork(scope, "s", "b", init)).leafId).toBe("b");
    expect(await ids(store, scope, "copy")).toEqual(["a", "b"]);
  });

  test("[CRS5] is there where it had written everything", async () => {
    await abandoned(true, dead());
    expect(await store.sessions.get(scope, "copy")).toBeNull();
    await expect(store.sessions.fork(scope, "s", "b", init)).rejects.toMatchObject({ code: "conflict" });
    expect(await ids(store, scope, "copy")).toEqual(["a"]);
  });

  test("[CRS5] is left alone while its process lives", async () => {
    await abandoned(false, thisProcess());
    await expect(store.sessions.fork(scope, "s", "b", init)).rejects.toMatchObject({ code: "conflict" });
    expect(await store.sessions.get(scope, "copy")).toBeNull();
  });
});
