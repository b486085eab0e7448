import { describe, expect, test } from "vitest";
import type { SkeinEvent } from "../../core/events.ts";
import type { EventStream, ReceivedEvent } from "../../protocol/calls.ts";
import { RunEvents } from "./watch-run.ts";

/** Returns a stream that yields these events and then ends or fails. */
function streamOf(events: readonly object[], error?: Error): EventStream {
  return {
    ready: error === undefined ? Promise.resolve() : Promise.reject(error),
    close: () => undefined,
    async *[Symbol.asyncIterator]() {
      for (const each of events) yield each as ReceivedEvent;
      if (error !== undefined) throw error;
    },
  };
}

const about = { at: 1, sessionKey: "agent:main:main", sessionId: "s", runId: "r" };
const delta = (text: string) => ({
  event: "run.delta",
  payload: { ...about, kind: "text", delta: text },
  seq: 1,
});
const asked = { event: "run.step", payload: { ...about, phase: "asked" }, seq: 1 };
const retry = { event: "run.retry", payload: { ...about, attempt: 1 }, seq: 1 };
const gap = { event: "gap", payload: { after: 1, upTo: 2, reason: "slow" }, seq: 2 };

describe("watching a run", () => {
  test.each([
    ["in pieces", [delta("good "), delta("morning")], true],
    ["after another answer of the run", [delta("I look."), asked, delta("good\nmorning")], true],
    ["restarted", [delta("goo"), retry, delta("good morning")], true],
    ["with a piece lost", [delta("good "), gap], false],
    ["not at all", [], false],
  ])("an answer that came %s: is complete, or known to be incomplete", async (_, events, all) => {
    const heard = new RunEvents(streamOf(events), undefined, () => undefined);
    await heard.waitForEnd("r");
    expect(heard.hasWholeReply("r", "good morning")).toBe(all);
  });

  test("a caller without permission is ready at once, and waits for nothing", async () => {
    const heard = new RunEvents(streamOf([], new Error("forbidden")), undefined, () => undefined);
    await heard.ready;
    await heard.waitForEnd("r");
    expect(heard.hasWholeReply("r", "x")).toBe(false);
  });

  test("excludes events of other users", async () => {
    const events: SkeinEvent[] = [];
    const theirs = { ...asked, payload: { ...asked.payload, userId: "bob" } };
    const hers = { ...asked, payload: { ...asked.payload, userId: "ann" } };
    const heard = new RunEvents(streamOf([theirs, hers]), "ann", (event) => events.push(event));
    await heard.waitForEnd("r");
    expect(events).toMatchObject([{ type: "run.step", userId: "ann" }]);
  });
});
