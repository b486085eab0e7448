import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  assistant,
  contextOf,
  conversation,
  result,
  summary,
  textOfTokens,
  user,
} from "../../../test/support/conversation.ts";
import type { ContextMessage } from "../../core/context.ts";
import { compactionLimits } from "./limits.ts";
import type { CutPlan } from "./plan-cut.ts";
import { messageTokens, planCut } from "./plan-cut.ts";

// Keeps about 4,000 tokens and a whole last turn of up to 4,000 tokens. A compaction is due above 7,500 tokens.
const contextWindow = 10_000;
// Keeps about 20,000 tokens and a whole last turn of up to 90,000 tokens.
const largeWindow = 200_000;

const turn = (tokens: number): ContextMessage[] => [user(textOfTokens(tokens - 20)), assistant("yes")];
const group = (id: string, tokens: number): ContextMessage[] => [
  assistant("", id),
  result(id, textOfTokens(tokens - 20)),
];
const many = <T>(count: number, make: (index: number) => T[]): T[] =>
  Array.from({ length: count }, (_, index) => make(index)).flat();

/** Returns how many of the messages are kept. */
function kept(messages: readonly ContextMessage[], window = contextWindow): number {
  const plan = planCut(contextOf(messages), { contextWindow: window });
  if ("nothing" in plan) throw new Error(plan.nothing);
  return messages.length - messages.findIndex((_, index) => `e${index}` === plan.firstKeptEntryId);
}

describe("where a context is cut", () => {
  test.each<[string, ContextMessage[], number, number]>([
    ["turns up to the recent tokens are kept", many(10, () => turn(1150)), contextWindow, 6],
    ["the last turn is kept, even if it is larger", [...turn(9000), ...turn(30_000)], largeWindow, 2],
    [
      "it is kept even if it could be cut",
      [...turn(9000), user("go on"), ...many(10, (index) => group(`${index}`, 3000))],
      largeWindow,
      21,
    ],
    [
      "a last turn that is too large is cut after an answered group",
      [...turn(500), user("go on"), ...many(8, (index) => group(`${index}`, 1150))],
      contextWindow,
      6,
    ],
    [
      "an only turn that is too large is cut in the same way",
      [user("go on"), ...many(8, (index) => group(`${index}`, 1150))],
      contextWindow,
      6,
    ],
    [
      "after a small last turn, the one before is kept with it",
      [...turn(5000), ...turn(30_000), ...turn(50)],
      largeWindow,
      4,
    ],
    [
      "or the end of it, if it is too large",
      [user("go on"), ...many(10, (index) => group(`${index}`, 1150)), ...turn(50)],
      contextWindow,
      8,
    ],
    [
      "a last group larger than the maximum is kept alone",
      [...turn(500), user("go on"), ...group("a", 1000), ...group("b", 9000)],
      contextWindow,
      2,
    ],
    [
      "consecutive messages stay together",
      [...turn(9000), user("a hook's words"), user("and then?"), assistant("yes")],
      contextWindow,
      3,
    ],
    ["many users and no answer", many(100, () => [user(textOfTokens(200))]), contextWindow, 19],
  ])("[CMP3] %s", (_, messages, window, expected) => {
    expect(Math.abs(kept(messages, window) - expected)).toBeLessThanOrEqual(expected === 19 ? 1 : 0);
  });

  test.each<[string, ContextMessage[]]>([
    ["parallel calls", [assistant("", "a", "b", "c"), result("a"), result("b"), result("c")]],
    ["results in another order", [assistant("", "a", "b"), result("b"), result("a")]],
    ["a user message in between", [assistant("", "a", "b"), result("a"), user("wait"), result("b")]],
    ["an answer in between", [assistant("", "a"), assistant("hm"), result("a")]],
  ])("[CMP4] %s are not separated", (_, together) => {
    const large = together.map(
      (message): ContextMessage =>
        message.role === "toolResult" ? result(message.toolCallId, textOfTokens(3000)) : message,
    );
    const messages = [user("go on"), assistant("", "z"), result("z", textOfTokens(3000)), ...large];
    const plan = planCut(contextOf(messages), { contextWindow });
    expect(plan).toMatchObject({ firstKeptEntryId: "e3", splitTurn: true });
  });

  const note: ContextMessage = { role: "custom", customType: "hook", content: "a note" };
  test.each<[string, readonly ContextMessage[], boolean]>([
    ["after a result", [user("ask"), ...group("a", 6000), note], true],
    ["after an answer", [user("ask"), ...group("a", 6000), assistant("done"), note], false],
    ["after the request itself", [...turn(10), user(textOfTokens(6000)), note], true],
    ["with a request after it", [user("ask"), ...group("a", 6000), note, user("and now")], false],
  ])("[CMP16] a kept part that begins with a note %s", (_, messages, expected) => {
    const all = [...messages, ...group("z", 2500)];
    const plan = planCut(contextOf(all), { contextWindow });
    const at = all.indexOf(note);
    expect(plan).toMatchObject({ firstKeptEntryId: `e${at}`, splitTurn: expected });
  });

  test.each<[string, readonly ContextMessage[], object]>([
    ["nothing", [], { nothing: "nothing_said" }],
    ["a lone summary", [summary("x")], { nothing: "only_summary" }],
    ["recent messages", [summary("x"), ...turn(1000)], { nothing: "all_recent" }],
    ["one message", [user(textOfTokens(9000))], { nothing: "one_turn" }],
    ["one group", [user("go"), ...group("a", 9000)], { nothing: "one_turn" }],
  ])("%s cannot be cut, and the reason is given", (_, messages, expected) => {
    expect(planCut(contextOf(messages), { contextWindow })).toEqual(expected);
  });

  test("[CMP19] the previous summary and its kept part come before later messages", () => {
    const messages = [summary("so far"), ...turn(3000), ...turn(3000), ...turn(3000)];
    expect(planCut(contextOf(messages), { contextWindow })).toMatchObject({
      previousSummary: "so far",
      previousEntryId: "e0",
      entryIds: ["e1", "e2", "e3", "e4"],
      firstKeptEntryId: "e5",
      splitTurn: false,
    });
  });

  test("[CMP19] of a cut context all may be kept, but nothing that starts in the middle of a group", () => {
    const recent = [user("a"), assistant("b")];
    expect(planCut(contextOf(recent, "e0"), { contextWindow })).toMatchObject({
      firstKeptEntryId: "e0",
      toSummarize: [],
      isCut: true,
    });
    const torn = [result("x"), user("steer"), result("y"), assistant("done"), user("next")];
    expect(planCut(contextOf(torn, "e0"), { contextWindow })).toMatchObject({ firstKeptEntryId: "e4" });
    expect(planCut(contextOf([result("x")], "e0"), { contextWindow })).toEqual({ nothing: "one_turn" });
  });
});

