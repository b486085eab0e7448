import fc from "fast-check";
import { afterEach, describe, expect, test } from "vitest";
import { SimStore } from "../../test/support/sim-store.ts";
import { allEntries, answered, said } from "../conformance/expect.ts";
import type { ContextMessage } from "../core/context.ts";
import type { Entry } from "../core/entries.ts";
import { parseSession } from "../core/parse-session.ts";
import type { EntryDraft } from "../core/seal.ts";
import { SessionTree } from "../core/tree.ts";
import type { SessionRecord, Store } from "../store/contract.ts";
import { createMemoryStore } from "../store/memory/store.ts";
import { toolResultLimit, truncateContent } from "../transcript/steps/truncate-tool-results.ts";
import { leaveTornCopies, truncateOversizedToolResultsInSession } from "./truncate-results.ts";

const scope = { userId: "alice", agentId: "main" };
/** With this window, results can have up to 1,200 characters. */
const contextWindow = 1000;
const limit = toolResultLimit(contextWindow);
const simulated: SimStore[] = [];

afterEach(async () => {
  for (const each of simulated.splice(0)) await each.dispose();
});

async function filesStore(): Promise<Store> {
  const sim = new SimStore();
  simulated.push(sim);
  return sim.open();
}

const stores: [string, () => Promise<Store>][] = [
  ["memory", async () => createMemoryStore()],
  ["files", filesStore],
];

function calling(...ids: string[]): EntryDraft {
  const draft = answered("I look it up") as { message: { content: object[] } };
  const calls = ids.map((id) => ({ type: "toolCall", id, name: "read", arguments: {} }));
  const message = { ...draft.message, stopReason: "toolUse", content: [...draft.message.content, ...calls] };
  return { type: "message", message } as unknown as EntryDraft;
}

function result(toolCallId: string, length: number): EntryDraft {
  const content = [{ type: "text" as const, text: `${toolCallId}:${"x".repeat(length)}:end` }];
  const message = { role: "toolResult" as const, toolCallId, toolName: "read", content, isError: false };
  return { type: "message", message: { ...message, timestamp: 3 } };
}

const compaction = (summary: string, firstKeptEntryId: string): EntryDraft => ({
  type: "compaction",
  summary,
  firstKeptEntryId,
  tokensBefore: 7,
});

async function session(store: Store, drafts: Readonly<Record<string, EntryDraft>>): Promise<void> {
  await store.sessions.create(scope, { key: "agent:main:session:s", sessionId: "s", cwd: "/w" });
  for (const [id, draft] of Object.entries(drafts)) await store.sessions.append(scope, "s", [{ draft, id }]);
}

async function record(store: Store): Promise<SessionRecord> {
  const found = await store.sessions.get(scope, "s");
  if (found === null) throw new Error("no session");
  return found;
}

const truncate = async (store: Store, options = {}) =>
  truncateOversizedToolResultsInSession(store.sessions, scope, await record(store), {
    contextWindow,
    ...options,
  });

/** Returns the messages as a model sees them, without fields that only copies have. */
function seen(messages: readonly ContextMessage[]): unknown[] {
  return messages.map((message) => {
    const { timestamp: _time, usage: _usage, ...rest } = message as ContextMessage & { usage?: object };
    return rest;
  });
}

const cut = (messages: readonly ContextMessage[]) =>
  messages.map((message) => {
    const content = message.role === "toolResult" ? truncateContent(message, limit) : null;
    return content === null ? message : { ...message, content };
  }) as ContextMessage[];

/** A session with every kind of entry. */
const rich: Readonly<Record<string, EntryDraft>> = {
  a: said("Find out"),
  b: { type: "model_change", provider: "p", modelId: "early" },
  c: calling("t1", "t2"),
  r1: result("t1", 100),
  r2: result("t2", 5000),
  d: answered("Found"),
  k0: compaction("first", "c"),
  e: { type: "thinking_level_change", thinkingLevel: "high" },
  f: { type: "custom", customType: "ext.state", data: { n: 1 } },
  g: { type: "custom_message", customType: "note", content: "By the way", display: true },
  h: calling("t3"),
  r3: result("t3", 9000),
  k1: compaction("second", "c"),
  l: { type: "label", targetId: "h", label: "here" },
  i: said("Go on"),
  n: { type: "session_info", name: "Search" },
  j: answered("Done"),
};

