import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { FilesStore } from "../../src/entry-store.ts";
import type { EntryDraft } from "../../src/index.ts";
import { IndexFeed } from "../../src/store/files/index-feed.ts";
import { SessionFile } from "../../src/store/files/session-file.ts";
import { openFilesStore } from "../../src/store/files/store.ts";
import { SimStore } from "../support/sim-store.ts";
import { append, create, ids, said } from "../support/store-calls.ts";

/** Forks of a session without branches, whose lines are copied as bytes. */

const scope = { agentId: "main" };
const folder = "/store/agents/main/sessions";
const count = 1000;
const tailBytes = 20_000;

let sim: SimStore;
let store: FilesStore;

/** Indexes everything. Afterward, nothing is indexed in the background, because that would be counted as well. */
async function indexAll(): Promise<void> {
  vi.restoreAllMocks();
  while ((await store.sessions.list(scope, { limit: 1 })).behind > 0);
  vi.spyOn(IndexFeed.prototype, "catchUp").mockResolvedValue(0);
}

/** A session of one megabyte, of which only the end is in memory. */
beforeEach(async () => {
  sim = new SimStore();
  const { databases, disk } = sim;
  const settings = {
    root: "/store",
    databases,
    disk,
    durability: "os",
    index: "in place",
    tailBytes,
  } as const;
  store = await openFilesStore(settings);
  await create(store, scope, "s");
  const texts = Array.from({ length: count }, (_, index) => ({
    draft: said("x".repeat(1000)),
    id: `e${index}`,
  }));
  await store.sessions.append(scope, "s", texts);
  await indexAll();
  await store.close();
  store = await openFilesStore(settings);
  await store.sessions.get(scope, "s");
});
afterEach(async () => {
  vi.restoreAllMocks();
  await store.close();
  await sim.dispose();
});

const fork = (entryId: string, sessionId = "f", from = "s") =>
  store.sessions.fork(scope, from, entryId, { key: `agent:main:session:${sessionId}`, sessionId, cwd: "/w" });
const textOf = (sessionId: string) => sim.disk.textOf(`${folder}/${sessionId}.log.jsonl`) ?? "";
const linesOf = (sessionId: string) => textOf(sessionId).split("\n").slice(1, -1);

/** Runs an operation and returns the number of bytes it read and of JSON texts it parsed. */
async function measure(act: () => Promise<unknown>): Promise<{ bytes: number; parsed: number }> {
  const before = sim.disk.bytesRead;
  const parse = vi.spyOn(JSON, "parse");
  await act();
  const parsed = parse.mock.calls.length;
  parse.mockRestore();
  return { bytes: sim.disk.bytesRead - before, parsed };
}

const add = (draft: EntryDraft, id: string) => store.sessions.append(scope, "s", [{ draft, id }]);

describe("a fork of a long session without branches", () => {
  test("reads the log once and parses only the end of the copy", async () => {
    const { bytes, parsed } = await measure(() => fork(`e${count - 1}`));
    expect(bytes).toBeLessThan(textOf("s").length + 4 * tailBytes);
    expect(parsed).toBeLessThan(count / 10);
    expect(linesOf("f")).toEqual(linesOf("s"));
  });

  test("can be appended to, and forked again, before it is indexed", async () => {
    await fork(`e${count - 1}`);
    const { bytes, parsed } = await measure(async () => {
      await append(store, scope, "f", "more");
      await fork(`e${count - 1}`, "g", "f");
    });
    expect(bytes).toBeLessThan(textOf("s").length + 4 * tailBytes);
    expect(parsed).toBeLessThan(count / 10);
    expect(linesOf("g")).toEqual(linesOf("s"));
    expect(await ids(store, scope, "f")).toEqual([...(await ids(store, scope, "s")), "more"]);
  });

  test("keeps its name if its source is renamed before it is indexed", async () => {
    await add({ type: "session_info", name: "Trip" }, "name");
    await add(said("x".repeat(2 * tailBytes)), "long");
    await append(store, scope, "s", "last");
    await indexAll();
    await fork("last");
    await add({ type: "session_info", name: "Journey" }, "again");
    await store.sessions.page(scope, "s", { along: "all", limit: 1, before: "e1" });
    const file = sim.disk.openExisting(`${folder}/f.log.jsonl`);
    const line = { ...JSON.parse(linesOf("f").at(-1) ?? ""), id: "foreign", parentId: "last" };
    file?.append(Buffer.from(`${JSON.stringify(line)}\n`));
    file?.close();
    expect(await store.sessions.get(scope, "f")).toMatchObject({ name: "Trip", leafId: "foreign" });
  });

  test("rejects an ID from its copied part", async () => {
    await fork(`e${count - 1}`);
    await expect(append(store, scope, "f", "e1")).rejects.toMatchObject({ code: "conflict" });
  });

  test("ends with the requested entry", async () => {
    const record = await fork("e10");
    const source = await store.sessions.entry(scope, "s", "e10");
    expect(record.leafId).toBe("e10");
    expect(record.updatedAt).toBeGreaterThanOrEqual(Date.parse(source?.timestamp ?? ""));
    expect(linesOf("f")).toEqual(linesOf("s").slice(0, 11));
  });

  test("repeats a label and a name that were set later", async () => {
    await add({ type: "label", targetId: "e1", label: "start" }, "label");
    await add({ type: "session_info", name: "Trip" }, "name");
    await indexAll();
    expect((await fork("e10")).name).toBe("Trip");
    expect(linesOf("f")).toHaveLength(13);
  });

  test("leaves out another branch", async () => {
    await store.sessions.branch(scope, "s", "e1");
    await append(store, scope, "s", "other");
    await indexAll();
    await fork("other");
    expect(await ids(store, scope, "f")).not.toContain("e2");
  });

  test("leaves out a repeated line", async () => {
    const file = sim.disk.openExisting(`${folder}/s.log.jsonl`);
    file?.append(Buffer.from(`${linesOf("s").at(-1)}\n`));
    file?.close();
    await append(store, scope, "s", "last");
    await indexAll();
    await fork("last");
    expect(linesOf("f")).toHaveLength(count + 1);
  });

  test("contains nothing that is redacted after its branch was found", async () => {
    const { findBranch } = SessionFile.prototype;
    vi.spyOn(SessionFile.prototype, "findBranch").mockImplementation(async function (this: SessionFile, id) {
      const found = await findBranch.call(this, id);
      await store.sessions.redact(scope, "s", ["e5"]);
      return found;
    });
    await fork(`e${count - 1}`);
    expect(linesOf("f")).toHaveLength(linesOf("s").length);
    expect(linesOf("f")[5]).not.toContain("xxx");
  });
});
