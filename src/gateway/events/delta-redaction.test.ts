import fc from "fast-check";
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
import { createRedactor } from "../../access/redaction/redactor.ts";
import type { SkeinEvent } from "../../core/events.ts";
import { DeltaRedaction } from "./delta-redaction.ts";

const secret = `sk-ant-api03-${"a1B2".repeat(20)}`;
const redactor = createRedactor();

function readers() {
  const world = hubWorld();
  const [plain, admin] = [new TestSink(), new TestSink()];
  world.hub.subscribe(readerOf(null), want(ofUser(null)), plain);
  world.hub.subscribe(adminOf(null), want(ofUser(null)), admin);
  return { ...world, plain, admin };
}

function textOf({ frames }: TestSink, kind = "text", runId = "r1"): string {
  const payloads = frames.filter(({ event }) => event === "run.delta").map(({ payload }) => payload);
  return (payloads as SkeinEvent<"run.delta">[])
    .filter((each) => each.kind === kind && each.runId === runId)
    .map((each) => each.delta)
    .join("");
}

const retry = { ...ended(), type: "run.retry" as const, attempt: 1, delayMs: 0, code: "x", error: "y" };

describe("streamed text", () => {
  test("is redacted for readers without the scope admin, however it was split, and complete before the answer", () => {
    const words = fc.array(
      fc.constantFrom("Here ", "it is: ", secret, "\n", "password=hunter2hunter2 ", "sk-"),
      {
        maxLength: 6,
      },
    );
    const pieces = fc.tuple(words, fc.array(fc.nat(400), { maxLength: 8 }));
    const ends = fc.constantFrom(ended(), toolCall({}), appended("assistant", "all of it"));
    fc.assert(
      fc.property(pieces, pieces, ends, (text, thinking, end) => {
        const { emit, plain, admin } = readers();
        const queue = [...cut(text, "text"), ...cut(thinking, "thinking")];
        for (const event of queue) emit(event);
        emit(end);
        expect(textOf(admin)).toBe(text[0].join(""));
        expect(textOf(plain)).toBe(redactor.redact(text[0].join("")).text);
        expect(textOf(plain, "thinking")).toBe(redactor.redact(thinking[0].join("")).text);
        expect(plain.frames.at(-1)?.event).toBe(end.type);
        expect(plain.seqs).toEqual(plain.seqs.toSorted((a, b) => a - b));
        expect(admin.frames).toHaveLength(queue.length + 1);
      }),
      { numRuns: 60 },
    );
  });

  test("an event in the middle of a secret does not reveal its second half", () => {
    const middles: SkeinEvent[] = [
      updated(),
      appended("user", "and one more thing"),
      appended("assistant", "elsewhere", { sessionKey: "agent:main:session:b" }),
      delta("other", { runId: "r2", sessionKey: "agent:main:session:b" }),
      delta("thought", { kind: "thinking" }),
      { ...ended(), type: "run.child", childSessionKey: "k", childRunId: "c", state: "ok" },
      ended({ runId: "r2" }),
    ];
    const { emit, plain } = readers();
    for (const [index, middle] of middles.entries()) {
      emit(delta(secret.slice(index * 10, index * 10 + 10)));
      emit(middle);
    }
    emit(delta(`${secret.slice(70)} done`));
    emit(ended());
    expect(textOf(plain)).toBe(`${redactor.redact(secret).text} done`);
  });

  test("text held back from a discarded answer is not sent", () => {
    const { emit, plain } = readers();
    emit(delta("sk-ant-"));
    emit(retry);
    emit(delta("fresh words"));
    emit(ended());
    expect(textOf(plain)).toBe("fresh words");
  });

  test("text that was held back is kept for clients that resume; for admins nothing is held back", () => {
    const { hub, emit, settle } = readers();
    emit(delta("sk-ant-"));
    emit(ended());
    const [plain, admin] = [new TestSink(), new TestSink()];
    hub.subscribe(readerOf(null), want(ofUser(null)), plain, 0);
    hub.subscribe(adminOf(null), want(ofUser(null)), admin, 0);
    settle();
    expect(plain.said).toEqual(["run.delta 2", "run.ended 3"]);
    expect(admin.said).toEqual(["run.delta 1", "run.ended 3"]);
  });

  test("if a session is deleted while half of a secret is held back, neither half is sent afterwards", () => {
    for (const end of [ended(), toolCall({}), appended("assistant", "all of it")]) {
      const { emit, plain } = readers();
      emit(delta(`Here: ${secret.slice(0, 20)}`));
      emit({ ...updated(), type: "session.deleted" });
      emit(delta(`${secret.slice(20)} and more`));
      emit(end);
      expect(textOf(plain)).toBe("Here: ");
      emit(delta("a new answer"));
      emit(ended());
      expect(textOf(plain)).toBe("Here: a new answer");
    }
  });

  test("if an older session of the key or another user's is deleted, the current text is sent to its end", () => {
    const { emit, plain } = readers();
    emit(delta("It begins with sk-ant-"));
    emit({ ...updated({ sessionId: "s-before" }), type: "session.deleted" });
    emit({ ...updated({ userId: "ann" }), type: "session.deleted" });
    emit(ended());
    expect(textOf(plain)).toBe("It begins with sk-ant-");
  });

  test("streams end with their answers, and their number is limited without an end", () => {
    const deltas = new DeltaRedaction(redactor, 2);
    const speak = (runId: string, sessionKey = `agent:main:session:${runId}`) =>
      deltas.take(delta("sk-", { runId, sessionKey }));
    for (const runId of ["a", "b", "a"]) speak(runId);
    expect(speak("c").tails).toMatchObject([{ runId: "b", delta: "sk-" }]);
    speak("c", "agent:main:session:moved");
    expect(deltas.size).toEqual({ runs: 2, sessions: 2 });
    deltas.take(ended({ runId: "a" }));
    deltas.take(retry);
    expect(deltas.endAll()).toMatchObject([{ runId: "c", delta: "sk-sk-" }]);
    expect(deltas.size).toEqual({ runs: 0, sessions: 0 });
    expect(deltas.take(ended({ runId: "c" }))).toEqual({ tails: [], text: null });
  });
});

function cut([words, places]: [string[], number[]], kind: "text" | "thinking"): SkeinEvent[] {
  const text = words.join("");
  const at = [0, ...places.map((place) => place % (text.length + 1)), text.length].toSorted((a, b) => a - b);
  return at.slice(1).map((to, index) => delta(text.slice(at[index], to), { kind }));
}

test("after a missing piece, readers without the scope admin get no text until the next answer", () => {
  const { emit, plain, admin } = readers();
  const [first, second] = [secret.slice(0, 30), secret.slice(30)];
  const at = (text: string, offset: number) => delta(text, { offset });
  // The first half of the secret never arrives.
  emit(at("Here it is: ", 0));
  emit(at(second, 12 + first.length));
  emit(ended());
  expect(textOf(plain)).toBe("Here it is: ");
  expect(textOf(admin)).toBe(`Here it is: ${second}`);
  const joined = readers();
  joined.emit(at(second, first.length));
  joined.emit(appended("assistant", "all of it"));
  joined.emit(at("Next.", 0));
  joined.emit(ended());
  expect(textOf(joined.plain)).toBe("Next.");
});
