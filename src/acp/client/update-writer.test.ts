import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { begun, said, thought } from "../../../test/support/acp-updates.ts";
import type { Turn } from "../../agents/contract.ts";
import { TurnLog } from "./turn-log.ts";
import { UpdateWriter } from "./update-writer.ts";

interface Told {
  readonly type: string;
  readonly kind?: string;
  readonly delta?: string;
}

function opened() {
  const told: Told[] = [];
  const turn = { emit: (event: Told) => void told.push(event) } as unknown as Turn;
  const log = new TurnLog({ agent: "a", terminalText: () => null, now: () => 0, costBefore: 0 });
  const writer = new UpdateWriter(turn, log, (error) => {
    throw error;
  });
  return { told, writer };
}

const brief = (told: readonly Told[]) => told.map(({ type, kind, delta }) => [kind ?? type, delta ?? ""]);

test("sends text of one kind that arrives at once in one piece of bounded size", async () => {
  const { told, writer } = opened();
  const words = Array.from({ length: 20_000 }, (_, at) => `${at} `);
  for (const word of words) writer.push(said(word), 1);
  await writer.settled();
  expect(told.map(({ delta }) => delta).join("")).toBe(words.join(""));
  expect(told.length).toBeLessThan(10);
  for (const { delta = "" } of told) expect(delta.length).toBeLessThanOrEqual(32_768);
});

test("keeps the order of updates, including other updates between texts", async () => {
  const { told, writer } = opened();
  for (const update of [said("a"), said("b"), thought("c"), begun("x", { rawInput: { a: 1 } }), thought("d")])
    writer.push(update, 1);
  await writer.settled();
  expect(brief(told)).toEqual([
    ["text", "ab"],
    ["thinking", "c"],
    ["tool_call", ""],
    ["thinking", "d"],
  ]);
});

test("sends text in the next turn of the event loop without waiting for more", async () => {
  const { told, writer } = opened();
  writer.push(said("a"), 1);
  await nextTurn();
  await nextTurn();
  expect(brief(told)).toEqual([["text", "a"]]);
  writer.push(said("b"), 1);
  await writer.settled();
  expect(brief(told).at(-1)).toEqual(["text", "b"]);
});
