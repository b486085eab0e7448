import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import type { CompactionOptions, Store, Summarize } from "../../src/entry-store.ts";
import { compactSession, createStore } from "../../src/entry-store.ts";
import type { Entry, EntryDraft } from "../../src/index.ts";
import { HookRegistry, HookStop, isCorrupt, parseSession } from "../../src/index.ts";
import {
  allIds,
  answered,
  base,
  begin,
  bound,
  removeRoots,
  roots,
  said,
  scope,
  stores,
} from "../support/compactable.ts";
import { textOfTokens } from "../support/conversation.ts";
import { diligent, goodNotes } from "../support/long-story.ts";
import { assistantMessage } from "../support/session-text.ts";
import { estimateTokens } from "../support/text.ts";

afterAll(removeRoots);

async function memory(hooks?: HookRegistry) {
  const store = await createStore({ memory: true });
  const session = await begin(store);
  const compact = (options: Partial<CompactionOptions> & Pick<CompactionOptions, "summarize">) =>
    compactSession({ store, ...(hooks === undefined ? {} : { hooks }) }, scope, session, {
      ...base,
      ...options,
    });
  const ids = async () => (await store.sessions.context(scope, "s"))?.entryIds ?? [];
  return { store, compact, ids };
}

describe("compacting a session", () => {
  test("[CMP19] the summary replaces the older part, and the entry records its source", async () => {
    const { store, compact, ids } = await memory();
    const { requests, summarize } = diligent();
    const outcome = await compact({ summarize, trigger: "manual", instructions: "mind the tests" });
    expect(outcome).toMatchObject({ done: true, firstKeptEntryId: "u6", retried: false, missing: [] });
    if (!outcome.done) throw new Error(outcome.note);
    expect(await ids()).toEqual([outcome.entryId, ...allIds.slice(12)]);
    expect(requests[0]?.prompt).toContain("mind the tests");
    const entry = await store.sessions.entry(scope, "s", outcome.entryId);
    expect(entry).toMatchObject({
      type: "compaction",
      parentId: "a9",
      firstKeptEntryId: "u6",
      tokensBefore: outcome.tokensBefore,
      details: {
        readFiles: [],
        modifiedFiles: [],
        skein: {
          trigger: "manual",
          mode: "safeguard",
          tokensAfter: outcome.tokensAfter,
          usage: outcome.usage,
        },
      },
    });
    expect(entry).not.toHaveProperty("fromHook");
    expect(outcome.tokensAfter).toBeLessThan(outcome.tokensBefore);
  });

  test("a session with nothing to cut reports that, and no summarizer is called", async () => {
    const { compact } = await memory();
    const { requests, summarize } = diligent();
    const manual = await compact({ summarize, contextWindow: 200_000, trigger: "manual" });
    expect(manual).toMatchObject({ done: false, reason: "all_recent" });
    expect(requests).toEqual([]);
    const store = await createStore({ memory: true });
    await expect(
      compactSession({ store }, scope, { sessionId: "none" }, { ...base, summarize }),
    ).rejects.toMatchObject({
      code: "not_found",
    });
  });

  test("[CMP3] if everything is recent but too much, half of it is kept, or a quarter", async () => {
    for (const trigger of ["threshold", "overflow"] as const) {
      const { compact } = await memory();
      const outcome = await compact({ ...diligent(), contextWindow: 30_000, trigger });
      expect(outcome).toMatchObject({ done: true, firstKeptEntryId: "u4" });
    }
  });

  test("the files of the calls are kept, and carried over from compaction to compaction", async () => {
    const { store, compact } = await memory();
    const { summarize } = diligent();
    const turn = (name: string, path: string): EntryDraft[] => {
      const call = { type: "toolCall" as const, id: "c", name, arguments: { path } };
      return [
        said(textOfTokens(100)),
        { type: "message", message: { ...assistantMessage(""), content: [call], stopReason: "toolUse" } },
        {
          type: "message",
          message: { role: "toolResult", toolCallId: "c", toolName: name, content: [], isError: false },
        },
        answered(textOfTokens(900)),
      ];
    };
    const detailsAfter = async (...drafts: EntryDraft[]) => {
      await store.sessions.append(
        scope,
        "s",
        drafts.map((draft) => ({ draft })),
      );
      const outcome = await compact({ summarize });
      if (!outcome.done) throw new Error(outcome.note);
      const entry = await store.sessions.entry(scope, "s", outcome.entryId);
      return entry?.type === "compaction" ? entry.details : null;
    };
    const rest = () => Array.from({ length: 5 }, () => [said("on"), answered(textOfTokens(1000))]).flat();
    expect(await detailsAfter(...turn("read", "a.ts"), ...turn("write", "b.ts"), ...rest())).toMatchObject({
      readFiles: ["a.ts"],
      modifiedFiles: ["b.ts"],
    });
    expect(await detailsAfter(...turn("edit", "a.ts"), ...turn("read", "c.ts"), ...rest())).toMatchObject({
      readFiles: ["c.ts"],
      modifiedFiles: ["a.ts", "b.ts"],
    });
  });

  test("[CMP15] a summary that does not shrink the context is discarded", async () => {
    const { compact, ids } = await memory();
    const summarize = async () => `${goodNotes("")}\n${"word ".repeat(1200)}`;
    const short = await memory();
    await short.store.sessions.branch(scope, "s", "a4");
    expect(await short.compact({ summarize, mode: "default" })).toMatchObject({
      done: false,
      reason: "no_gain",
    });
    expect(await short.ids()).toEqual(allIds.slice(0, 10));
    expect(await compact({ summarize, mode: "default" })).toMatchObject({ done: true });
    expect((await ids()).length).toBeLessThan(allIds.length);
  });
});

