import { describe, expect, test } from "vitest";
import type { EntriesPage, LiveReading, TranscriptState } from "../../console/src/live/transcript.ts";
import {
  emptyTranscript,
  replacedBy,
  withEarlierPage,
  withEvent,
  withLastPage,
  withLaterPage,
  withReading,
} from "../../console/src/live/transcript.ts";
import { writtenText } from "../../console/src/session/rows.ts";

type Entry = EntriesPage["entries"][number];
type Event = Parameters<typeof withEvent>[1];

const entry = (id: string, parentId: string | null, role = "user") =>
  ({ type: "message", id, parentId, timestamp: "", message: { role, content: [] } }) as unknown as Entry;

/** A chain of entries from `from` to `to`: `e1`, `e2` … */
const chain = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) =>
    entry(`e${from + index}`, from + index === 1 ? null : `e${from + index - 1}`),
  );
const page = (entries: readonly Entry[], more: Partial<EntriesPage> = {}): EntriesPage => ({
  key: "agent:main:main",
  sessionId: "s1",
  leafId: entries.at(-1)?.id ?? null,
  entries: [...entries],
  hasEarlier: false,
  hasLater: false,
  ...more,
});
const reading = (more: Partial<LiveReading> = {}): LiveReading => ({
  sessionId: "s1",
  leafId: null,
  seq: 10,
  runs: [],
  pending: [],
  ...more,
});
const event = (name: string, seq: number, payload: object = {}) =>
  ({ event: name, seq, payload: { sessionId: "s1", sessionKey: "agent:main:main", ...payload } }) as Event;
const appended = (each: Entry, seq: number) => event("entry.appended", seq, { entry: each });
const delta = (seq: number, offset: number, text: string, kind = "text") =>
  event("run.delta", seq, { runId: "r", kind, delta: text, offset, step: 1 });

const ready = (entries: readonly Entry[], more: Partial<EntriesPage> = {}): TranscriptState =>
  withReading(emptyTranscript, reading(), page(entries, more), replacedBy);
const ids = ({ entries }: TranscriptState) => entries.map(({ id }) => id).join(" ");
const apply = (state: TranscriptState, ...events: readonly Event[]) => events.reduce(withEvent, state);
const text = ({ live }: TranscriptState) => live.map((answer) => answer.text).join("|");

describe("the entries of a transcript", () => {
  test("an entry that continues the branch is appended once", () => {
    const [third] = chain(3, 3) as [Entry];
    const state = apply(ready(chain(1, 2)), appended(third, 11), appended(third, 11));
    expect([ids(state), state.leafId, state.stale]).toEqual(["e1 e2 e3", "e3", null]);
  });

  test("an entry somewhere else makes the last page stale", () => {
    const state = apply(ready(chain(1, 3)), appended(entry("x", "e1"), 11));
    expect([ids(state), state.stale]).toEqual(["e1 e2 e3", "end"]);
  });

  test("an entry continues the bookkeeping entries after the leaf", () => {
    const state = apply(ready(chain(1, 3), { leafId: "e2" }), appended(entry("e4", "e3"), 11));
    expect([ids(state), state.leafId, state.stale]).toEqual(["e1 e2 e3 e4", "e4", null]);
  });

  test("a page that has an entry, and its event that arrives later, show it once", () => {
    const read = withReading(ready(chain(1, 2)), reading({ seq: 9 }), page(chain(1, 3)), withLastPage);
    expect(ids(apply(read, appended(chain(3, 3)[0] as Entry, 11)))).toBe("e1 e2 e3");
  });

  test("the last page continues what is loaded, or replaces it where the two do not meet", () => {
    const state = ready(chain(1, 4));
    expect(ids(withLastPage(state, page(chain(3, 6))))).toBe("e1 e2 e3 e4 e5 e6");
    const far = withLastPage(state, page(chain(8, 9), { hasEarlier: true }));
    expect([ids(far), far.hasEarlier]).toEqual(["e8 e9", true]);
    const reset = withLastPage(state, page([entry("e3", null)], { sessionId: "s2" }));
    expect([ids(reset), reset.sessionId]).toEqual(["e3", "s2"]);
  });

  test("an earlier page is dropped if the first entry has changed meanwhile", () => {
    const state = ready(chain(5, 6), { hasEarlier: true });
    expect(ids(withEarlierPage(state, page(chain(1, 4)), "e5"))).toBe("e1 e2 e3 e4 e5 e6");
    expect(withEarlierPage(state, page(chain(1, 3)), "e4")).toBe(state);
  });

  test("an entry that is appended while the page before it is on its way is not lost", () => {
    const state = apply(ready(chain(1, 2), { hasLater: true }), appended(entry("e5", "e4"), 11));
    expect(ids(state)).toBe("e1 e2");
    const end = withLaterPage(state, page(chain(3, 4)), "e2");
    expect([ids(end), end.hasLater, end.stale]).toEqual(["e1 e2 e3 e4", false, "end"]);
    expect(withLaterPage(state, page(chain(3, 4)), "e1")).toBe(state);
  });

  test("another branch keeps its entries while the active one grows", () => {
    const state = ready(chain(1, 2), { branchLeafId: "e2", leafId: "x" });
    const grown = apply(state, appended(entry("y", "x"), 11));
    expect([ids(grown), grown.stale]).toEqual(["e1 e2", null]);
    expect(apply(state, appended(entry("e3", "e2"), 11)).stale).toBe("end");
  });

  test("a redaction makes everything stale, and so does a gap, which can hide one", () => {
    const state = ready(chain(1, 2));
    expect(apply(state, event("session.updated", 11, { isRedacted: true })).stale).toBe("all");
    for (const reason of ["slow", "gone", "restart"]) {
      const behind = apply(state, event("gap", 12, { after: 10, upTo: 12, reason }));
      expect([behind.stale, behind.liveSeq]).toEqual(["all", 0]);
    }
  });

  test("a deleted session is missing, and a reset one is read from its new session", () => {
    const state = ready(chain(1, 2), { hasLater: true, branchLeafId: "e2" });
    expect(apply(state, event("session.deleted", 11)).status).toBe("missing");
    expect(apply(state, event("session.deleted", 11, { sessionId: "s0" })).status).toBe("ready");
    const reset = apply(state, event("session.reset", 11, { freshSessionId: "s2" }));
    expect([reset.hasLater, reset.branchLeafId, reset.stale]).toEqual([false, null, "end"]);
  });
});

