import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { storeEvents } from "../app/engine.ts";
import { EventBus } from "../core/events.ts";
import { isAcpKey } from "../core/keys.ts";
import { sessionRefOf } from "../core/session-ref.ts";
import type { Run } from "../runs/contract.ts";
import { createMemoryStore } from "../store/memory/store.ts";
import { untilAgentSessionId } from "./acp-link.ts";
import { RunWatcher } from "./run-watcher.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

async function ground(hearsEvents = true) {
  const store = createMemoryStore();
  const bus = new EventBus();
  if (hearsEvents) store.work.watch(storeEvents(bus.emit, () => 0));
  const record = await store.sessions.create(
    { userId: "ann", agentId: "codex" },
    { key: "agent:codex:acp:s1", cwd: "/", meta: { acp: {} } },
  );
  let run = { runId: "r", session: sessionRefOf(record), outcome: null } as unknown as Run;
  const watcher = new RunWatcher(
    { get: async () => run, approval: async () => null, list: async () => [], version: () => 0 },
    bus,
  );
  const leaving = new AbortController();
  const patch = (acp: Record<string, string>) =>
    store.sessions.patch({ userId: "ann" }, record.sessionId, { acp });
  return {
    watcher,
    leaving,
    patch,
    linked: untilAgentSessionId({ store, watcher }, run, 1000, leaving.signal),
    end: () => {
      run = { ...run, outcome: { state: "error" } } as Run;
    },
  };
}

describe("the session ID of an ACP agent", () => {
  test("is known as soon as it is stored", async () => {
    const { watcher, patch, linked } = await ground();
    await patch({ model: "x" });
    await patch({ agentSessionId: "their-1" });
    expect(await linked).toBe("their-1");
    expect(watcher.size).toBe(0);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("is found by polling if another process stores it", async () => {
    const { watcher, patch, linked } = await ground(false);
    await patch({ agentSessionId: "their-1" });
    await vi.advanceTimersByTimeAsync(250);
    expect(await linked).toBe("their-1");
    expect(watcher.size).toBe(0);
  });

  test("is null if the run ends before", async () => {
    const { watcher, end, linked } = await ground();
    end();
    await vi.advanceTimersByTimeAsync(250);
    expect(await linked).toBeNull();
    expect(watcher.size).toBe(0);
  });

  test("is not awaited much longer than an agent may take", async () => {
    const { watcher, linked } = await ground();
    let isOver = false;
    void linked.then(() => {
      isOver = true;
    });
    await vi.advanceTimersByTimeAsync(5999);
    expect(isOver).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(await linked).toBeNull();
    expect(watcher.size).toBe(0);
  });

  test("is awaited no longer than its caller waits", async () => {
    const { watcher, leaving, linked } = await ground();
    const refused = expect(linked).rejects.toBe("gone");
    leaving.abort("gone");
    await refused;
    expect(watcher.size).toBe(0);
    expect(vi.getTimerCount()).toBe(0);
  });

  test.each([
    ["agent:codex:acp:s1", true],
    ["agent:codex:acp:s1:thread:9", true],
    ["agent:main:subagent:p:s1", false],
    ["acp", false],
  ])("[ASP14] %s counts as one: %s", (key, expected) => {
    expect(isAcpKey(key)).toBe(expected);
  });
});
