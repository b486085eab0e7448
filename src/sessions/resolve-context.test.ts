import { describe, expect, test } from "vitest";
import { nameNewSession } from "./resolve-context.ts";

describe("names of new sessions", () => {
  const newId = () => "fresh";

  test.each([
    [undefined, undefined, { key: "agent:main:session:fresh", sessionId: "fresh" }],
    [undefined, "mine", { key: "agent:main:session:mine", sessionId: "mine" }],
    ["trip", undefined, { key: "agent:main:session:trip", sessionId: "trip" }],
    ["trip", "other", { key: "agent:main:session:trip", sessionId: "other" }],
    ["main", undefined, { key: "agent:main:main" }],
    ["main", "mine", { key: "agent:main:main", sessionId: "mine" }],
    ["agent:Research:session:x", undefined, { key: "agent:research:session:x", sessionId: "x" }],
    ["agent:research:main", undefined, { key: "agent:research:main" }],
    ["cron:daily", undefined, { key: "agent:main:cron:daily" }],
    ["session:trip", undefined, { key: "agent:main:session:trip", sessionId: "trip" }],
    ["slack:group:G1", undefined, { key: "agent:main:slack:group:G1" }],
    ["session:trip:thread:9", undefined, { key: "agent:main:session:trip:thread:9" }],
  ])("[SNM1] %s with ID %s is %j", (name, sessionId, expected) => {
    expect(nameNewSession(name, { agentId: "main" }, { sessionId, newId })).toEqual(expected);
  });

  test("[SNM1] if all senders share one session, main is global", () => {
    const asker = { agentId: "main", scope: "global" } as const;
    for (const name of ["main", "global"])
      expect(nameNewSession(name, asker, { newId })).toEqual({ key: "global" });
  });

  test.each([
    ["current", "invalid_session_id"],
    ["global", "invalid_session_id"],
    ["unknown", "invalid_session_id"],
    ["./trip.jsonl", "invalid_session_id"],
    ["a b", "invalid_session_id"],
    ["subagent:x", "invalid_key"],
    ["nonsense:x", "invalid_key"],
    ["agent:a b:main", "invalid_key"],
  ])("[SNM1] %s is refused as %s", (name, code) => {
    expect(() => nameNewSession(name, { agentId: "main" }, { newId })).toThrow(
      expect.objectContaining({ code }),
    );
  });
});
