import { appendFileSync, copyFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import type { EntryDraft } from "../../src/index.ts";
import { SkeinError } from "../../src/index.ts";
import { errorOf, IndexThread, problemOf } from "../../src/store/files/index-thread.ts";
import { openFilesStore } from "../../src/store/files/store.ts";
import { append, create, listed, said } from "../support/store-calls.ts";

const scope = { agentId: "main" };
const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "skein-index-"));
  folders.push(made);
  return made;
}

const ways = ["in place", "in a thread"] as const;
const found = async (store: Awaited<ReturnType<typeof openFilesStore>>, text: string) =>
  (await store.search.search(scope, { text })).hits.map(({ sessionId }) => sessionId).toSorted();
const line = (id: string, parentId: string | null, content: string) =>
  `${JSON.stringify({ type: "message", id, parentId, timestamp: "2026-01-01T00:00:00.000Z", message: { role: "user", content } })}\n`;

describe("a stale or foreign index", () => {
  test.each(ways)("[FS17] if deleted while the store runs, it is rebuilt, %s", async (index) => {
    const root = folder();
    let store = await openFilesStore({ root, index });
    for (const id of ["a", "b"]) {
      await create(store, scope, id);
      await append(store, scope, id, `hello ${id}`);
    }
    expect(await found(store, "hello")).toEqual(["a", "b"]);
    await store.upkeep.bringUpIndex();
    for (const ending of ["", "-wal", "-shm"]) rmSync(join(root, `index.db${ending}`), { force: true });
    await create(store, scope, "c");
    await append(store, scope, "c", "hello c");
    await store.upkeep.bringUpIndex();
    expect((await listed(store, scope)).toSorted()).toEqual(["a", "b", "c"]);
    expect(await found(store, "hello")).toEqual(["a", "b", "c"]);
    await store.close();
    store = await openFilesStore({ root, index });
    const { sessions, behind } = await store.sessions.list(scope, {});
    expect([sessions.length, behind]).toEqual([3, 0]);
    await store.close();
  });

  test("[FS17] if replaced by that of another folder, it is updated", async () => {
    const [root, other] = [folder(), folder()];
    for (const each of [root, other]) {
      const store = await openFilesStore({ root: each, index: "in place" });
      await create(store, scope, each === root ? "mine" : "theirs");
      await store.upkeep.bringUpIndex();
      await store.close();
    }
    copyFileSync(join(other, "index.db"), join(root, "index.db"));
    const store = await openFilesStore({ root, index: "in place" });
    await store.upkeep.bringUpIndex();
    expect(await listed(store, scope)).toContain("mine");
    await store.close();
  });

  test("[STE1] entries that another program appends to the log are listed and searched once they are noticed", async () => {
    const root = folder();
    const store = await openFilesStore({ root, index: "in place" });
    await create(store, scope, "s");
    await append(store, scope, "s", "ours");
    await store.upkeep.bringUpIndex();
    appendFileSync(join(root, "agents/main/sessions/s.jsonl"), line("pi", "ours", "zanzibar"));
    await store.sessions.context(scope, "s");
    expect(await found(store, "zanzibar")).toEqual(["s"]);
    await store.upkeep.bringUpIndex();
    await store.close();
    appendFileSync(join(root, "agents/main/sessions/s.jsonl"), line("pi2", "pi", "madagascar"));
    const again = await openFilesStore({ root, index: "in place" });
    await again.sessions.get(scope, "s");
    expect(await found(again, "madagascar")).toEqual(["s"]);
    await again.close();
  });

  test("[STE1] a hit in a session that another process has rewritten is found", async () => {
    const root = folder();
    const [ours, theirs] = [await openFilesStore({ root }), await openFilesStore({ root })];
    await create(theirs, scope, "s");
    const long = `redactme ${"long ".repeat(200)}`;
    await theirs.sessions.append(scope, "s", [
      { id: "r", draft: said(long) },
      { id: "k", draft: said("apple") },
    ]);
    await ours.sessions.context(scope, "s");
    expect(await found(ours, "apple")).toEqual(["s"]);
    await theirs.sessions.redact(scope, "s", ["r"]);
    expect(await found(ours, "apple")).toEqual(["s"]);
    await ours.close();
    await theirs.close();
  });

  test("[STE1] an error in the thread keeps its type, and a thread that exits is replaced", async () => {
    const error = new SkeinError("read_only", { name: "index.db", problem: "it is newer" });
    const told = errorOf(structuredClone(problemOf(error)));
    expect(told).toBeInstanceOf(SkeinError);
    expect(told).toMatchObject({ code: "read_only", details: error.details, message: error.message });
    expect(errorOf(problemOf(Object.assign(new Error("x"), { code: "EIO" })))).toMatchObject({ code: "EIO" });

    const root = folder();
    const store = await openFilesStore({ root });
    await create(store, scope, "s");
    await append(store, scope, "s", "apple");
    const places = { root, databases: join(root, "nowhere"), identity: "" };
    const thread = new IndexThread(places, { absence: () => null } as never);
    await expect(thread.remove("x")).rejects.toMatchObject({ name: "SkeinError", code: "internal" });
    await expect(thread.remove("x")).rejects.toMatchObject({ code: "internal" });
    expect(await found(store, "apple")).toEqual(["s"]);
    await store.close();
  });
});

