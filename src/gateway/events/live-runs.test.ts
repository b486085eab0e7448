import { describe, expect, test } from "vitest";
import {
  adminOf,
  appended,
  delta,
  ended,
  hubWorld,
  ofUser,
  readerOf,
  TestSink,
  toolCall,
  updated,
  want,
} from "../../../test/support/event-hub.ts";
import type { SkeinEvent } from "../../core/events.ts";
import { LiveRuns } from "./live-runs.ts";

const session = { userId: null, sessionId: "s-main" };
const secret = `sk-ant-api03-${"a1B2".repeat(20)}`;
type Delta = SkeinEvent<"run.delta">;

/** Simulates a run that counts the offsets of its deltas. */
function speaker(emit: (event: SkeinEvent) => void) {
  let offset = 0;
  return {
    say(text: string) {
      emit(delta(text, { offset }));
      offset += text.length;
    },
    startAnswer() {
      offset = 0;
    },
  };
}

describe("texts that are being streamed", () => {
  test("are the same for a reader that joins as for one that saw every delta", () => {
    const { hub, emit } = hubWorld();
    const sinks = { whole: new TestSink(), masked: new TestSink() };
    hub.subscribe(adminOf(null), want(ofUser(null)), sinks.whole);
    hub.subscribe(readerOf(null), want(ofUser(null)), sinks.masked);
    const { say } = speaker(emit);
    const pieces = ["Key: ", secret.slice(0, 30), secret.slice(30), " and ", "sk-ant-", "no more. ", "End."];
    for (const [index, piece] of pieces.entries()) {
      say(piece);
      // A tool call in the middle flushes held-back text, but does not end the text.
      if (index === 4) emit(toolCall({}));
      for (const [view, sink] of Object.entries(sinks)) {
        const [run] = hub.liveRuns(session, view === "whole");
        expect(run).toMatchObject({ runId: "r1", textOffset: 0, text: textIn(sink) });
      }
    }
    expect(hub.liveRuns(session, false)[0]?.text).not.toContain(secret.slice(0, 30));
    expect(hub.liveRuns({ ...session, userId: "ann" }, true)).toEqual([]);
  });

  test("are emptied by a retry, a step and the entry of the answer", () => {
    const { hub, emit } = hubWorld();
    const run = speaker(emit);
    const about = { ...ended(), code: "x", error: "y" };
    const step: SkeinEvent = {
      ...{ ...about, type: "run.step", phase: "asked", step: 2, provider: "p", model: "m" },
    };
    const ends: [SkeinEvent, object][] = [
      [
        { ...about, type: "run.retry", attempt: 1, delayMs: 0 },
        { step: 1, attempt: 2 },
      ],
      [appended("assistant", "all of it"), { step: 1, attempt: 2 }],
      [step, { step: 2, attempt: 1 }],
    ];
    for (const [event, expected] of ends) {
      run.say("something");
      expect(hub.liveRuns(session, true)[0]?.text).toBe("something");
      emit(event);
      run.startAnswer();
      expect(hub.liveRuns(session, true)[0]).toMatchObject({ ...expected, text: "", textOffset: 0 });
    }
    emit(appended("user", "and this"));
    run.say("more");
    emit(appended("user", "and that"));
    expect(hub.liveRuns(session, false)[0]?.text).toBe("more");
    emit(ended());
    expect(hub.liveRuns(session, true)).toEqual([]);
  });

  test("are gone with a redaction, and go on at the same offset", () => {
    const { hub, emit } = hubWorld();
    const { say } = speaker(emit);
    say("nobody is to know");
    emit({ ...updated(), isRedacted: true } as SkeinEvent);
    say(" the rest");
    for (const isAdmin of [true, false])
      expect(hub.liveRuns(session, isAdmin)[0]).toMatchObject({ text: " the rest", textOffset: 17 });
  });
});

describe("limits", () => {
  test("keep the end of a long text", () => {
    const live = new LiveRuns({ runs: 10, perText: 100, characters: 10_000 });
    for (let offset = 0; offset < 1000; offset += 10) live.push(delta("0123456789", { offset }) as Delta, "");
    const [run] = live.of(session, true);
    expect(run?.text.length).toBeLessThanOrEqual(125);
    expect((run?.textOffset ?? 0) + (run?.text.length ?? 0)).toBe(1000);
    expect(live.size.characters).toBe(run?.text.length);
  });

  test("drop the texts of the oldest runs, and the oldest runs themselves", () => {
    const live = new LiveRuns({ runs: 3, perText: 100, characters: 200 });
    const say = (runId: string) => live.push(delta("x".repeat(80), { runId, sessionId: runId }) as Delta, "");
    const lengths = () =>
      ["a", "b", "c", "d"].map((sessionId) => live.of({ userId: null, sessionId }, true)[0]?.text.length);
    for (const runId of ["a", "b"]) say(runId);
    expect(lengths()).toEqual([80, 80, undefined, undefined]);
    say("c");
    expect(lengths()).toEqual([0, 0, 80, undefined]);
    say("d");
    expect(lengths()[0]).toBeUndefined();
    for (const runId of ["b", "c", "d"]) live.take(ended({ runId, sessionId: runId }));
    expect(live.size).toEqual({ runs: 0, sessions: 0, characters: 0 });
  });

  test("leave out large arguments of a call", () => {
    const live = new LiveRuns();
    live.take(toolCall({ text: "x".repeat(100_000) }));
    expect(live.of(session, true)[0]?.tools).toEqual([{ toolCallId: "c", toolName: "read", since: 5 }]);
  });
});

/** Returns the text that a reader has received, assembled by offset. */
function textIn({ frames }: TestSink): string {
  return frames
    .filter(({ event }) => event === "run.delta")
    .reduce((text, { payload }) => {
      const { offset, delta: piece } = payload as unknown as Delta;
      expect(offset).toBe(text.length);
      return text + piece;
    }, "");
}