/** Finds each call's result with a simple search. */
function pairs(messages: readonly ContextMessage[]): [number, number][] {
  return messages.flatMap((message, at): [number, number][] => {
    if (message.role !== "toolResult") return [];
    const makes = (each: ContextMessage) =>
      each.role === "assistant" &&
      each.content.some((block) => block.type === "toolCall" && block.id === message.toolCallId);
    const call = messages.findLastIndex((each, index) => index < at && makes(each));
    const isTaken = messages
      .slice(call + 1, at)
      .some((each) => each.role === "toolResult" && each.toolCallId === message.toolCallId);
    return call === -1 || isTaken ? [] : [[call, at]];
  });
}

const userRoles = ["user", "custom", "bashExecution", "branchSummary"];
const windows = fc.integer({ min: 100, max: 20_000 });

function ifPlanned(
  messages: readonly ContextMessage[],
  window: number,
  look: (plan: CutPlan, place: number) => void,
) {
  const context = contextOf(messages);
  const plan = planCut(context, { contextWindow: window });
  if (!("nothing" in plan)) look(plan, context.entryIds.indexOf(plan.firstKeptEntryId));
}

describe("any context", () => {
  test("[CMP19] the summarized and the kept messages together are all messages, in order", () => {
    fc.assert(
      fc.property(conversation, windows, (messages, window) => {
        ifPlanned(messages, window, (plan, place) => {
          const from = plan.previousSummary === null ? 0 : 1;
          expect([...plan.toSummarize, ...messages.slice(place)]).toEqual(messages.slice(from));
          expect(plan.entryIds).toEqual(messages.slice(from, place).map((_, index) => `e${index + from}`));
          expect(plan.tokensBefore).toBe(messages.reduce((sum, each) => sum + messageTokens(each), 0));
        });
      }),
    );
  });

  test("[CMP4] no call is separated from its result, and no user message from the first answer", () => {
    fc.assert(
      fc.property(conversation, windows, (messages, window) => {
        ifPlanned(messages, window, (plan, place) => {
          for (const [call, at] of pairs(messages)) expect(call < place).toBe(at < place);
          expect(messages[place]?.role).not.toBe("toolResult");
          const isUser = userRoles.includes(messages[place]?.role ?? "");
          if (!isUser) expect(plan.splitTurn).toBe(true);
          if (messages[place]?.role === "user") expect(plan.splitTurn).toBe(false);
          if (!isUser) expect(["assistant", "toolResult"]).toContain(messages[place - 1]?.role);
        });
      }),
    );
  });

  test("[CMP3] the last user turn is kept if it fits, and no more than fits if there is a choice", () => {
    fc.assert(
      fc.property(conversation, windows, (messages, window) => {
        ifPlanned(messages, window, (plan, place) => {
          const { mostKept } = compactionLimits(window);
          const isFree = (at: number) => pairs(messages).every(([call, found]) => call < at === found < at);
          const sizeFrom = (at: number) =>
            messages.slice(at).reduce((sum, message) => sum + messageTokens(message), 0);
          const starts = messages.flatMap((message, at) =>
            userRoles.includes(message.role) && isFree(at) ? [at] : [],
          );
          const last = starts.at(-1) ?? 0;
          if (sizeFrom(last) <= mostKept) expect(place).toBeLessThanOrEqual(last);
          if (plan.tokensKept > mostKept)
            expect(starts.filter((at) => at > place && sizeFrom(at) <= mostKept)).toEqual([]);
        });
      }),
    );
  });

  test("[CMP15] every cut makes progress, and cutting ends", () => {
    fc.assert(
      fc.property(conversation, windows, (given, window) => {
        let messages = given;
        for (let cuts = 0; ; cuts++) {
          const plan = planCut(contextOf(messages), { contextWindow: window, compactions: cuts % 3 });
          if ("nothing" in plan) break;
          expect(plan.toSummarize.length).toBeGreaterThan(0);
          messages = [summary("s"), ...messages.slice(messages.length - keptCount(messages, plan))];
          expect(cuts).toBeLessThanOrEqual(given.length);
        }
      }),
    );
  });

  test("[CMP3] the time to plan grows linearly", () => {
    const messages = many(50_000, (index) => [user("a"), assistant("b", `${index}`), result(`${index}`)]);
    expect(planCut(contextOf(messages), { contextWindow })).toHaveProperty("firstKeptEntryId");
  });
});

function keptCount(messages: readonly ContextMessage[], plan: CutPlan): number {
  return messages.length - Number(plan.firstKeptEntryId.slice(1));
}