describe("hooks around a compaction", () => {
  test("[CMP18] a hook may cancel it, by its answer or by a stop, and nothing is requested or written", async () => {
    const byWord = new HookRegistry();
    byWord.on("before_compaction", () => ({ cancel: "not now" }));
    const byStop = new HookRegistry();
    byStop.on("before_compaction", () => Promise.reject(new HookStop("not now")));
    for (const hooks of [byWord, byStop]) {
      const { compact, ids } = await memory(hooks);
      const { requests, summarize } = diligent();
      const outcome = await compact({ summarize });
      expect(outcome).toMatchObject({
        done: false,
        reason: "cancelled",
        note: expect.stringContaining("not now"),
      });
      expect([requests, await ids()]).toEqual([[], allIds]);
    }
  });

  test("[CMP18] [CMP21] a hook may supply the summary, and is notified of the result", async () => {
    const hooks = new HookRegistry();
    const events: unknown[] = [];
    hooks.on("before_compaction", ({ messages, ...event }) => {
      events.push(event);
      return { summary: `${messages.length} messages` };
    });
    hooks.on("after_compaction", (event) => void events.push(event) as undefined);
    const { store, compact } = await memory(hooks);
    const { requests, summarize } = diligent();
    const outcome = await compact({ summarize });
    if (!outcome.done) throw new Error(outcome.note);
    expect(outcome).toMatchObject({ chunks: 0, summary: "12 messages" });
    const { entryId, summary, firstKeptEntryId, tokensBefore, tokensAfter } = outcome;
    const ctx = { userId: "ann", agentId: "main", sessionId: "s" };
    expect(events).toEqual([
      { firstKeptEntryId, tokensBefore, previousSummary: null, isCut: false, summary: null, ctx },
      { entryId, summary, firstKeptEntryId, tokensBefore, tokensAfter, ctx },
    ]);
    expect(requests).toEqual([]);
    const context = await store.sessions.context(scope, "s");
    expect(context?.messages[0]).toMatchObject({ summary: "12 messages" });
    const entry = await store.sessions.entry(scope, "s", context?.entryIds[0] ?? "");
    expect(entry).toMatchObject({ fromHook: true });
    await compact({ summarize, contextWindow: 4000, ctx: { ...ctx, channel: "slack" } });
    expect(events[2]).toMatchObject({ ctx: { channel: "slack" }, previousSummary: "12 messages" });
  });

  test.each<[string, string, object]>([
    ["an empty summary", " ", { done: false, reason: "empty" }],
    ["a summary with too many characters", "x".repeat(16_001), { done: false, reason: "too_long" }],
    ["a summary with too many tokens", textOfTokens(2100), { done: false, reason: "too_long" }],
  ])("[CMP18] %s is not accepted as a summary, as from a summarizer", async (_, summary, expected) => {
    const hooks = new HookRegistry();
    hooks.on("before_compaction", () => ({ summary }));
    const { compact, ids } = await memory(hooks);
    expect(await compact(diligent())).toMatchObject(expected);
    expect(await ids()).toEqual(allIds);
  });

  const wordless = Object.create(null) as unknown;
  test.each<[string, () => unknown, readonly string[]]>([
    ["an empty object", () => ({}), []],
    ["a number as the summary", () => ({ summary: 5 }), ["before_compaction"]],
    ["a value that is not an object", () => "x", ["before_compaction"]],
    [
      "an error",
      () => {
        throw wordless;
      },
      ["before_compaction", "after_compaction"],
    ],
  ])("[CMP18] a hook that answers with %s is skipped", async (_, hook, expected) => {
    const reported: unknown[] = [];
    const hooks = new HookRegistry((name) => void reported.push(name));
    hooks.on("before_compaction", hook as never);
    hooks.on("after_compaction", hook as never);
    const { compact } = await memory(hooks);
    const { requests, summarize } = diligent();
    const outcome = await compact({ summarize });
    expect(outcome).toMatchObject({ done: true, chunks: requests.length });
    expect(outcome).not.toHaveProperty("hookFailed");
    expect(reported).toEqual(expected);
  });

  test("[CMP18] a hook that stops afterwards changes nothing, nor does a failing report", async () => {
    const hooks = new HookRegistry();
    hooks.on("after_compaction", () => Promise.reject(new HookStop("late")));
    const late = await memory(hooks);
    expect(await late.compact(diligent())).toMatchObject({ done: true, hookFailed: "late" });
    expect(await late.ids()).toHaveLength(9);
    const unreported = new HookRegistry(() => {
      throw wordless;
    });
    unreported.on("before_compaction", () => Promise.reject(new Error("x")));
    const { compact, ids } = await memory(unreported);
    expect(await compact(diligent())).toMatchObject({ done: false, reason: "cancelled" });
    expect(await ids()).toEqual(allIds);
  });
});

