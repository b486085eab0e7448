import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Loose } from "../../../test/support/acp-updates.ts";
import { begun, done, ended, openedLog, said, thought } from "../../../test/support/acp-updates.ts";
import type { Entry } from "../../core/entries.ts";
import { guardedAppend } from "../../sessions/append.ts";
import { HookRegistry } from "../../sessions/hooks.ts";
import { createMemoryStore } from "../../store/memory/store.ts";
import type { Act } from "./turn-log.ts";
import type { AgentTurnEnd } from "./turn-outcome.ts";

const scope = { userId: "ann", agentId: "crab" };

/** Writes the messages with the real guard. Returns what the guard rejected, removed or added. */
async function written(acts: readonly Act[]) {
  const store = createMemoryStore();
  const hooks = new HookRegistry((_, error) => {
    throw error;
  });
  await store.sessions.create(scope, { key: "agent:crab:acp:x", sessionId: "s", cwd: "/work" });
  const troubles: string[] = [];
  for (const act of acts) {
    if (act.act === "note") await store.sessions.append(scope, "s", [{ draft: act.draft }]);
    if (act.act !== "say") continue;
    const { refused, notes } = await guardedAppend({ store, hooks }, scope, "s", act.message);
    if (refused !== null) troubles.push(refused);
    troubles.push(...notes.map(({ kind }) => kind).filter((kind) => kind !== "image_to_blob"));
  }
  const page = await store.sessions.page(scope, "s", { along: "branch", limit: 100_000 });
  return { troubles, entries: page?.entries ?? [] };
}

const messagesOf = (entries: readonly Entry[]) =>
  entries.flatMap((entry) => (entry.type === "message" ? [entry.message] : []));

function wordsOf(entries: readonly Entry[], kind: "text" | "thinking"): string {
  return messagesOf(entries)
    .flatMap((message) => (message.role === "assistant" ? message.content : []))
    .map((block) => {
      if (block.type === "text") return kind === "text" ? block.text : "";
      return block.type === "thinking" && kind === "thinking" ? block.thinking : "";
    })
    .join("");
}

/** Returns the calls and the problems: calls without a result, and results that do not directly follow their call. */
function pairing(entries: readonly Entry[]): { readonly calls: string[]; readonly problems: string[] } {
  const calls: string[] = [];
  const problems: string[] = [];
  let open = new Set<string>();
  for (const entry of entries) {
    const message = entry.type === "message" ? entry.message : null;
    if (message?.role === "toolResult") {
      if (!open.delete(message.toolCallId)) problems.push(`${message.toolCallId} answers nothing`);
      continue;
    }
    if (open.size > 0) problems.push(`${[...open].join()} had no result`);
    open = new Set();
    for (const block of message?.role === "assistant" ? message.content : []) {
      if (block.type !== "toolCall") continue;
      open.add(block.id);
      calls.push(block.id);
    }
  }
  if (open.size > 0) problems.push("calls are open at the end");
  return { calls, problems };
}