describe.each(stores)("permanently shortened results, %s", (_, open) => {
  test("the context is the same except for the shortened text, and the old branch is unchanged", async () => {
    const store = await open();
    await session(store, rich);
    const before = await store.sessions.context(scope, "s");
    const entries = await allEntries(store, scope, "s");
    const done = await truncate(store);
    expect(done).toMatchObject({ truncated: ["r2", "r3"], leftBehind: 0, refused: null });
    const after = await store.sessions.context(scope, "s");
    expect(seen(after?.messages ?? [])).toEqual(seen(cut(before?.messages ?? [])));
    expect(after).toMatchObject({ model: before?.model, thinkingLevel: "high", diagnostics: [] });
    expect((await allEntries(store, scope, "s")).slice(0, entries.length)).toEqual(entries);
    await store.sessions.branch(scope, "s", "j");
    expect((await store.sessions.context(scope, "s"))?.messages).toEqual(before?.messages);
    await store.close();
  });

  test("a second time there is nothing to do, nor if everything fits", async () => {
    const store = await open();
    await session(store, rich);
    await truncate(store);
    const entries = await allEntries(store, scope, "s");
    expect((await truncate(store)).truncated).toEqual([]);
    expect((await truncate(store, { contextWindow: 100_000 })).truncated).toEqual([]);
    expect(await allEntries(store, scope, "s")).toEqual(entries);
    await store.close();
  });

  test("order, boundaries, labels and times are kept; bookkeeping is not duplicated", async () => {
    const store = await open();
    await session(store, rich);
    const { version, name } = await record(store);
    const old = await allEntries(store, scope, "s");
    const { copies } = await truncate(store);
    expect([...copies.keys()]).toEqual(["r2", "d", "k0", "e", "f", "g", "h", "r3", "k1", "i", "j"]);
    const fresh = (await allEntries(store, scope, "s")).slice(old.length);
    expect(fresh[0]?.parentId).toBe("r1");
    expect(fresh.map(({ type }) => type)).toEqual([
      ...[...copies.keys()].map((id) => old.find((each) => each.id === id)?.type),
      "label",
    ]);
    const copyOf = (id: string) => fresh.find((each) => each.id === copies.get(id)) as Entry & object;
    expect(copyOf("k0")).toMatchObject({ firstKeptEntryId: "c", summary: "first", tokensBefore: 7 });
    expect(copyOf("k1")).toMatchObject({ firstKeptEntryId: "c", skein: { copyOf: "k1" } });
    expect(copyOf("f")).toMatchObject({ customType: "ext.state", data: { n: 1 } });
    expect(copyOf("r3")).toMatchObject({ message: { toolCallId: "t3", timestamp: 3 } });
    expect(fresh.at(-1)).toMatchObject({ type: "label", targetId: copies.get("h"), label: "here" });
    const now = await record(store);
    expect(now).toMatchObject({ version, name, leafId: copies.get("j") });
    await store.close();
  });

  test("a boundary among the copies is a copy; one before them is the original", async () => {
    const store = await open();
    const drafts = { a: said("x"), c: calling("t1"), r1: result("t1", 5000), b: said("y") };
    await session(store, { ...drafts, k: compaction("S", "r1"), k2: compaction("T", "a"), d: said("z") });
    const { copies } = await truncate(store);
    const entry = (id: string) => store.sessions.entry(scope, "s", copies.get(id) ?? "");
    expect(await entry("k")).toMatchObject({ firstKeptEntryId: copies.get("r1") });
    expect(await entry("k2")).toMatchObject({ firstKeptEntryId: "a" });
    await store.close();
  });

  test("a label that was removed, or added from another branch, has its current value", async () => {
    const store = await open();
    await session(store, {
      a: said("x"),
      c: calling("t1"),
      r1: result("t1", 5000),
      b: said("y"),
      d: said("z"),
    });
    const label = (targetId: string, text: string): EntryDraft => ({ type: "label", targetId, label: text });
    await store.sessions.append(scope, "s", [{ draft: label("b", "gone") }, { draft: label("b", "") }]);
    await store.sessions.branch(scope, "s", "a");
    await store.sessions.append(scope, "s", [{ draft: label("d", "from afar") }]);
    await store.sessions.branch(scope, "s", "d");
    const { copies } = await truncate(store);
    const labels = (await allEntries(store, scope, "s")).filter(({ type }) => type === "label").slice(3);
    expect(labels).toMatchObject([{ targetId: copies.get("d"), label: "from afar" }]);
    await store.close();
  });

  test("messages, usage and compactions are counted once", async () => {
    const store = await open();
    await session(store, rich);
    const digest = async () => (await store.sessions.list(scope, {})).sessions[0]?.digest;
    const before = await digest();
    const { copies } = await truncate(store);
    expect(await digest()).toEqual({
      ...before,
      entries: (before?.entries ?? 0) + copies.size + 1,
      bytes: expect.any(Number),
      contextTokens: null,
    });
    await store.close();
  });

  test("redacting an entry also redacts its copies, and vice versa, also in forks", async () => {
    const store = await open();
    await session(store, {
      a: said("x"),
      c: calling("t1"),
      r1: result("t1", 5000),
      b: said("a secret word"),
    });
    const fork = { key: "agent:main:session:f", sessionId: "f", cwd: "/w" };
    const { copies } = await truncate(store);
    await store.sessions.fork(scope, "s", copies.get("b") ?? "", fork);
    const again = await truncate(store, { contextWindow: 500 });
    const ids = ["b", copies.get("b"), again.copies.get(copies.get("b") ?? "")];
    const { sessions } = await store.sessions.redact(scope, "f", [copies.get("b") ?? ""]);
    expect(sessions.flatMap(({ entryIds }) => entryIds).toSorted()).toEqual(
      [...ids, copies.get("b")].toSorted(),
    );
    for (const sessionId of ["s", "f"]) {
      expect(JSON.stringify(await allEntries(store, scope, sessionId))).not.toContain("secret");
    }
    await store.sessions.redact(scope, "s", ["r1"]);
    expect(JSON.stringify(await allEntries(store, scope, "s"))).not.toContain("t1:xxx");
    await store.close();
  });

  test("a session that has continued is a conflict, at any point", async () => {
    const store = await open();
    await session(store, { a: said("x"), c: calling("t1"), r1: result("t1", 5000) });
    const stale = await record(store);
    await store.sessions.append(scope, "s", [{ draft: said("meanwhile"), id: "m" }]);
    const attempt = (sessions = store.sessions, of = stale) =>
      truncateOversizedToolResultsInSession(sessions, scope, of, { contextWindow });
    await expect(attempt()).rejects.toMatchObject({ code: "conflict" });
    const racing = new Proxy(store.sessions, {
      get: (target, name) =>
        name !== "append"
          ? Reflect.get(target, name).bind(target)
          : async (...args: Parameters<typeof target.append>) => {
              await target.append(scope, "s", [{ draft: said("just now"), id: "n" }]);
              return target.append(...args);
            },
    });
    await expect(attempt(racing, await record(store))).rejects.toMatchObject({ code: "conflict" });
    expect((await allEntries(store, scope, "s")).map(({ id }) => id)).toEqual(["a", "c", "r1", "m", "n"]);
    await expect(truncate(store, { fence: () => false })).rejects.toMatchObject({ code: "fenced" });
    await store.close();
  });
});

