import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ProgressNews } from "./relay-progress.ts";
import { Progress, paceMs, progressNote, snippet, stallMs } from "./relay-progress.ts";

describe("the progress of a child", () => {
  test("is reported at most every 2.5 seconds, with everything that arrived meanwhile", () => {
    const progress = new Progress(0);
    progress.addText("Looking ", 10);
    progress.addToolCall("read", 20);
    expect(progress.nextAt()).toBe(2500);
    expect(progress.take(2499)).toBeNull();
    expect(progress.take(2500)).toEqual({ news: "Looking [tool read]" });
    progress.settled();
    progress.addText("at it", 2600);
    expect(progress.take(4999)).toBeNull();
    expect(progress.take(5000)).toEqual({ news: "at it" });
  });

  test("waits until the last note is written", () => {
    const progress = new Progress(0);
    progress.addText("one", 0);
    progress.take(2500);
    progress.addText("two", 2600);
    expect(progress.take(9000)).toBeNull();
    expect(progress.nextAt()).toBeNull();
    progress.settled();
    expect(progress.take(9000)).toEqual({ news: "two" });
  });

  test("a silence of 60 seconds is reported once; activity ends it", () => {
    const progress = new Progress(0);
    expect(progress.nextAt()).toBe(60_000);
    expect(progress.take(59_999)).toBeNull();
    expect(progress.take(60_000)).toEqual({ stalled: true });
    progress.settled();
    expect(progress.take(200_000)).toBeNull();
    expect(progress.nextAt()).toBeNull();
    progress.recordActivity(200_000);
    expect(progress.nextAt()).toBe(260_000);
    expect(progress.take(260_000)).toEqual({ stalled: true });
  });

  test("blank text is not reported", () => {
    const progress = new Progress(0);
    progress.addText(" \n\t", 0);
    expect(progress.nextAt()).toBe(60_000);
    expect(progress.take(2500)).toBeNull();
  });

  test.each<[ProgressNews, string]>([
    [{ news: "a\nb" }, "[Progress of pages] a\\u000ab"],
    [{ news: "\u001b[31mred\u202e" }, "[Progress of pages] \\u001b[31mred\\u202e"],
    [{ stalled: true }, "[Progress of pages] Silent for 60 seconds"],
  ])("%j becomes one line without terminal control characters", (told, text) => {
    expect(progressNote("pages", told)).toBe(text);
  });

  test("a long text is reported by its last 220 characters", () => {
    const text = `${"old ".repeat(2000)}\n\nnew words`;
    const shown = snippet(text);
    expect(shown).toHaveLength(220);
    expect(shown).toMatch(/^….* new words$/);
    const progress = new Progress(0);
    for (const char of text) progress.addText(char, 0);
    expect(progress.take(2500)).toEqual({ news: shown });
  });

  const step = fc.record({
    wait: fc.integer({ min: 0, max: 90_000 }),
    act: fc.constantFrom("said", "called", "heard", "settled", "nothing"),
    text: fc.string({ unit: "grapheme", maxLength: 300 }),
  });

  test("for any events: keeps its pace, writes one note at a time, and never reports silence too early", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const progress = new Progress(0);
        let now = 0;
        let toldAt = 0;
        let heardAt = 0;
        let isOutstanding = false;
        for (const { wait, act, text } of steps) {
          now += wait;
          if (act === "said") progress.addText(text, now);
          else if (act === "called") progress.addToolCall(text, now);
          else if (act === "heard") progress.recordActivity(now);
          else if (act === "settled") {
            progress.settled();
            isOutstanding = false;
          }
          if (act === "said" || act === "called" || act === "heard") heardAt = now;
          const due = progress.nextAt();
          const told = progress.take(now);
          expect(told !== null).toBe(due !== null && due <= now);
          if (told === null) continue;
          expect(isOutstanding).toBe(false);
          expect(now - ("news" in told ? toldAt : heardAt)).toBeGreaterThanOrEqual(
            "news" in told ? paceMs : stallMs,
          );
          const note = progressNote("x", told);
          expect(note.length).toBeLessThanOrEqual("[Progress of x] ".length + 221);
          expect(note).not.toMatch(/[\n\r]/);
          expect(note.isWellFormed()).toBe(true);
          toldAt = now;
          isOutstanding = true;
        }
      }),
    );
  });
});
