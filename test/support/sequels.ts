// Runs whose end starts something, with fields controlled by the test.
import type { Run } from "../../src/index.ts";
import type { ChildSequel, PingPongSequel, ReplySequel, RunOptions } from "../../src/runs/contract.ts";

export function endedRun(options: RunOptions, more: Partial<Run> = {}): Run {
  return {
    runId: "r1",
    idempotencyKey: null,
    session: {
      uid: "b",
      userId: null,
      agentId: "main",
      key: "agent:main:session:b",
      sessionId: "b",
    },
    seq: 1,
    kind: "send",
    lane: "nested",
    queueMode: "followup",
    message: { role: "user", content: "hello" },
    entryId: "e1",
    options,
    provenance: null,
    root: { rootId: "root", hops: 2 },
    state: "running",
    fence: 1,
    owner: "me",
    leaseUntil: 0,
    lost: 0,
    createdAt: 1_000,
    startedAt: 2_000,
    endedAt: null,
    deadline: null,
    outcome: null,
    usage: { input: 10, output: 5, cacheRead: 2, cacheWrite: 0, totalTokens: 17, costUsd: 0.0125 },
    mergedInto: null,
    keptFor: null,
    startedBy: null,
    retryOf: null,
    retriedAs: null,
    app: null,
    requiredTools: [],
    isSilent: false,
    abortRequested: false,
    ...more,
  };
}

export const askerKey = "agent:main:session:a";
export const targetKey = "agent:main:session:b";

export function replySequel(more: Partial<ReplySequel>): ReplySequel {
  return {
    type: "reply",
    asker: { key: askerKey, sessionId: "a" },
    target: { key: targetKey, sessionId: "b", channel: "desk" },
    request: "Is it open?",
    turns: 5,
    ...more,
  };
}

export function pingPongSequel(more: Partial<PingPongSequel>): PingPongSequel {
  const { type: _, ...terms } = replySequel({});
  return { ...terms, type: "ping_pong", turn: 1, firstReply: "Yes.", latestReply: "Yes.", ...more };
}

export function childRun(more: Partial<ChildSequel>): { readonly run: Run; readonly sequel: ChildSequel } {
  const sequel: ChildSequel = {
    type: "child",
    parent: { key: askerKey, sessionId: "a" },
    childKey: "agent:main:subagent:a:c1",
    task: "Describe Kyoto",
    ...more,
  };
  return { run: endedRun({ sequel }), sequel };
}