/** A session written by another program, with entries that Skein does not write. */
async function adopted(lines: readonly object[]): Promise<Store> {
  const store = createMemoryStore();
  const header = {
    type: "session",
    version: 3,
    id: "theirs",
    timestamp: new Date(0).toISOString(),
    cwd: "/w",
  };
  const chained = lines.map((line, index) => ({
    parentId: index === 0 ? null : `e${index - 1}`,
    id: `e${index}`,
    timestamp: new Date(index).toISOString(),
    ...line,
  }));
  const text = [header, ...chained].map((line) => JSON.stringify(line)).join("\n");
  const init = { key: "agent:main:session:s", sessionId: "s", cwd: "/w" };
  await store.sessions.adopt(scope, init, SessionTree.from(parseSession(text)));
  return store;
}

describe("entries of other programs", () => {
  const long = result("t", 5000);
  const bare = { type: "message", message: { role: "assistant", content: [], stopReason: "refusal" } };

  test("missing required fields are filled in without changing the meaning", async () => {
    const nameless = { type: "message", message: { role: "toolResult", toolCallId: "u", content: [] } };
    const shell = { type: "message", message: { role: "bashExecution", command: "ls", output: "" } };
    const bareCompaction = { type: "compaction", summary: "S", firstKeptEntryId: "e0" };
    const store = await adopted([said("x"), long, bare, nameless, shell, bareCompaction, { type: "x_new" }]);
    const before = await store.sessions.context(scope, "s");
    expect(await truncate(store)).toMatchObject({ truncated: ["e1"], leftBehind: 1 });
    const after = await store.sessions.context(scope, "s");
    expect(after?.model).toEqual(before?.model);
    expect(after?.messages).toMatchObject(
      seen(cut(before?.messages ?? []))
        .map((each) => ({ ...(each as object), stopReason: undefined }))
        .map(({ stopReason: _reason, ...rest }) => rest),
    );
  });

  test("edits are applied to the copies, including edits of earlier entries", async () => {
    const edit = (targetId: string, content: string | null) => ({
      type: "context_edit",
      targetId,
      replacement: content === null ? null : { content },
    });
    const store = await adopted([
      said("said"),
      said("taken out"),
      said("other"),
      long,
      answered("answer"),
      { type: "custom_message", customType: "n", content: "old note", display: true },
      { type: "branch_summary", fromId: "root", summary: "old summary" },
      edit("e0", "edited"),
      edit("e1", null),
      edit("e4", "edited answer"),
      edit("e5", "new note"),
      edit("e6", "new summary"),
    ]);
    const before = await store.sessions.context(scope, "s");
    const { copies } = await truncate(store);
    expect([...copies.keys()]).toEqual(["e0", "e2", "e3", "e4", "e5", "e6"]);
    const after = await store.sessions.context(scope, "s");
    expect(seen(after?.messages ?? [])).toEqual(seen(cut(before?.messages ?? [])));
    expect(JSON.stringify(after?.messages)).toContain("new summary");
  });

  test("refuses everything if a part that changes the context cannot be written", async () => {
    const system = { type: "message", message: { role: "system", content: "Be brief" } };
    const store = await adopted([said("x"), long, system]);
    expect((await truncate(store)).refused).toContain("system prompt");
    const takenOut = { type: "context_edit", targetId: "e2", replacement: null };
    const compacted = await adopted([said("x"), long, compaction("S", "e0"), takenOut]);
    expect((await truncate(compacted)).refused).toContain("compaction");
    expect(await allEntries(compacted, scope, "s")).toHaveLength(4);
    const before = await adopted([said("x"), system, long]);
    expect((await truncate(before)).truncated).toEqual(["e2"]);
    expect((await before.sessions.context(scope, "s"))?.system).toBe("Be brief");
  });

  test("a page that starts with the result is not mistaken for the whole branch", async () => {
    const store = createMemoryStore();
    const talk = Array.from({ length: 998 }, (_, index) => [`m${index}`, said(`m${index}`)] as const);
    await session(store, {
      a: said("x"),
      c: calling("t"),
      r: result("t", 5000),
      ...Object.fromEntries(talk),
    });
    await store.sessions.append(scope, "s", [{ draft: compaction("S", "r"), id: "k" }]);
    const { copies } = await truncate(store);
    expect(await store.sessions.entry(scope, "s", copies.get("r") ?? "")).toMatchObject({ parentId: "c" });
  });

  test("shortens a branch of many pages, compacted in the middle, in the right place", async () => {
    const store = createMemoryStore();
    const talk = Array.from({ length: 2500 }, (_, index) => [`m${index}`, said(`m${index}`)] as const);
    const drafts = { ...Object.fromEntries(talk.slice(0, 1500)), c: calling("t"), r: result("t", 5000) };
    await session(store, { ...drafts, k: compaction("S", "m400"), ...Object.fromEntries(talk.slice(1500)) });
    const before = await store.sessions.context(scope, "s");
    const { copies } = await truncate(store);
    expect(copies.size).toBe(1002);
    const after = await store.sessions.context(scope, "s");
    expect(seen(after?.messages ?? [])).toEqual(seen(cut(before?.messages ?? [])));
    expect(await store.sessions.entry(scope, "s", copies.get("r") ?? "")).toMatchObject({ parentId: "c" });
  });
});

