import fc from "fast-check";
import { expect, test } from "vitest";
import { anyTurns, run } from "../../../test/support/sized-turns.ts";
import { parseKey } from "../../core/keys.ts";
import type { TranscriptMessage } from "../contract.ts";
import { limitHistory, resolveHistoryLimit } from "./limit-history.ts";

const user = (content: string): TranscriptMessage => ({ role: "user", content });
const answer = (text: string): TranscriptMessage => ({
  role: "assistant",
  content: [{ type: "text", text }],
});

const limited = (messages: readonly TranscriptMessage[], limit?: number) =>
  run(
    (each, record) =>
      limitHistory(each, { historyLimit: limit, record } as Parameters<typeof limitHistory>[1]),
    messages,
    "limitHistory",
  );

test("[SIZ1] keeps the last user turns, a group of user messages being one", () => {
  const talk = [answer("hi"), user("a"), answer("A"), user("b1"), user("b2"), answer("B"), user("c")];
  expect(limited(talk, 2).messages).toEqual(talk.slice(3));
  expect(limited(talk, 1).messages).toEqual(talk.slice(6));
  for (const limit of [3, 4, 99, undefined, Number.POSITIVE_INFINITY, Number.NaN]) {
    expect(limited(talk, limit).messages).toBe(talk);
  }
});

test("[SIZ1] a message steered into the last turn does not separate it from its start", () => {
  const call: TranscriptMessage = {
    role: "assistant",
    content: [{ type: "toolCall", id: "c1", name: "look", arguments: {} }],
  };
  const result: TranscriptMessage = { role: "toolResult", toolCallId: "c1", toolName: "look", content: [] };
  const talk = [user("a"), answer("A"), user("b"), call, result, user("c"), answer("B"), user("d")];
  expect(limited(talk.slice(0, 6), 1).messages).toEqual(talk.slice(2, 6));
  expect(limited(talk, 1).messages).toEqual(talk.slice(7));
  expect(limited(talk, 2).messages).toEqual(talk.slice(5));
});

test("[SIZ1] everything omitted is reported as one change, with numbers", () => {
  const talk = [answer("hi"), user("a"), answer("A"), user("b"), answer("B"), user("c")];
  expect(limited(talk, 1).changes).toEqual([
    {
      step: "limitHistory",
      kind: "history_limited",
      note: "Omitted: 5 older messages with 2 user turns. Kept: the last 1.",
    },
  ]);
  expect(limited(talk, 3).changes).toEqual([]);
});

test("[SIZ1] keeps the last user turn for any limit", () => {
  const talk = [user("a"), answer("A"), user("b")];
  for (const limit of [0, -5, 0.5]) expect(limited(talk, limit).messages).toEqual([user("b")]);
  expect(limited([answer("x")], 1).messages).toEqual([answer("x")]);
  expect(limited([], 1).messages).toEqual([]);
});

test("[SIZ1] [TR16] the end is never touched, and a second pass changes nothing", () => {
  fc.assert(
    fc.property(anyTurns, fc.integer({ min: -1, max: 8 }), (messages, limit) => {
      const once = limited(messages, limit);
      expect(once.messages).toEqual(messages.slice(messages.length - once.messages.length));
      expect(once.changes.length === 0).toBe(once.messages === messages);
      const twice = limited(once.messages, limit);
      expect(twice).toEqual({ messages: once.messages, changes: [] });
      expect(twice.messages).toBe(once.messages);
    }),
  );
});

const channels = {
  slack: {
    historyLimit: 50,
    dmHistoryLimit: 100,
    dms: { U1: { historyLimit: 7 }, U2: { historyLimit: null }, U3: {} },
  },
  matrix: { dms: { "@a:b.org": { historyLimit: 3 } } },
  silent: { historyLimit: null, dmHistoryLimit: null, dms: {} },
};

test.each([
  ["slack:group:G1", 50],
  ["slack:channel:C1", 50],
  ["slack:channel:C1:thread:9", 50],
  ["slack:user:U1", 7],
  ["slack:user:U1:thread:9", 7],
  ["slack:work:user:U1", 7],
  ["slack:user:U2", 100],
  ["slack:user:U3", 100],
  ["slack:user:U9", 100],
  ["matrix:user:@a%3Ab.org", 3],
  ["matrix:user:@c%3Ab.org", undefined],
  ["matrix:group:G1", undefined],
  ["silent:group:G1", undefined],
  ["silent:user:U1", undefined],
  ["Slack:group:G1", undefined],
  ["irc:group:G1", undefined],
  ["constructor:group:G1", undefined],
  ["slack:user:toString", 100],
  ["user:U1", undefined],
  ["main", undefined],
  ["session:slack", undefined],
  ["cron:slack", undefined],
])("agent:main:%s has the limit %s", (rest, limit) => {
  expect(resolveHistoryLimit(parseKey(`agent:main:${rest}`), channels)).toBe(limit);
});

test("the shared session has no limit", () => {
  expect(resolveHistoryLimit(parseKey("global"), channels)).toBeUndefined();
});
