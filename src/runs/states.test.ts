import { describe, expect, test } from "vitest";
import { SkeinError } from "../core/errors.ts";
import type { RunState } from "./contract.ts";
import type { RunEvent } from "./states.ts";
import { endStates, isEnded, mostLost, nextState, openStates, runEvents, runStates } from "./states.ts";

/**
 * The table from the specification, with one row per state and the events in `runEvents` order. `-` is impossible, `.`
 * is ignored.
 */
const table: Record<RunState, string> = {
  queued: "running merged - - - - - error timeout aborted -",
  running: "- - waiting - sleeping - ok error timeout aborted queued",
  waiting: "- - - running - - - error timeout aborted queued",
  sleeping: "- - - - - queued - error - aborted -",
  ok: ". . . . . . . . . . .",
  error: ". . . . . . . . . . .",
  timeout: ". . . . . . . . . . .",
  aborted: ". . . . . . . . . . .",
  merged: ". . . . . . . . . . .",
};

const cells = Object.entries(table).flatMap(([state, row]) =>
  row.split(" ").map((cell, column) => [state as RunState, runEvents[column] as RunEvent, cell] as const),
);

const fact = (state: RunState) => ({ runId: "r", state, lost: 0, startedAt: 1 });

describe("the states of a run", () => {
  test("the transition table is total", () => {
    expect(cells.length).toBe(9 * 11);
    expect(Object.keys(runStates).toSorted()).toEqual(Object.keys(table).toSorted());
    for (const row of Object.values(runStates)) expect(Object.keys(row)).toEqual([...runEvents]);
  });

  test.each(cells)("%s, %s: %s", (state, event, cell) => {
    if (cell !== "-") {
      expect(nextState(fact(state), event)).toBe(cell === "." ? null : cell);
      return;
    }
    expect(() => nextState(fact(state), event)).toThrow(SkeinError);
    expect(() => nextState(fact(state), event)).toThrow(
      `Run r is ${state}, so the event "${event}" is not allowed`,
    );
  });

  test("a run that was never claimed does not time out", () => {
    expect(() => nextState({ ...fact("queued"), startedAt: null }, "deadline")).toThrow(SkeinError);
  });

  test("[ANS4] the fourth loss of an owner is an error", () => {
    const after = [0, 1, 2, 3].map((lost) => nextState({ ...fact("running"), lost }, "lease_lost"));
    expect(after).toEqual(["queued", "queued", "queued", "error"]);
    expect(mostLost).toBe(3);
  });

  test("a state is final if it has no transitions", () => {
    const ended = Object.keys(table).filter((state) => isEnded(state as RunState));
    expect(ended).toEqual(["ok", "error", "timeout", "aborted", "merged"]);
    expect([...openStates, ...endStates]).toEqual(Object.keys(table));
  });
});