test("for any session, the model sees the same except for the shortened text", async () => {
  const step = fc.record({ do: fc.nat(9), length: fc.nat(3000), at: fc.nat() });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 30 }), async (steps) => {
      const store = createMemoryStore();
      await session(store, { a: said("x") });
      for (const [index, { do: act, length, at }] of steps.entries()) {
        const ids = (
          (await store.sessions.page(scope, "s", { along: "branch", limit: 1000 }))?.entries ?? []
        ).map(({ id }) => id);
        const pick = ids[at % ids.length] ?? "a";
        if (act === 9) await store.sessions.branch(scope, "s", pick);
        const drafts: EntryDraft[] = [
          said(`u${index}`),
          answered(`a${index}`),
          calling(`t${index}`),
          result(`t${index}`, length),
          result(`t${index}`, length),
          result(`t${index}`, length),
          compaction(`S${index}`, pick),
          { type: "label", targetId: pick, label: `l${index}` },
          { type: "thinking_level_change", thinkingLevel: `${index}` },
        ];
        const draft = drafts[act];
        if (draft !== undefined) await store.sessions.append(scope, "s", [{ draft, id: `n${index}` }]);
      }
      const before = await store.sessions.context(scope, "s");
      const { truncated, copies } = await truncate(store);
      const after = await store.sessions.context(scope, "s");
      expect(seen(after?.messages ?? [])).toEqual(seen(cut(before?.messages ?? [])));
      expect(after).toMatchObject({
        model: before?.model,
        thinkingLevel: before?.thinkingLevel,
        diagnostics: [],
      });
      expect(after?.entryIds).toEqual(before?.entryIds.map((id) => copies.get(id) ?? id));
      expect(copies.size === 0).toBe(truncated.length === 0);
      expect((await truncate(store)).truncated).toEqual([]);
    }),
    { numRuns: 150 },
  );
});

