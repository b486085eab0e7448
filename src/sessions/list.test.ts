import { Check } from "typebox/value";
import { describe, expect, test } from "vitest";
import { SessionRowSchema } from "../protocol/session-list.ts";
import type { ListedSession, SessionMeta } from "../store/contract.ts";
import { emptyDigest } from "../store/digest.ts";
import { listRow } from "./list.ts";

function session(key: string, meta: SessionMeta = {}, more: Partial<ListedSession> = {}): ListedSession {
  return {
    uid: "u",
    userId: null,
    agentId: "main",
    key,
    kind: "other",
    sessionId: "s",
    cwd: "/w",
    version: 1,
    meta,
    name: null,
    createdAt: 1,
    updatedAt: 2,
    leafId: null,
    digest: emptyDigest,
    ...more,
  };
}

describe("a row of sessions.list", () => {
  test("[CLG1] unknown values are absent, and nothing is null", () => {
    const row = listRow(session("agent:main:session:s"));
    expect(row).toEqual({
      key: "agent:main:session:s",
      kind: "other",
      channel: "unknown",
      updatedAt: 2,
      sessionId: "s",
      totalTokens: 0,
      estimatedCostUsd: 0,
    });
    expect(Check(SessionRowSchema, row)).toBe(true);
  });

  test("[CLG1] every known value has its field", () => {
    const meta = {
      label: "l",
      delivery: { channel: "slack", to: "C1", accountId: "a", threadId: "t" },
      spawnedBy: "agent:main:main",
      verboseLevel: "on",
      sendPolicy: "deny",
      systemSent: true,
      abortedLastRun: false,
      lastChannel: "matrix",
    } as const;
    const digest = {
      ...emptyDigest,
      model: { provider: "p", modelId: "m" },
      thinkingLevel: "low",
      totalTokens: 7,
      costUsd: null,
      contextTokens: 5,
    };
    const row = listRow(session("agent:main:session:s", meta, { name: "n", userId: "bob", digest }), {
      transcriptPath: "/s.jsonl",
      childSessions: ["agent:main:subagent:s:x"],
    });
    expect(row).toEqual({
      key: "agent:main:session:s",
      kind: "other",
      channel: "slack",
      label: "l",
      displayName: "n",
      deliveryContext: { channel: "slack", to: "C1", accountId: "a" },
      updatedAt: 2,
      sessionId: "s",
      model: "p/m",
      contextTokens: 5,
      totalTokens: 7,
      childSessions: ["agent:main:subagent:s:x"],
      spawnedBy: "agent:main:main",
      thinkingLevel: "low",
      verboseLevel: "on",
      systemSent: true,
      abortedLastRun: false,
      sendPolicy: "deny",
      lastChannel: "slack",
      lastTo: "C1",
      lastAccountId: "a",
      userId: "bob",
      transcriptPath: "/s.jsonl",
    });
    expect(Check(SessionRowSchema, row)).toBe(true);
  });

  test.each([
    ["agent:main:cron:daily", { channel: "slack" }, "internal"],
    ["agent:main:slack:group:G1", {}, "slack"],
    ["agent:main:slack:group:G1", { lastChannel: "matrix" }, "matrix"],
    ["agent:main:slack:group:G1", { lastChannel: "matrix", channel: "irc" }, "irc"],
    ["agent:main:user:bob", {}, "unknown"],
    ["agent:main:main", {}, "unknown"],
  ])("[CLG1] the channel of %s with %j is %s", (key, meta, channel) => {
    expect(listRow(session(key, meta)).channel).toBe(channel);
  });

  test("[CLG1] a chosen model and thinking level override those that were used", () => {
    const digest = { ...emptyDigest, model: { provider: "p", modelId: "m" }, thinkingLevel: "low" };
    const row = listRow(session("agent:main:main", { model: "q/n", thinkingLevel: "high" }, { digest }));
    expect(row).toMatchObject({ model: "q/n", thinkingLevel: "high" });
  });

  test.each([
    [
      { status: "running", startedAt: 1, endedAt: null },
      { status: "running", startedAt: 1, runtimeMs: 1 },
    ],
    [
      { status: "error", startedAt: 1, endedAt: 9 },
      { status: "error", startedAt: 1, endedAt: 9, runtimeMs: 8 },
    ],
    [{ status: "queued", startedAt: null, endedAt: null }, { status: "queued" }],
    [
      { status: "waiting", startedAt: 5, endedAt: null },
      { status: "waiting", startedAt: 5, runtimeMs: 0 },
    ],
  ] as const)("work %j is shown as %j", (work, shown) => {
    const { status, startedAt, endedAt, runtimeMs } = listRow(session("agent:main:main"), {
      work: { ...work, approvals: 0 },
    });
    expect({ status, startedAt, endedAt, runtimeMs }).toEqual({
      startedAt: undefined,
      endedAt: undefined,
      runtimeMs: undefined,
      ...shown,
    });
  });
});
