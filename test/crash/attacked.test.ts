import { appendFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, unlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import type { Scope } from "../../src/entry-store.ts";
import { createStore } from "../../src/entry-store.ts";
import { SimStore } from "../support/sim-store.ts";
import { append, create, ids, refused, said } from "../support/store-calls.ts";

/** Each of these tests covers a defect that was found by attacking the store. */

const scope: Scope = { userId: "alice", agentId: "main" };
const folders: string[] = [];
afterAll(() => {
  for (const each of folders) rmSync(each, { recursive: true, force: true });
});

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "skein-attacked-"));
  folders.push(made);
  return made;
}

const sessionsOf = (root: string) => join(root, "users/alice/agents/main/sessions");

describe("former attacks", () => {
  test("[ST18] an invalid user or agent in the scope is refused before anything is claimed, and affects no one else", async () => {
    const root = folder();
    const store = await createStore({ dir: root });
    await create(store, scope, "s");
    const key = "agent:main:main";
    await refused("invalid_user_id", () =>
      store.sessions.create({ userId: "x".repeat(300), agentId: "main" }, { key, cwd: "/" }),
    );
    await refused("invalid_user_id", () =>
      store.sessions.create({ userId: "", agentId: "main" }, { key, cwd: "/" }),
    );
    await refused("invalid_user_id", () => store.sessions.list({ userId: "" }, {}));
    await refused("invalid_agent_id", () =>
      store.sessions.create({ agentId: "../../evil" }, { key: "global", cwd: "/" }),
    );
    await refused("invalid_agent_id", () => store.blobs.put({ agentId: "../../evil" }, new Uint8Array(1)));
    expect(() => store.watch.subscribe({ userId: "" }, () => undefined)).toThrow("empty");
    expect((await store.sessions.list(scope, {})).sessions).toHaveLength(1);
    await store.close();
    await (await createStore({ dir: root })).close();
  });

  test("[SR1] endless words and text without blanks can be searched", async () => {
    const store = await createStore({ dir: folder() });
    await create(store, scope, "s");
    for (const text of ["世界".repeat(70_000), "a1".repeat(100_000), "x".repeat(3_000_000), "needle"]) {
      await store.sessions.append(scope, "s", [{ draft: said(text) }]);
    }
    await store.upkeep.bringUpIndex();
    expect((await store.search.search(scope, { text: "needle" })).hits).toHaveLength(1);
    expect((await store.search.search(scope, { text: "世界世" })).hits).toHaveLength(1);
    await store.close();
  });

  test("[FS9] one session that cannot be read does not hide the others", async () => {
    const root = folder();
    const store = await createStore({ dir: root });
    await create(store, scope, "good");
    await create(store, scope, "bad");
    await store.close();
    unlinkSync(join(root, "index.db"));
    for (const ending of ["-wal", "-shm"]) rmSync(join(root, `index.db${ending}`), { force: true });
    for (const name of ["bad.log.jsonl", "bad.jsonl"]) unlinkSync(join(sessionsOf(root), name));
    mkdirSync(join(sessionsOf(root), "bad.log.jsonl"));
    const reported: string[] = [];
    const again = await createStore({
      dir: root,
      report: ({ kind, file }) => reported.push(`${kind} ${file}`),
    });
    await again.sessions.list(scope, {});
    const page = await again.sessions.list(scope, {});
    expect(reported).toEqual([
      `rebuilt ${join(root, "index.db")}`,
      `not_indexed ${join(sessionsOf(root), "bad.log.jsonl")}`,
    ]);
    expect(page.sessions.map((each) => each.sessionId)).toEqual(["good"]);
    expect(page.behind).toBe(1);
    await again.close();
  });

  test("[FS7] a missing log is restored from its second name; a shortened working set is not mistaken for it", async () => {
    const root = folder();
    const store = await createStore({ dir: root });
    await create(store, scope, "s");
    await append(store, scope, "s", "a", "b");
    await create(store, scope, "cut");
    await append(store, scope, "cut", "a", "b");
    await store.sessions.append(scope, "cut", [
      { draft: { type: "compaction", summary: "S", firstKeptEntryId: "b", tokensBefore: 1 } },
    ]);
    await store.close();
    for (const name of ["s", "cut"]) unlinkSync(join(sessionsOf(root), `${name}.log.jsonl`));
    const again = await createStore({ dir: root });
    expect(await ids(again, scope, "s")).toEqual(["a", "b"]);
    await refused("unreadable_file", () => append(again, scope, "cut", "c"));
    expect(readdirSync(sessionsOf(root))).toContain("cut.jsonl");
    await again.close();
  });

  test("[FS8] half a line of another program in the middle of our writes loses none of ours", async () => {
    const root = folder();
    const store = await createStore({ dir: root });
    await create(store, scope, "s");
    await append(store, scope, "s", "a");
    appendFileSync(join(sessionsOf(root), "s.jsonl"), '{"type":"message","id":"p');
    await append(store, scope, "s", "b");
    await append(store, scope, "s", "c");
    expect(await ids(store, scope, "s")).toEqual(["a", "b", "c"]);
    expect((await store.sessions.context(scope, "s"))?.entryIds).toEqual(["a", "b", "c"]);
    await store.close();
  });

  test("[ST12] metadata and its version are the same after a cut and a reopen", async () => {
    const sim = new SimStore();
    const store = await sim.open();
    await create(store, scope, "s");
    await append(store, scope, "s", "a");
    await store.sessions.patch(scope, "s", { model: "m1" });
    await store.sessions.branch(scope, "s", "a");
    await store.sessions.patch(scope, "s", { model: "m2" });
    await append(store, scope, "s", "b");
    await store.sessions.append(scope, "s", [
      { draft: { type: "compaction", summary: "S", firstKeptEntryId: "a", tokensBefore: 1 } },
    ]);
    const before = await store.sessions.get(scope, "s");
    await store.close();
    const again = await sim.open();
    expect(await again.sessions.get(scope, "s")).toEqual(before);
    await sim.dispose();
  });

  test("[FS2] a create and a label that could not be written do not exist, and can be retried", async () => {
    const sim = new SimStore();
    const store = await sim.open();
    await create(store, scope, "s", { label: "old" });
    sim.disk.fault = (op) => (op === "write" ? { error: "ENOSPC" } : null);
    await refused("write_failed", () => create(store, scope, "new"));
    await refused("write_failed", () => store.sessions.patch(scope, "s", { label: "new" }));
    sim.disk.fault = () => null;
    expect(await store.sessions.get(scope, "new")).toBeNull();
    await create(store, scope, "new", { label: "new" });
    const found = await store.sessions.find(scope, { by: "label", label: "old", agentId: "main" });
    expect(found.map((each) => each.sessionId)).toEqual(["s"]);
    await sim.dispose();
  });

  test("[ST15] two concurrent removals and a write: one removal, no crash, nothing lost", async () => {
    const store = await createStore({ dir: folder() });
    for (let round = 0; round < 20; round++) {
      const name = `s${round}`;
      await create(store, scope, name);
      await append(store, scope, name, "a");
      const writes = ["b", "c"].map((id) => append(store, scope, name, id).then(() => id));
      const results = await Promise.allSettled([
        ...writes,
        store.sessions.remove(scope, name),
        store.sessions.remove(scope, name),
      ]);
      const kept = results
        .slice(0, 2)
        .flatMap((each) => (each.status === "fulfilled" ? [each.value as string] : []));
      expect(results.slice(2)).toMatchObject([{ value: true }, { value: false }]);
      await store.sessions.restore(scope, name);
      expect(await ids(store, scope, name)).toEqual(expect.arrayContaining(["a", ...kept]));
    }
    await store.close();
  });

  test("[ST15] removing and restoring during reads loses nothing", async () => {
    const root = folder();
    const [ours, theirs] = [await createStore({ dir: root }), await createStore({ dir: root })];
    await create(ours, scope, "s");
    await append(ours, scope, "s", "a", "b");
    let done = false;
    const looking = (async () => {
      while (!done) {
        await theirs.sessions.get(scope, "s").catch(() => null);
        await theirs.sessions.list(scope, {});
        await new Promise((resolve) => setImmediate(resolve));
      }
    })();
    for (let round = 0; round < 60; round++) {
      await ours.sessions.remove(scope, "s");
      await ours.sessions.restore(scope, "s");
    }
    done = true;
    await looking;
    expect(await ids(ours, scope, "s")).toEqual(["a", "b"]);
    await ours.close();
    await theirs.close();
  });

  test("[ST11] other processes see a fork completely or not at all", async () => {
    const root = folder();
    const [ours, theirs] = [await createStore({ dir: root }), await createStore({ dir: root })];
    await create(ours, scope, "s");
    await append(ours, scope, "s", "a", "b");
    for (let round = 0; round < 60; round++) {
      const name = `f${round}`;
      const forking = ours.sessions.fork(scope, "s", "b", {
        key: `agent:main:session:${name}`,
        sessionId: name,
        cwd: "/",
      });
      let seen = await theirs.sessions.get(scope, name);
      while (seen === null) {
        await new Promise((resolve) => setImmediate(resolve));
        seen = await theirs.sessions.get(scope, name);
      }
      expect(seen.leafId).toBe("b");
      expect((await forking).leafId).toBe("b");
    }
    await ours.close();
    await theirs.close();
  });
});
