import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyTurns, kinds, run } from "../../../test/support/sized-turns.ts";
import { textOf } from "../../core/messages.ts";
import type { PruningOptions, TranscriptMessage } from "../contract.ts";
import { estimateTokens } from "../estimate-tokens.ts";
import { clearedText, pruneContext, prunedResults } from "./prune-context.ts";

const minute = 60_000;
const cold: PruningOptions = { mode: "cache-ttl", ttlMs: 5 * minute, lastCallAt: 0, now: 5 * minute };
const user: TranscriptMessage = { role: "user", content: "and now?" };

function call(id: string, name = "read", timestamp?: number): TranscriptMessage {
  const content = [{ type: "toolCall" as const, id, name, arguments: {} }];
  return { role: "assistant", content, ...(timestamp === undefined ? {} : { timestamp }) };
}

function result(
  id: string,
  length: number,
  name = "read",
  more: { type: "image" }[] = [],
): TranscriptMessage {
  const text = `${id}<${"x".repeat(Math.max(0, length - 2 - 2 * id.length))}>${id}`;
  const content = [{ type: "text" as const, text }, ...more];
  return { role: "toolResult", toolCallId: id, toolName: name, content, isError: false } as TranscriptMessage;
}

/** A user message, then calls with results of these lengths, then three answers that protect no other result. */
function talk(...sizes: number[]): TranscriptMessage[] {
  const steps = sizes.flatMap((size, index) => [call(`c${index}`), result(`c${index}`, size)]);
  return [
    user,
    ...steps,
    call("x"),
    result("x", 9000),
    call("y"),
    result("y", 9000),
    call("z"),
    result("z", 9000),
  ];
}

const pruned = (messages: readonly TranscriptMessage[], contextWindow?: number, pruning?: PruningOptions) =>
  run(
    (each, record) =>
      pruneContext(each, { pruning, contextWindow, record } as Parameters<typeof pruneContext>[1]),
    messages,
    "pruneContext",
  );

const textsOf = (messages: readonly TranscriptMessage[]) =>
  messages.filter(({ role }) => role === "toolResult").map(({ content }) => textOf(content));

