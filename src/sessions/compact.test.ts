import { describe, expect, test } from "vitest";
import { allIds, answered, base, begin, said, scope, stores } from "../../test/support/compactable.ts";
import { textOfTokens } from "../../test/support/conversation.ts";
import { diligent, goodNotes } from "../../test/support/long-story.ts";
import { assistantMessage } from "../../test/support/session-text.ts";
import type { EntryDraft } from "../core/seal.ts";
import type { Store } from "../store/contract.ts";
import { createMemoryStore } from "../store/memory/store.ts";
import type { Summarize } from "../transcript/compaction/summarize-piece.ts";
import { textTokens } from "../transcript/text-tokens.ts";
import { compactSession } from "./compact.ts";
import type { CompactionOptions } from "./compaction-summary.ts";
import { HookRegistry, HookStop } from "./hooks.ts";

async function memory(hooks?: HookRegistry) {
  const store = createMemoryStore();
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
  test("[CMP19] the summary stands in for the older part, and the entry says what it was made of", async () => {
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

  test("a session with nothing to cut is told so, and no summarizer is asked", async () => {
    const { compact } = await memory();
    const { requests, summarize } = diligent();
    const manual = await compact({ summarize, contextWindow: 200_000, trigger: "manual" });
    expect(manual).toMatchObject({ done: false, reason: "all_recent" });
    expect(requests).toEqual([]);
    const store = createMemoryStore();
    await expect(
      compactSession({ store }, scope, { sessionId: "none" }, { ...base, summarize }),
    ).rejects.toMatchObject({
      code: "not_found",
    });
  });

  test("[CMP3] where all is recent and yet too much, half of it is kept, or a quarter", async () => {
    for (const trigger of ["threshold", "overflow"] as const) {
      const { compact } = await memory();
      const outcome = await compact({ ...diligent(), contextWindow: 30_000, trigger });
      expect(outcome).toMatchObject({ done: true, firstKeptEntryId: "u4" });
    }
  });

  test("the files of the calls are kept, and handed on from compaction to compaction", async () => {
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

  test("[CMP15] a summary that makes nothing smaller is not kept", async () => {
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
  test("[CMP18] one may call it off, by word or by a stop, and nothing is asked or written", async () => {
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

  test("[CMP18] [CMP21] one may give the summary, and is told what came of it", async () => {
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
    ["an empty one", " ", { done: false, reason: "empty" }],
    ["one of too many characters", "x".repeat(16_001), { done: false, reason: "too_long" }],
    ["one of too many tokens", textOfTokens(2100), { done: false, reason: "too_long" }],
  ])("[CMP18] %s is no summary, as it would be none of the summarizer's", async (_, summary, expected) => {
    const hooks = new HookRegistry();
    hooks.on("before_compaction", () => ({ summary }));
    const { compact, ids } = await memory(hooks);
    expect(await compact(diligent())).toMatchObject(expected);
    expect(await ids()).toEqual(allIds);
  });

  const wordless = Object.create(null) as unknown;
  test.each<[string, () => unknown, readonly string[]]>([
    ["nothing in it", () => ({}), []],
    ["a number for a summary", () => ({ summary: 5 }), ["before_compaction"]],
    ["no object", () => "x", ["before_compaction"]],
    [
      "an error",
      () => {
        throw wordless;
      },
      ["before_compaction", "after_compaction"],
    ],
  ])("[CMP18] one that answers with %s is passed over", async (_, hook, expected) => {
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

  test("[CMP18] one that stops afterwards changes nothing, nor does a report that fails", async () => {
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

describe("options that cannot be meant", () => {
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
  ])("%s is refused before anything is asked", async (_, wrong) => {
    const { compact, ids } = await memory();
    const { requests, summarize } = diligent();
    await expect(compact({ summarize, ...wrong })).rejects.toMatchObject({ code: "invalid_arguments" });
    expect([requests, await ids()]).toEqual([[], allIds]);
  });

  test("in the smallest window a summarizer gets what was said, and its request fits", async () => {
    const { compact } = await memory();
    const { requests, summarize } = diligent();
    expect(await compact({ summarize, contextWindow: 2000 })).toMatchObject({ done: true });
    expect(requests.map(({ prompt }) => prompt).join("\n")).toContain("[User]: ask 0 ");
    const sizes = requests.map(({ system, prompt }) => textTokens(system) + textTokens(prompt));
    expect(Math.max(...sizes)).toBeLessThan(2000);
  });
});

const hangs: Summarize = () => new Promise(() => undefined);

describe("a summary that fails", () => {
  test.each<[string, Partial<CompactionOptions> & Pick<CompactionOptions, "summarize">, string]>([
    ["an error", { summarize: () => Promise.reject(new Error("overloaded")) }, "failed"],
    ["what has no words", { summarize: () => Promise.reject(Object.create(null)) }, "failed"],
    [
      "what fails again when it is asked",
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
  ])("[CMP11] by %s leaves the history whole", async (_, options, reason) => {
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
