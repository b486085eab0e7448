import { expect, test } from "vitest";
import type { Claim, HeldRun, Outcome } from "../runs/contract.ts";
import { RunStopped } from "../runs/worker.ts";
import { stopInTime } from "./run-outcome.ts";

const run = { runId: "r1", fence: 2, options: {}, deadline: 1, startedAt: 0, session: { agentId: "main" } };
const claim = { run, held: { runId: "r1", fence: 2 } } as unknown as Claim;

function watched() {
  const done: unknown[] = [];
  const runs = {
    end: async (held: HeldRun, outcome: Outcome) => {
      done.push(["end", held, outcome]);
      return outcome;
    },
    release: async (held: unknown) => void done.push(["release", held]),
  };
  return { done, runs };
}

test.each([
  ["aborted", ["end", { runId: "r1", fence: 2 }, { state: "aborted" }]],
  ["timeout", ["end", { runId: "r1", fence: 2 }, { state: "timeout" }]],
  ["closing", ["release", { runId: "r1", fence: 2 }]],
] as const)(
  "[LIB11] %s: a hanging turn is abandoned, and the run is settled without it",
  async (why, expected) => {
    const { done, runs } = watched();
    const stop = new AbortController();
    const hangs = stopInTime(
      () => new Promise(() => undefined),
      runs,
      () => undefined,
      1,
    );
    const running = hangs(claim, stop.signal);
    stop.abort(new RunStopped(why));
    await running;
    expect(done).toMatchObject([expected]);
  },
);

test("[LIB11] a run that reacts to the signal ends by itself, and a run of another owner is not touched", async () => {
  const { done, runs } = watched();
  const listening = stopInTime(
    async () => undefined,
    runs,
    () => undefined,
    1,
  );
  await listening(claim, AbortSignal.abort(new RunStopped("aborted")));
  const lost = stopInTime(
    () => new Promise(() => undefined),
    runs,
    () => undefined,
    1,
  );
  await lost(claim, AbortSignal.abort(new RunStopped("lost")));
  const failing = stopInTime(
    async () => Promise.reject(new Error("broken")),
    runs,
    () => undefined,
    1,
  );
  await expect(failing(claim, new AbortController().signal)).rejects.toThrow("broken");
  expect(done).toEqual([]);
});