describe("a crash", () => {
  const drafts = {
    a: said("x"),
    c: calling("t1"),
    r1: result("t1", 5000),
    k: compaction("S", "c"),
    b: said("y"),
  };

  test("after any disk operation leaves the session in its old or its new state", async () => {
    const measuring = new SimStore();
    simulated.push(measuring);
    const store = await measuring.open();
    await session(store, drafts);
    const first = measuring.disk.operations;
    const before = (await store.sessions.context(scope, "s"))?.messages ?? [];
    await truncate(store);
    const last = measuring.disk.operations;
    expect(last).toBeGreaterThan(first);
    for (let count = first; count <= last + 1; count++) {
      const sim = new SimStore();
      simulated.push(sim);
      const doomed = await sim.open();
      await session(doomed, drafts);
      sim.disk.fault = (_, __, operation) => (operation > count ? { error: "EIO" } : null);
      const isDone = await truncate(doomed).then(
        () => true,
        () => false,
      );
      const after = await sim.powerCut();
      const found = seen((await after.sessions.context(scope, "s"))?.messages ?? []);
      if (isDone) expect(found).toEqual(seen(cut(before)));
      else expect([seen(before), seen(cut(before))]).toContainEqual(found);
      expect(await leaveTornCopies(after.sessions, scope, "s")).toBe(false);
    }
  });

  test("a torn log is restored to its old end; a complete one stays", async () => {
    const store = createMemoryStore();
    await session(store, drafts);
    const whole = await store.sessions.context(scope, "s");
    const { copies } = await truncate(store);
    const entries = await allEntries(store, scope, "s");
    const lines = entries.map((entry) => JSON.stringify(entry));
    const header = JSON.stringify({ type: "session", version: 3, id: "s" });
    for (let kept = Object.keys(drafts).length; kept <= entries.length; kept++) {
      const torn = createMemoryStore();
      const text = [header, ...lines.slice(0, kept), '{"type":"mess'].join("\n");
      const init = { key: "agent:main:session:s", sessionId: "s", cwd: "/w" };
      await torn.sessions.adopt(scope, init, SessionTree.from(parseSession(text)));
      const isTorn = kept > Object.keys(drafts).length && kept < entries.length;
      expect(await leaveTornCopies(torn.sessions, scope, "s")).toBe(isTorn);
      const { messages } = (await torn.sessions.context(scope, "s")) ?? { messages: [] };
      const isDone = kept === entries.length;
      expect(seen(messages)).toEqual(seen(isDone ? cut(whole?.messages ?? []) : (whole?.messages ?? [])));
    }
    await store.sessions.branch(scope, "s", copies.get("r1") ?? "");
    expect(await leaveTornCopies(store.sessions, scope, "s")).toBe(false);
    expect(await leaveTornCopies(store.sessions, scope, "none")).toBe(false);
  });
});
