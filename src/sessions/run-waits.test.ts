import { expect, test } from "vitest";
import { Waiting } from "./run-waits.ts";

/** A run that is either running or waiting and that rejects impossible events. */
function waitingOf(cycle: Promise<void> | null = null) {
  const run = { state: "running" };
  const waiting = new Waiting(
    {
      runs: {
        wait: async (_, { runIds }) => {
          if (runIds?.[0] === "circle") {
            await cycle;
            return { entered: false, cycle: ["circle"] };
          }
          run.state = "waiting";
          return { entered: true };
        },
      },
      worker: {
        resume: async () => {
          if (run.state !== "waiting") throw new Error(`a wait is over, and the run is ${run.state}`);
          await new Promise((resolve) => setImmediate(resolve));
          run.state = "running";
        },
      },
    },
    { runId: "r", fence: 1 },
    new AbortController().signal,
  );
  return { run, waiting };
}

const turnOver = () => new Promise((resolve) => setImmediate(resolve));

test("[LIB14] a wait that starts when the last one ends waits separately", async () => {
  const { run, waiting } = waitingOf();
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const one = waiting.while("approval", [], () => first.promise);
  await turnOver();
  first.resolve();
  const two = waiting.while("approval", [], () => second.promise);
  await one;
  await turnOver();
  expect(run.state).toBe("waiting");
  second.resolve();
  await two;
  expect(run.state).toBe("running");
});

test("[LIB14] a wait that ends while another is refused returns the slot", async () => {
  const refused = Promise.withResolvers<void>();
  const { run, waiting } = waitingOf(refused.promise);
  const first = Promise.withResolvers<void>();
  const one = waiting.while("approval", [], () => first.promise);
  await turnOver();
  const two = waiting.while("run", ["circle"], async () => undefined);
  first.resolve();
  await one;
  refused.resolve();
  expect(await two).toEqual({ entered: false, cycle: ["circle"] });
  expect(run.state).toBe("running");
});
