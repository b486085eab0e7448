import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ReceivedEvent } from "../protocol/calls.ts";
import { EventQueue } from "./event-queue.ts";

const made = (event: string, seq: number) => ({ event, seq, payload: {} }) as unknown as ReceivedEvent;

function all(queue: EventQueue): ReceivedEvent[] {
  const taken: ReceivedEvent[] = [];
  for (let next = queue.take(); next !== null; next = queue.take()) taken.push(next);
  return taken;
}
const told = (events: readonly ReceivedEvent[]) =>
  events.map(({ event, seq, payload }) =>
    event === "gap" ? `gap ${payload.after}-${payload.upTo}` : `${event} ${seq}`,
  );

describe("the queue of a stream", () => {
  test("when full, drops events that may be lost, and puts a gap there", () => {
    const queue = new EventQueue(5);
    for (const [at, name] of ["run.started", "run.delta", "run.tool", "run.delta", "run.delta"].entries()) {
      queue.push(made(name, at + 1));
    }
    queue.push(made("run.ended", 6));
    expect(told(all(queue))).toEqual(["run.started 1", "gap 1-5", "run.tool 3", "run.ended 6"]);
  });

  test("when full of events that may not be lost, replaces all by one gap", () => {
    const queue = new EventQueue(3);
    for (const seq of [4, 5, 6, 7]) queue.push(made("run.ended", seq));
    expect(told(all(queue))).toEqual(["gap 3-6", "run.ended 7"]);
  });

  test("never exceeds its size; each event is delivered once and in order, or covered by a gap", () => {
    const name = fc.constantFrom("run.delta", "run.ended", "take");
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 8 }), fc.array(name, { maxLength: 80 }), (most, acts) => {
        const queue = new EventQueue(most);
        const taken: ReceivedEvent[] = [];
        let seq = 0;
        for (const act of acts) {
          const next = act === "take" ? queue.take() : null;
          if (next !== null) taken.push(next);
          if (act !== "take") queue.push(made(act, ++seq));
        }
        const rest = all(queue);
        expect(rest.length).toBeLessThanOrEqual(Math.max(2, most));
        taken.push(...rest);
        const seqs = taken.filter(({ event }) => event !== "gap").map((each) => each.seq);
        expect(seqs).toEqual([...new Set(seqs)].toSorted((a, b) => a - b));
        for (let each = 1; each <= seq; each++) {
          const isCovered = taken.some(
            ({ event, payload }) => event === "gap" && payload.after < each && each <= payload.upTo,
          );
          expect(seqs.includes(each) || isCovered).toBe(true);
        }
      }),
    );
  });
});
