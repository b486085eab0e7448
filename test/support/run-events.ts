import type { SkeinEventType } from "../../src/core/events.ts";
import type { SkeinEvent } from "../../src/index.ts";

type Extra<T extends SkeinEventType> = Omit<
  SkeinEvent<T>,
  "type" | "at" | "userId" | "sessionKey" | "sessionId" | "runId"
>;

/** The start time for all tests. */
export const start = Date.UTC(2026, 0, 1, 12);

/** One run's events, with `at` in milliseconds from the start. */
export function eventsOf(runId: string, about: { userId?: string | null; sessionKey?: string } = {}) {
  return <T extends SkeinEventType>(type: T, at: number, extra: Extra<T>): SkeinEvent =>
    ({
      type,
      at: start + at,
      userId: about.userId ?? null,
      sessionKey: about.sessionKey ?? "agent:main:main",
      sessionId: "s1",
      runId,
      ...extra,
    }) as unknown as SkeinEvent;
}