describe("pruneContext", () => {
  test("does nothing if it is off, without a window, or with a warm cache", () => {
    const long = talk(50_000, 50_000);
    for (const [window, pruning] of [
      [1000, undefined],
      [1000, { ...cold, mode: "off" }],
      [undefined, cold],
      [1000, { ...cold, now: 5 * minute - 1 }],
      [1000, { ...cold, now: -1 }],
    ] as const) {
      expect(pruned(long, window, pruning)).toEqual({ messages: long, changes: [] });
      expect(pruned(long, window, pruning).messages).toBe(long);
    }
    expect(pruned(long, 1000, cold).changes).not.toEqual([]);
  });

  test("without a known call, an answer younger than the cache time means warm", () => {
    const unknown = { ...cold, lastCallAt: null, now: 60 * minute };
    const answered = (timestamp?: number) => [...talk(50_000), call("w", "read", timestamp)];
    expect(pruned(answered(56 * minute), 1000, unknown).changes).toEqual([]);
    expect(pruned(answered(55 * minute), 1000, unknown).changes).not.toEqual([]);
    expect(pruned(answered(), 1000, unknown).changes).not.toEqual([]);
  });

  test("over 30 %, long results keep 1,500 characters at each end", () => {
    const messages = talk(4000, 4001, 20_000);
    const tokens = estimateTokens(messages);
    const { messages: after, changes } = pruned(messages, Math.ceil(tokens / 0.3), cold);
    expect(changes).toEqual([]);
    expect(after).toBe(messages);
    const { messages: trimmed, changes: told } = pruned(messages, Math.floor(tokens / 0.31), cold);
    const [kept, first, second, ...last] = textsOf(trimmed);
    expect(kept).toHaveLength(4000);
    expect(first).toMatch(/^c1<x{1497}\n\[… 1001 characters of an old tool result left out …\]\nx{1497}>c1$/);
    expect(second).toMatch(/^c2<x{1497}\n\[… 17000 characters of .*\nx{1497}>c2$/);
    expect(last).toEqual(textsOf(messages).slice(3));
    expect(told).toEqual([
      expect.objectContaining({ entryId: "4", kind: "result_trimmed" }),
      {
        step: "pruneContext",
        entryId: "6",
        kind: "result_trimmed",
        note: "An old result from read with 20000 characters is truncated to its head and tail.",
      },
    ]);
  });

  test("if still over 50 %, the oldest are cleared until it is not", () => {
    const many = Array.from({ length: 20 }, () => 4000);
    const { messages, changes } = pruned(talk(...many), 40_000, cold);
    expect(new Set(kinds(changes))).toEqual(new Set(["result_cleared"]));
    const texts = textsOf(messages);
    const count = texts.filter((text) => text === clearedText).length;
    expect(texts.slice(0, count).every((text) => text === clearedText)).toBe(true);
    expect(count).toBeGreaterThan(0);
    expect(count).toBeLessThan(20);
    expect(texts.slice(count)).toEqual(textsOf(talk(...many)).slice(count));
  });

  test("clears only if 50,000 characters can be saved", () => {
    const twelve = Array.from({ length: 12 }, () => 4000);
    expect(pruned(talk(...twelve), 1000, cold).changes).toEqual([]);
    expect(pruned(talk(...twelve, 2000), 1000, cold).changes).toHaveLength(13);
    const thirteen = pruned(talk(...twelve, 1999), 1000, cold);
    expect(thirteen.changes).toEqual([]);
  });

  test("images of a trimmed or cleared result become a text", () => {
    const image = { type: "image", data: "aGk=", mimeType: "image/png" } as const;
    const withImages = [user, call("a"), result("a", 5000, "read", [image, image]), ...talk().slice(1)];
    const [trimmed] = pruned(withImages, 1000, cold).messages.filter(({ role }) => role === "toolResult");
    expect(trimmed?.content).toEqual([
      { type: "text", text: expect.stringContaining("characters of an old tool result left out") },
      { type: "text", text: "[2 images from an old tool result left out]" },
    ]);
    const small = [
      user,
      call("a"),
      result("a", 10, "read", [image]),
      ...talk(...Array(13).fill(4000)).slice(1),
    ];
    const [cleared] = pruned(small, 1000, cold).messages.filter(({ role }) => role === "toolResult");
    expect(cleared?.content).toEqual([{ type: "text", text: clearedText }]);
  });

  test("leaves everything before the first user message, and the last three assistant turns", () => {
    const before = [call("a"), result("a", 9000)];
    const messages = [...before, ...talk(9000)];
    const { messages: after, changes } = pruned(messages, 1000, cold);
    expect(changes).toHaveLength(1);
    expect(after.filter((each, index) => each !== messages[index])).toEqual([
      expect.objectContaining({ toolCallId: "c0" }),
    ]);
    expect(pruned(talk(), 1000, cold).changes).toEqual([]);
    expect(pruned([...before, call("b"), result("b", 9000)], 10, cold).changes).toEqual([]);
    const inARow = [
      user,
      call("a"),
      result("a", 9000),
      call("b"),
      call("c"),
      user,
      call("d"),
      user,
      call("e"),
    ];
    expect(pruned(inARow, 1000, cold).changes).toHaveLength(1);
    expect(pruned(inARow.slice(0, 7), 1000, cold).changes).toEqual([]);
  });

  test("prunes only tools that are allowed and not denied", () => {
    const tools = ["read_file", "read_dir", "web_search"];
    const steps = tools.flatMap((name) => [call(name, name), result(name, 9000, name)]);
    const messages = [user, ...steps, ...talk().slice(1)];
    const touched = (globs: Pick<PruningOptions, "allow" | "deny">) =>
      pruned(messages, 1000, { ...cold, ...globs }).changes.map(({ note }) => note.split(" ")[4]);
    expect(touched({})).toEqual(tools);
    expect(touched({ allow: [], deny: [] })).toEqual(tools);
    expect(touched({ allow: ["read_*"] })).toEqual(["read_file", "read_dir"]);
    expect(touched({ deny: ["read_*"] })).toEqual(["web_search"]);
    expect(touched({ allow: ["*"], deny: ["web_?earch", "read_dir"] })).toEqual(["read_file"]);
    expect(touched({ allow: ["write_*"] })).toEqual([]);
  });

  test("[XRW1] results that the last request pruned stay pruned while the cache is warm", () => {
    const messages = talk(...Array(20).fill(4000), 9000);
    const first = pruned(messages, 40_000, cold);
    const remembered = prunedResults(first.messages);
    expect(new Set(remembered.values())).toEqual(new Set(["trimmed", "cleared"]));
    const longer = [...messages, user, call("n"), result("n", 9000), call("o"), result("o", 9000)];
    const warm = { ...cold, lastCallAt: cold.now, pruned: remembered };
    const second = pruned(longer, 40_000, warm);
    expect(second.messages.slice(0, messages.length)).toEqual(first.messages);
    expect(second.messages.slice(messages.length)).toEqual(longer.slice(messages.length));
    expect(prunedResults(second.messages)).toEqual(remembered);
    expect(pruned(second.messages, 40_000, warm).messages).toBe(second.messages);
  });

  test("[TR16] only old results change, and a second pass changes nothing", () => {
    const options = fc.record({
      now: fc.nat(1_000_000),
      lastCallAt: fc.option(fc.nat(1_000_000)),
      ttlMs: fc.nat(100_000),
      window: fc.integer({ min: 1, max: 60_000 }),
      pruned: fc.dictionary(
        fc.constantFrom("a", "b", "c"),
        fc.constantFrom("trimmed" as const, "cleared" as const),
      ),
    });
    fc.assert(
      fc.property(
        fc.array(anyTurns, { maxLength: 5 }),
        options,
        (parts, { window, pruned: before, ...times }) => {
          const messages = parts.flat();
          const pruning = { mode: "cache-ttl" as const, ...times, pruned: new Map(Object.entries(before)) };
          const once = pruned(messages, window, pruning);
          expect(once.messages).toHaveLength(messages.length);
          expect(once.changes.length === 0).toBe(once.messages === messages);
          for (const [index, message] of once.messages.entries()) {
            if (messages[index]?.role !== "toolResult") expect(message).toBe(messages[index]);
          }
          const twice = pruned(once.messages, window, pruning);
          expect(twice.changes).toEqual([]);
          expect(twice.messages).toBe(once.messages);
        },
      ),
    );
  });
});

test("[TR16] ten times the messages take ten times the steps, not a hundred", () => {
  const looksAt = (count: number) => {
    let looks = 0;
    const messages = Array.from({ length: count }, (_, index): TranscriptMessage[] => [
      user,
      call(`c${index}`),
      result(`c${index}`, 5000),
    ]).flat();
    const watched = new Proxy(messages, {
      get: (target, name) => {
        looks++;
        return Reflect.get(target, name);
      },
    });
    pruned(watched, 1000, cold);
    return looks;
  };
  expect(looksAt(1000)).toBeLessThan(11 * looksAt(100));
});