describe("invalid options", () => {
  test.each<[string, object]>([
    ...[undefined, null, "200000", Number.NaN, Number.POSITIVE_INFINITY, -5, 0, 1999].map(
      (contextWindow): [string, object] => [`a window of ${contextWindow}`, { contextWindow }],
    ),
    ["another mode", { mode: "careful" }],
    ["another trigger", { trigger: "mood" }],
    ...[Number.NaN, "0.5", 0, 0.05, 0.95, 1].map((maxHistoryShare): [string, object] => [
      `a share of ${maxHistoryShare}`,
      { maxHistoryShare },
    ]),
    ...[Number.NaN, -1, 0.5].map((compactions): [string, object] => [
      `${compactions} compactions`,
      { compactions },
    ]),
  ])("%s is refused before any request", async (_, wrong) => {
    const { compact, ids } = await memory();
    const { requests, summarize } = diligent();
    await expect(compact({ summarize, ...wrong })).rejects.toMatchObject({ code: "invalid_arguments" });
    expect([requests, await ids()]).toEqual([[], allIds]);
  });

  test("in the smallest window a summarizer gets the conversation, and its request fits", async () => {
    const { compact } = await memory();
    const { requests, summarize } = diligent();
    expect(await compact({ summarize, contextWindow: 2000 })).toMatchObject({ done: true });
    expect(requests.map(({ prompt }) => prompt).join("\n")).toContain("[User]: ask 0 ");
    const sizes = await Promise.all(requests.map(({ system, prompt }) => estimateTokens([system, prompt])));
    expect(Math.max(...sizes)).toBeLessThan(2000);
  });
});

const hangs: Summarize = () => new Promise(() => undefined);