const ids = fc.constantFrom("a", "b", "c", "a-2", "", "no spaces", "x".repeat(300));
const status = fc.constantFrom(
  "pending",
  "in_progress",
  "completed",
  "failed",
  undefined,
  "of later versions",
);
const words = fc.oneof(fc.string({ maxLength: 5 }), fc.constantFrom("\ud83d", "\ude00", "/x", "\u0000"));
const content = fc.oneof(
  fc.constant(undefined),
  fc.constant(null),
  fc.array(
    fc.oneof(
      words.map((text) => ({ type: "content", content: { type: "text", text } })),
      fc.record({ type: fc.constant("diff"), path: words, newText: words }),
      fc.constant({ type: "terminal", terminalId: "t1" }),
      fc.constant({ type: "content", content: { type: "image", data: "AAAA", mimeType: "image/png" } }),
      fc.jsonValue(),
    ),
    { maxLength: 3 },
  ),
);
const callUpdate = fc.record(
  {
    sessionUpdate: fc.constantFrom("tool_call", "tool_call_update"),
    toolCallId: ids,
    status,
    content,
    title: fc.oneof(words, fc.constant(null)),
    name: fc.oneof(words, fc.constant(null)),
    kind: fc.oneof(words, fc.constantFrom("read", "edit")),
    rawInput: fc.jsonValue(),
    rawOutput: fc.jsonValue(),
    locations: fc.oneof(fc.jsonValue(), fc.constant([{ path: "/w/a", line: 1 }])),
  },
  { requiredKeys: ["sessionUpdate", "toolCallId"] },
);
const other = fc.constantFrom<Loose>(
  { sessionUpdate: "plan", entries: [{ content: "one", priority: "low", status: "pending" }] },
  { sessionUpdate: "plan", entries: "none" },
  { sessionUpdate: "notice", severity: "info", title: "mind" },
  { sessionUpdate: "compaction_update", compactionId: "k", status: "completed", summary: [] },
  { sessionUpdate: "usage_update", used: 1, size: 2, cost: { amount: 1, currency: "USD" } },
  { sessionUpdate: "user_message_chunk", content: { type: "text", text: "echo" } },
  { sessionUpdate: "of later versions" },
);
const wordUpdate = fc
  .tuple(fc.boolean(), words, fc.constantFrom("m1", "m2", undefined))
  .map(([isThought, text, messageId]) => (isThought ? thought(text) : said(text, messageId)));
const update: fc.Arbitrary<Loose> = fc.oneof(
  { weight: 5, arbitrary: callUpdate as fc.Arbitrary<Loose> },
  { weight: 4, arbitrary: wordUpdate },
  { weight: 1, arbitrary: other },
  { weight: 1, arbitrary: fc.jsonValue() as unknown as fc.Arbitrary<Loose> },
);
const ending: fc.Arbitrary<AgentTurnEnd> = fc.oneof(
  fc
    .tuple(
      fc.constantFrom("end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"),
      fc.jsonValue(),
    )
    .map(([stopReason, usage]) => ({ stopReason, usage })),
  fc.constant<AgentTurnEnd>({ stopReason: "cancelled" }),
  fc.string().map((failed) => ({ failed })),
);

const textOfUpdate = (each: Loose, kind: string) =>
  each?.sessionUpdate === kind ? ((each.content as { text?: string }).text ?? "") : "";

describe("any sequence of updates", () => {
  it("leaves a session in which every call has its result and nothing was refused", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(update, { maxLength: 40 }), ending, async (updates, end) => {
        const { log, take } = openedLog();
        const acts = [...take(...updates), ...log.end(end).acts];
        const { troubles, entries } = await written(acts);
        const { calls, problems } = pairing(entries);
        expect([troubles, problems]).toEqual([[], []]);
        expect(new Set(calls).size).toBe(calls.length);
        const told = (type: string) =>
          acts.flatMap((act) =>
            act.act === "emit" && act.event.type === type && "call" in act.event ? [act.event.call.id] : [],
          );
        expect(told("tool_call").toSorted()).toEqual(calls.toSorted());
        expect(told("tool_result").toSorted()).toEqual(calls.toSorted());
        const last = messagesOf(entries).at(-1);
        expect(last).toMatchObject({ role: "assistant" });
        expect(last?.role === "assistant" && last.stopReason !== "toolUse").toBe(true);
      }),
    );
  });

  it("leaves every chunk in the session once and in order", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(update, { maxLength: 40 }), ending, async (updates, end) => {
        const { log, take } = openedLog();
        const { entries } = await written([...take(...updates), ...log.end(end).acts]);
        const chunks = (kind: string) => updates.map((each) => textOfUpdate(each, kind)).join("");
        expect(wordsOf(entries, "text")).toBe(chunks("agent_message_chunk"));
        expect(wordsOf(entries, "thinking")).toBe(chunks("agent_thought_chunk"));
      }),
    );
  });

  it("produces a number of writes proportional to the updates", () => {
    fc.assert(
      fc.property(fc.array(update, { maxLength: 200 }), ending, (updates, end) => {
        const { log, take } = openedLog();
        const acts = [...take(...updates), ...log.end(end).acts];
        expect(acts.length).toBeLessThanOrEqual(6 * updates.length + 2);
        expect(JSON.stringify(acts).length).toBeLessThanOrEqual(10 * JSON.stringify(updates).length + 20_000);
      }),
    );
  });
});

