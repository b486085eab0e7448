import { describe, expect, test, vi } from "vitest";
import { assignThreads, threadOf } from "../../console/src/ui/theme.ts";

/** The number of hues between two threads on the color circle. */
function distance(a: number, b: number): number {
  const steps = Math.abs(a - b);
  return Math.min(steps, 12 - steps);
}

const child = (parent: string, index: number) => ({
  sessionId: `${parent} child ${index}`,
  key: `agent:${parent}:subagent:${index}`,
  spawnedBy: `agent:${parent}:main`,
});
const family = (name: string, count: number) => [
  ...Array.from({ length: count }, (_, index) => child(name, index)),
  { sessionId: name, key: `agent:${name}:main` },
];

describe("the colors of sessions", () => {
  test("five siblings are two hues from each other and from their parent", () => {
    for (const name of Array.from({ length: 40 }, (_, index) => `family ${index}`)) {
      const members = family(name, 5);
      assignThreads(members);
      const threads = members.map(({ sessionId }) => threadOf(sessionId));
      for (const [index, thread] of threads.entries())
        for (const other of threads.slice(index + 1))
          expect(distance(thread, other)).toBeGreaterThanOrEqual(2);
    }
  });

  test("new siblings take no color from older ones after a reload", async () => {
    const members = family("aged", 11);
    const parent = members.slice(-1);
    // Their IDs come after those of the new ones.
    const older = members.slice(6, 11).map((each, index) => ({ ...each, startedAt: index * 60_000 }));
    const newer = members.slice(0, 6).map((each) => ({ ...each, startedAt: 900_000 }));
    assignThreads([...older, ...parent]);
    vi.resetModules();
    const reloaded = await import("../../console/src/ui/theme.ts");
    reloaded.assignThreads([...newer, ...older.toReversed(), ...parent]);
    for (const { sessionId } of older) expect(reloaded.threadOf(sessionId)).toBe(threadOf(sessionId));
  });

  test("eleven siblings have eleven hues, and any number of them has some", () => {
    const members = family("crowd", 30);
    assignThreads(members.slice(0, 11));
    expect(new Set(members.slice(0, 11).map(({ sessionId }) => threadOf(sessionId))).size).toBe(11);
    assignThreads(members);
    for (const { sessionId } of members) expect(threadOf(sessionId)).toBeLessThan(12);
  });

  test("a color stays when siblings arrive or another list names the session", () => {
    const [first, second, third, parent] = family("steady", 3);
    if (first === undefined || second === undefined || third === undefined || parent === undefined) return;
    assignThreads([parent, third]);
    const before = threadOf(third.sessionId);
    assignThreads([first, second, third]);
    assignThreads([{ sessionId: third.sessionId, key: third.key }]);
    expect(threadOf(third.sessionId)).toBe(before);
  });

  test("a session that spawned itself has a color", () => {
    assignThreads([{ sessionId: "loop", key: "agent:loop:main", spawnedBy: "agent:loop:main" }]);
    expect(threadOf("loop")).toBeLessThan(12);
  });
});