describe("the live answers of a transcript", () => {
  const run = { runId: "r", state: "running" as const, isStreaming: true, tools: [] };
  const live = { ...run, text: "abc", textOffset: 0, thinking: "", thinkingOffset: 0 };
  const writing = withReading(emptyTranscript, reading({ runs: [live] }), page([]), replacedBy);

  test("events that the reading includes change nothing", () => {
    expect(text(apply(writing, delta(9, 2, "c"), delta(10, 3, "x")))).toBe("abc");
  });

  test("repeated and overlapping pieces are shown once", () => {
    expect(text(apply(writing, delta(11, 3, "de"), delta(12, 3, "de"), delta(13, 4, "ef")))).toBe("abcdef");
  });

  test("a piece behind a hole is not shown, and the answer is read again", () => {
    const late = apply(writing, delta(11, 5, "late"), delta(12, 9, "r"));
    expect([text(late), late.stale]).toEqual(["abc", "live"]);
    expect(apply(writing, delta(11, 2, "hm", "thinking")).stale).toBe("live");
    expect(apply(ready([]), delta(11, 4, "late")).stale).toBe("live");
    const read = withReading(
      late,
      reading({ seq: 12, runs: [{ ...live, text: "abcd late" }] }),
      null,
      replacedBy,
    );
    expect(text(apply(read, delta(12, 9, "r"), delta(13, 9, "r")))).toBe("abcd later");
    // The beginning of a long answer is not kept.
    const cut = withReading(writing, reading({ runs: [{ ...live, textOffset: 7 }] }), null, replacedBy);
    const grown = apply(cut, delta(11, 10, "d"), delta(12, 3, "x"));
    expect([text(grown), grown.stale]).toEqual(["abcd", null]);
  });

  test("the entry, a retry and the next request empty the answer; the end and sleep remove it", () => {
    const answer = appended(entry("a", null, "assistant"), 11);
    expect(text(apply(writing, answer, delta(12, 0, "next")))).toBe("next");
    for (const name of ["run.retry", "run.step"])
      expect(text(apply(writing, event(name, 11, { runId: "r", phase: "asked" })))).toBe("");
    for (const name of ["run.ended", "run.sleeping"])
      expect(apply(writing, event(name, 11, { runId: "r" })).live).toEqual([]);
  });

  test("text that is older than the reading does not come back next to its entry", () => {
    const written = page([...chain(1, 1), entry("e2", "e1", "assistant")]);
    const state = withReading(emptyTranscript, reading({ seq: 30, runs: [] }), written, replacedBy);
    const delta = { runId: "r", kind: "text", delta: "abc", offset: 0, step: 1 };
    const late = apply(state, event("run.delta", 26, delta));
    expect([ids(late), late.live]).toEqual(["e1 e2", []]);
  });

  test("tools come and go with their results, and waiting is shown", () => {
    const call = { runId: "r", toolCallId: "t", toolName: "look" };
    const called = apply(writing, event("run.tool", 11, { ...call, phase: "call" }));
    expect(called.live[0]?.tools.map(({ toolName }) => toolName)).toEqual(["look"]);
    const waiting = apply(called, event("run.waiting", 12, { runId: "r", for: "approval" }));
    expect(waiting.live[0]?.state).toBe("waiting");
    const done = apply(
      waiting,
      event("run.resumed", 13, { runId: "r" }),
      event("run.tool", 14, { ...call, phase: "result" }),
    );
    expect([done.live[0]?.state, done.live[0]?.tools]).toEqual(["running", []]);
  });

  test("a run that ended takes its input from the queue", () => {
    const pending = [{ runId: "q", state: "queued" }] as unknown as LiveReading["pending"];
    const state = withReading(emptyTranscript, reading({ pending }), page([]), replacedBy);
    expect(apply(state, event("run.ended", 11, { runId: "q", state: "aborted" })).pending).toEqual([]);
    expect(apply(state, event("run.queued", 11, { runId: "p" })).stale).toBe("live");
  });
});

test("the text of a message with images, to be edited, is what its author wrote", () => {
  const blob = { sha256: "0", bytes: 1, mimeType: "image/png", was: "image" };
  const stored = { type: "text", text: "[image image/png, 1 bytes, blob 0]", skein: { blob } };
  const content = [
    { type: "text", text: "look" },
    stored,
    { type: "image", data: "", mimeType: "image/png" },
  ];
  expect([writtenText(content), writtenText("look")]).toEqual(["look", "look"]);
});