describe("large amounts", () => {
  it("loses no call to the guard among hundreds of calls and thousands of notices", async () => {
    const { log, take } = openedLog();
    const notices = Array.from({ length: 2000 }, () => ({ sessionUpdate: "notice", title: "mind" }));
    const calls = Array.from({ length: 350 }, (_, at) => `c${at}`);
    const acts = take(
      ...calls.map((id) => begun(id)),
      ended("c7"),
      ...notices,
      ...calls.map((id) => ended(id)),
    );
    const { troubles, entries } = await written([...acts, ...log.end(done).acts]);
    expect([troubles, pairing(entries).problems]).toEqual([[], []]);
    expect(pairing(entries).calls).toHaveLength(350);
  });

  it("keeps the head and tail of fifty megabytes, in one chunk or in many", () => {
    for (const size of [50_000_000, 50]) {
      const { log } = openedLog();
      const chunk = said("x".repeat(size)) as unknown as Parameters<typeof log.take>[0];
      log.take(said("begin ") as unknown as typeof chunk);
      for (let at = 0; at < 50_000_000 / size; at++) log.take(chunk);
      log.take(said(" end") as unknown as typeof chunk);
      const { acts, reply } = log.end(done);
      const [last] = acts;
      const content = last?.act === "say" && last.message.role === "assistant" ? last.message.content : [];
      expect(content).toEqual([{ type: "text", text: reply }]);
      expect(reply.length).toBeLessThan(401_000);
      expect(reply).toMatch(/^begin x+\n\[… 49600010 characters omitted …\]\nx+ end$/);
    }
  });

  it("limits the text of a step, however its parts alternate", () => {
    const { log } = openedLog();
    for (let at = 0; at < 300_000; at++)
      log.take(
        (at % 2 === 0 ? said("12345") : thought("67890")) as unknown as Parameters<typeof log.take>[0],
      );
    const { acts } = log.end(done);
    expect(acts.at(-1)).toMatchObject({ act: "say" });
    const blocks = JSON.stringify(acts.at(-1)).match(/12345|67890/g) ?? [];
    expect(blocks.length).toBeLessThanOrEqual(80_000);
    expect(JSON.stringify(acts.at(-1))).toContain("1100000 characters omitted");
  });

  it("lets twenty thousand steps wait for one call, and then writes them", () => {
    const { log, take } = openedLog();
    take(begun("slow"), begun("x"), ended("x"));
    let count = 0;
    const say = (acts: readonly Act[]) => {
      count += acts.filter(({ act }) => act === "say").length;
    };
    for (let at = 0; at < 20_000; at++) say(take(begun("x"), ended("x")));
    expect(count).toBe(0);
    say(take(ended("slow")));
    expect(count).toBe(40_001);
    say(log.end(done).acts);
    expect(count).toBe(40_002);
  });

  it("writes interdependent steps without visiting them again", () => {
    const { log, take } = openedLog();
    const most = 10_000;
    for (let at = 0; at < most; at++) take(begun(`slow${at}`), begun("x"), ended("x"));
    let count = 0;
    for (let at = 0; at < most; at++)
      count += take(ended(`slow${at}`)).filter(({ act }) => act === "say").length;
    expect(count).toBe(3 * most - 2);
    expect(log.end(done).acts).toHaveLength(1);
  });
});