describe("a summary that fails", () => {
  test.each<[string, Partial<CompactionOptions> & Pick<CompactionOptions, "summarize">, string]>([
    ["an error", { summarize: () => Promise.reject(new Error("overloaded")) }, "failed"],
    ["an answer without text", { summarize: () => Promise.reject(Object.create(null)) }, "failed"],
    [
      "a failure in both attempts",
      {
        summarize: () =>
          Promise.reject({
            toString() {
              throw new Error("again");
            },
          }),
      },
      "failed",
    ],
    ["nothing", { summarize: async () => "" }, "empty"],
    ["garbage", { summarize: async () => "\u0000\ud800 lorem </conversation> ipsum" }, "poor"],
    ["too much", { summarize: async () => "x".repeat(500_000) }, "too_long"],
    ["no answer in time", { summarize: hangs, signal: AbortSignal.timeout(1) }, "timed_out"],
    ["an abort", { summarize: hangs, signal: AbortSignal.abort() }, "aborted"],
  ])("[CMP11] by %s leaves the history complete", async (_, options, reason) => {
    for (const kind of Object.keys(stores)) {
      const store = await (stores[kind] as () => Promise<Store>)();
      const session = await begin(store);
      expect(await compactSession({ store }, scope, session, { ...base, ...options })).toMatchObject({
        done: false,
        reason,
      });
      expect((await store.sessions.context(scope, "s"))?.entryIds).toEqual(allIds);
      expect(await store.sessions.get(scope, "s")).toMatchObject({ leafId: "a9" });
      await store.close();
    }
  });
});

