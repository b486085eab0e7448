import { describe, expect, test } from "vitest";
import type { AcceptRequest, Run, ThreadRef } from "../runs/contract.ts";
import { createMemoryStore } from "../store/memory/store.ts";
import type { ReceiveDeps } from "./receive.ts";
import { receive } from "./receive.ts";

const inbound = { channel: "desk", accountId: "a", messageId: "m1", peer: "ann", text: "And now?" };

async function ground(bound: Readonly<Record<string, string>>) {
  const store = createMemoryStore();
  const accepted: AcceptRequest[] = [];
  const asked: ThreadRef[] = [];
  const runs = {
    boundTo: async (_: string | null, thread: ThreadRef) => {
      asked.push(thread);
      return bound[thread.threadId] ?? null;
    },
    get: async () => null,
    accept: async (request: AcceptRequest) => {
      accepted.push(request);
      return { run: { runId: request.runId, session: request.session } as Run, isNew: true };
    },
  };
  const deps = {
    store,
    runs,
    routing: {
      scope: "per-sender",
      dmScope: "per-channel-peer",
      identityLinks: {},
      channels: { desk: { user: "ann", users: {} } },
      agentId: "main",
    },
    defaults: {
      enter: ({ userId }: { userId?: string }) => userId ?? null,
      agentId: "main",
      scope: "per-sender",
      resolveCwd: () => ({ cwd: "/" }),
      store,
    },
    serves: () => true,
  } as unknown as ReceiveDeps;
  return { store, deps, accepted, asked };
}

describe("a message in a thread", () => {
  const key = "agent:other:subagent:p:0123456789abcdef";

  test("[SPN16] that belongs to a session goes to that session", async () => {
    const { store, deps, accepted, asked } = await ground({ t1: key });
    await store.sessions.create({ userId: "ann", agentId: "other" }, { key, cwd: "/" });
    const { sessionKey } = await receive(deps, { ...inbound, threadId: "t1" });
    expect(sessionKey).toBe(key);
    expect(asked).toEqual([{ channel: "desk", accountId: "a", threadId: "t1" }]);
    expect(accepted[0]?.options?.deliverTo).toMatchObject({ channel: "desk", threadId: "t1" });
  });

  test("[SPN16] of nobody, of a session that is gone, or outside of threads goes by its key", async () => {
    const { deps, asked } = await ground({ t1: key });
    const direct = "agent:main:desk:user:ann";
    expect((await receive(deps, { ...inbound, threadId: "t2" })).sessionKey).toBe(`${direct}:thread:t2`);
    expect((await receive(deps, { ...inbound, threadId: "t1" })).sessionKey).toBe(`${direct}:thread:t1`);
    expect((await receive(deps, inbound)).sessionKey).toBe(direct);
    expect(asked).toHaveLength(2);
  });
});
