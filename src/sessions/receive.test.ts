import { describe, expect, test } from "vitest";
import { fakeApp } from "../../test/support/fake-app.ts";
import type { AcceptRequest, Run, ThreadRef } from "../runs/contract.ts";
import { createMemoryStore } from "../store/memory/store.ts";
import { receive } from "./receive.ts";

const inbound = { channel: "desk", accountId: "a", messageId: "m1", peer: "ann", text: "And now?" };

async function ground(bound: Readonly<Record<string, string>>) {
  const store = createMemoryStore();
  const accepted: AcceptRequest[] = [];
  const asked: ThreadRef[] = [];
  const runs = {
    threadKey: async (_: string | null, thread: ThreadRef) => {
      asked.push(thread);
      return bound[thread.threadId] ?? null;
    },
    get: async () => null,
    accept: async (request: AcceptRequest) => {
      accepted.push(request);
      return { run: { runId: request.runId, session: request.session } as Run, isNew: true };
    },
  };
  const channels = { desk: { agent: null, user: "ann", users: {} } };
  const session = { scope: "per-sender", dmScope: "per-channel-peer", identityLinks: {} };
  const app = fakeApp({
    store,
    runs,
    config: { session, channels },
    spaces: { enter: ({ userId }: { userId?: string }) => userId ?? null },
    agents: { first: "main", ids: ["main", "other"] },
    files: { resolveCwd: () => ({ cwd: "/" }) },
  });
  return { store, app, accepted, asked };
}

describe("a message in a thread", () => {
  const key = "agent:other:subagent:p:0123456789abcdef";

  test("[FAM31] that belongs to a session goes to that session", async () => {
    const { store, app, accepted, asked } = await ground({ t1: key });
    await store.sessions.create({ userId: "ann", agentId: "other" }, { key, cwd: "/" });
    const { sessionKey } = await receive(app, { ...inbound, threadId: "t1" });
    expect(sessionKey).toBe(key);
    expect(asked).toEqual([{ channel: "desk", accountId: "a", threadId: "t1" }]);
    expect(accepted[0]?.options?.deliverTo).toMatchObject({ channel: "desk", threadId: "t1" });
  });

  test("[FAM31] without a session, of a removed session, or outside of threads is routed by its key", async () => {
    const { app, asked } = await ground({ t1: key });
    const direct = "agent:main:desk:user:ann";
    expect((await receive(app, { ...inbound, threadId: "t2" })).sessionKey).toBe(`${direct}:thread:t2`);
    expect((await receive(app, { ...inbound, threadId: "t1" })).sessionKey).toBe(`${direct}:thread:t1`);
    expect((await receive(app, inbound)).sessionKey).toBe(direct);
    expect(asked).toHaveLength(2);
  });
});