describe.each(Object.keys(stores))("concurrent writes, in %s", (kind) => {
  async function opened() {
    const store = await (stores[kind] as () => Promise<Store>)();
    const session = await begin(store);
    const ids = async () => (await store.sessions.context(scope, "s"))?.entryIds ?? [];
    const compact = (summarize: Summarize) =>
      compactSession({ store }, scope, session, { ...base, summarize });
    /** Answers once another promise has settled. */
    const onceDone = (act: () => Promise<unknown>): Summarize => {
      let acted = false;
      return async ({ prompt }) => {
        if (!acted) await act();
        acted = true;
        return goodNotes(prompt);
      };
    };
    return { store, ids, compact, onceDone };
  }

  test("[CMP17] messages written meanwhile are kept, after the kept part", async () => {
    const { store, ids, compact, onceDone } = await opened();
    const outcome = await compact(
      onceDone(() => store.sessions.append(scope, "s", [{ id: "new", draft: said("and now?") }])),
    );
    if (!outcome.done) throw new Error(outcome.note);
    expect(await ids()).toEqual([outcome.entryId, ...allIds.slice(12), "new"]);
    expect(await store.sessions.entry(scope, "s", outcome.entryId)).toMatchObject({ parentId: "new" });
    await store.close();
  });

  test("[CMP17] of two compactions one is kept, the other is a conflict, and nothing is lost", async () => {
    const { store, ids, compact } = await opened();
    const both = Promise.withResolvers<void>();
    let waiting = 0;
    const summarize: Summarize = async ({ prompt }) => {
      waiting += 1;
      if (waiting === 2) both.resolve();
      await both.promise;
      return goodNotes(prompt);
    };
    const outcomes = await Promise.all([compact(summarize), compact(summarize)]);
    const [won] = outcomes.filter(({ done }) => done);
    expect(outcomes.filter(({ done }) => !done)).toMatchObject([
      { reason: "conflict", note: "another compaction was written first" },
    ]);
    expect(await ids()).toEqual([won?.done === true ? won.entryId : "", ...allIds.slice(12)]);
    const page = await store.sessions.page(scope, "s", { along: "all", limit: 1000 });
    expect(page?.entries.filter(({ type }) => type === "compaction")).toHaveLength(1);
    await store.close();
  });

  test.each<[string, string | null, boolean]>([
    ["before the kept part", "a3", false],
    ["before the root", null, false],
    ["within the kept part", "a7", true],
  ])("[CMP17] a branch that moved to %s", async (_, target, holds) => {
    const { store, ids, compact, onceDone } = await opened();
    const outcome = await compact(onceDone(() => store.sessions.branch(scope, "s", target)));
    if (!holds) {
      expect(outcome).toMatchObject({ done: false, reason: "conflict" });
      expect(await ids()).toEqual(target === null ? [] : allIds.slice(0, 8));
    } else {
      expect(outcome).toMatchObject({ done: true });
      expect((await ids()).slice(1)).toEqual(["u6", "a6", "u7", "a7"]);
    }
    await store.close();
  });

  test("[CMP17] a summary does not bring back entries that were redacted meanwhile", async () => {
    const { store, ids, compact, onceDone } = await opened();
    const outcome = await compact(onceDone(() => store.sessions.redact(scope, "s", ["u2"])));
    expect(outcome).toMatchObject({ done: false, reason: "conflict" });
    expect(await ids()).toEqual(allIds);
    await store.close();
  });

  test("[CMP17] a stream of other writes does not prevent it from being written", async () => {
    const { store, ids, compact } = await opened();
    let count = 0;
    let isDone = false;
    const others = (async () => {
      while (!isDone && count < 2000) {
        await store.sessions.append(scope, "s", [{ id: `n${count++}`, draft: said("x") }]);
        if (count % 3 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
    })();
    const outcome = await compact(async ({ prompt }) => goodNotes(prompt));
    isDone = true;
    await others;
    const names = Array.from({ length: count }, (_, index) => `n${index}`);
    const kept = (await ids()).filter((id) => !outcome.done || id !== outcome.entryId);
    if (outcome.done) expect(kept).toEqual([...allIds.slice(12), ...names]);
    else expect([outcome.reason, kept]).toEqual(["conflict", [...allIds, ...names]]);
    await store.close();
  });

  const late = (draft: EntryDraft) => (store: Store) =>
    store.sessions.append(scope, "s", [{ id: "late", draft }]);
  test.each<[string, (store: Store) => Promise<unknown>, object, readonly string[]]>([
    ["a word", late(said("and now?")), { done: true }, [...allIds.slice(12), "late"]],
    [
      "another compaction",
      late({ type: "compaction", summary: "x", firstKeptEntryId: "u7", tokensBefore: 1 }),
      { done: false, reason: "conflict" },
      ["late", ...allIds.slice(14)],
    ],
    [
      "a move",
      (store) => store.sessions.branch(scope, "s", "a1"),
      { done: false, reason: "conflict" },
      allIds.slice(0, 4),
    ],
  ])("[CMP17] %s at the last moment, between the check and the write", async (_, act, expected, context) => {
    const { store, ids } = await opened();
    let isFirst = true;
    const sessions: Store["sessions"] = Object.create(store.sessions, {
      append: {
        value: async (...args: Parameters<Store["sessions"]["append"]>) => {
          if (isFirst) await act(store);
          isFirst = false;
          return store.sessions.append(...args);
        },
      },
      ...bound(store.sessions, ["page", "context", "entry"]),
    });
    const options = { ...base, summarize: diligent().summarize };
    const outcome = await compactSession({ store: { sessions } }, scope, { sessionId: "s" }, options);
    expect(outcome).toMatchObject(expected);
    expect(await ids()).toEqual(outcome.done ? [outcome.entryId, ...context] : context);
    await store.close();
  });

  test("[CMP17] a run that lost its session writes nothing", async () => {
    const { store, ids } = await opened();
    const { summarize } = diligent();
    const options = { ...base, summarize, fence: () => false };
    await expect(compactSession({ store }, scope, { sessionId: "s" }, options)).rejects.toMatchObject({
      code: "fenced",
    });
    expect(await ids()).toEqual(allIds);
    await store.close();
  });
});

describe("the cut of a compaction", () => {
  let calls = 0;
  const step = (tokens = 500): EntryDraft[] => {
    const id = `c${calls++}`;
    const call = { type: "toolCall" as const, id, name: "look", arguments: {} };
    const content = [{ type: "text" as const, text: textOfTokens(tokens) }];
    return [
      { type: "message", message: { ...assistantMessage(""), content: [call], stopReason: "toolUse" } },
      {
        type: "message",
        message: { role: "toolResult", toolCallId: id, toolName: "look", content, isError: false },
      },
    ];
  };
  const steps = (count: number, tokens?: number) => Array.from({ length: count }, () => step(tokens)).flat();

  async function compactAfter(...drafts: EntryDraft[]) {
    const store = await createStore({ memory: true });
    const session = await store.sessions.create(scope, {
      key: "agent:main:session:s",
      sessionId: "s",
      cwd: "/",
    });
    await store.sessions.append(
      scope,
      "s",
      drafts.map((draft) => ({ draft })),
    );
    const outcome = await compactSession({ store }, scope, session, { ...base, ...diligent() });
    if (!outcome.done) throw new Error(outcome.note);
    return { outcome, messages: (await store.sessions.context(scope, "s"))?.messages ?? [] };
  }

  /** A call whose result comes after a user message, where a turn could start. */
  const interrupted = (tokens: number): EntryDraft[] => {
    const [call, result] = step(tokens) as [EntryDraft, EntryDraft];
    return [call, said(`go on ${textOfTokens(tokens)}`), result];
  };

  test.each([50, 130, 350, 700, 1100])(
    "[CMP4] calls with results of %i tokens stay together",
    async (tokens) => {
      const turns = Array.from({ length: 20 }, () => [...step(tokens), ...interrupted(tokens)]).flat();
      const { messages } = await compactAfter(said("old"), ...turns, ...turns);
      const kept = messages.slice(1);
      const called = kept.flatMap((message) =>
        message.role === "assistant"
          ? message.content.flatMap((block) => (block.type === "toolCall" ? [block.id] : []))
          : [],
      );
      const answeredIds = kept.flatMap((message) =>
        message.role === "toolResult" ? [message.toolCallId] : [],
      );
      expect(answeredIds.length).toBeGreaterThan(0);
      expect(answeredIds).toEqual(called);
    },
  );

  test("[CMP3] the last user turn is kept complete", async () => {
    const before = Array.from({ length: 10 }, (_, index) => [
      said(`ask ${index}`),
      answered(textOfTokens(900)),
    ]);
    const { messages } = await compactAfter(...before.flat(), said("LAST"), ...steps(5), answered("done"));
    expect(messages.find(({ role }) => role === "user")).toBeDefined();
    expect(messages.filter(({ role }) => role === "toolResult")).toHaveLength(5);
    expect(messages).toContainEqual(expect.objectContaining({ role: "user", content: "LAST" }));
  });

  test("[CMP16] a turn that is cut in two keeps its request in the summary, word for word", async () => {
    const request = "REQUEST: find the quiet gardens, **all** of them.";
    const { outcome, messages } = await compactAfter(said(request), ...steps(20));
    expect(outcome.summary).toContain(request);
    expect(messages.some(({ role }) => role === "user")).toBe(false);
  });
});

test("[CMP20] the log gives pi the same context after a compaction", async () => {
  const store = await (stores.files as () => Promise<Store>)();
  const session = await begin(store);
  for (const contextWindow of [base.contextWindow, 4000])
    expect(
      await compactSession({ store }, scope, session, { ...base, ...diligent(), contextWindow }),
    ).toMatchObject({
      done: true,
    });
  const context = await store.sessions.context(scope, "s");
  await store.close();
  const root = roots.at(-1) ?? "";
  const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".jsonl"),
  );
  expect(files.length).toBeGreaterThan(0);
  for (const file of files) {
    const session = parseSession(readFileSync(join(root, file)));
    const entries = session.lines.filter((line): line is Entry => !isCorrupt(line));
    expect({ file, ids: contextIdsByPi(entries) }).toEqual({ file, ids: context?.entryIds });
  }
});

/** pi's rule: the last compaction, the entries that it kept, and the entries after it. */
function contextIdsByPi(path: readonly Entry[]): string[] {
  const last = path.findLastIndex((entry) => entry.type === "compaction");
  const compaction = path[last];
  if (compaction?.type !== "compaction") throw new Error("no compaction");
  const before = path.slice(0, last);
  const kept = before.findIndex((entry) => entry.id === compaction.firstKeptEntryId);
  const chosen = [...before.slice(kept), ...path.slice(last + 1)];
  return [compaction.id, ...chosen.flatMap(({ id, type }) => (type === "message" ? [id] : []))];
}