describe("a session opened by its tail", () => {
  const tailBytes = 1500;
  const open = (root: string, bytes = tailBytes) =>
    openFilesStore({ root, index: "in place", tailBytes: bytes });

  test.each(["an ID from before the tail", "lines of the tail"])("%s again", async (what) => {
    const root = folder();
    let store = await open(root);
    await create(store, scope, "s");
    for (let at = 0; at < 40; at++) await append(store, scope, "s", `m${at} ${"x".repeat(80)}`);
    await store.upkeep.bringUpIndex();
    await store.close();
    const log = join(root, "agents/main/sessions/s.jsonl");
    const lines = readFileSync(log, "utf8").trim().split("\n");
    const first = JSON.parse(lines[4] ?? "") as { id: string };
    const last = JSON.parse(lines.at(-1) ?? "") as { id: string };
    appendFileSync(
      log,
      what === "lines of the tail" ? `${lines.slice(-3).join("\n")}\n` : line(first.id, last.id, "another"),
    );
    for (const isIndexed of [false, true]) {
      store = await open(root);
      if (isIndexed) await store.upkeep.check({ fix: true });
      expect((await store.sessions.get(scope, "s"))?.leafId).toBe(last.id);
      await store.sessions.patch(scope, "s", { displayName: `D${isIndexed}` });
      await store.close();
      store = await open(root);
      expect((await store.sessions.get(scope, "s"))?.meta.displayName).toBe(`D${isIndexed}`);
      expect((await store.sessions.context(scope, "s"))?.messages).toHaveLength(40);
      await store.close();
    }
  });

  test("its name is not an entry that can be navigated to", async () => {
    const root = folder();
    let store = await open(root);
    await create(store, scope, "s");
    const name: EntryDraft = { type: "session_info", name: "Trip" };
    await store.sessions.append(scope, "s", [{ draft: name }]);
    for (let at = 0; at < 40; at++) await append(store, scope, "s", `m${at} ${"x".repeat(80)}`);
    await store.upkeep.bringUpIndex();
    await store.close();
    store = await open(root);
    expect((await store.sessions.get(scope, "s"))?.name).toBe("Trip");
    await expect(store.sessions.branch(scope, "s", "skein.name")).rejects.toMatchObject({
      code: "not_found",
    });
    await append(store, scope, "s", "skein.name");
    expect((await store.sessions.get(scope, "s"))?.leafId).toBe("skein.name");
    await store.close();
  });
});
