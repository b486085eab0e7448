import { describe, expect, test, vi } from "vitest";
import type { SkeinEvent } from "../core/events.ts";
import type { EventStream, ReceivedEvent, WatchedCalls } from "../protocol/calls.ts";
import { gatewayMcpBackend } from "./mcp.ts";

/** A gateway that responds to one call and sends these events. */
function gateway(answer: () => unknown, events: readonly ReceivedEvent[] = []) {
  const called: unknown[] = [];
  const filters: unknown[] = [];
  let closed = 0;
  const stream: EventStream = {
    ready: Promise.resolve(),
    close: () => {
      closed += 1;
    },
    async *[Symbol.asyncIterator]() {
      yield* events;
    },
  };
  const calls = {
    call: async (method: string, params: unknown) => {
      called.push([method, params]);
      return answer();
    },
    events: (filter: unknown) => {
      filters.push(filter);
      return stream;
    },
  } as unknown as WatchedCalls;
  const known = {
    version: "0",
    defaultAgentId: "main",
    scope: "per-sender" as const,
    findEndedTokens: async () => new Set<string>(),
    report: () => undefined,
  };
  return { parts: gatewayMcpBackend(calls, known), called, filters, closed: () => closed };
}

const call = {
  tokenId: "t1",
  isOperator: false,
  userId: "ann",
  sessionKey: "agent:main:node:mcp-local",
  signal: new AbortController().signal,
};

describe("MCP over a running gateway", () => {
  test("a call is a tools.invoke for the asker's session", async () => {
    const { parts, called } = gateway(() => ({
      name: "sessions_list",
      isError: false,
      result: { count: 0 },
    }));
    const answered = await parts.callTool("sessions_list", { limit: 3 }, call);
    expect(answered).toEqual({ result: { count: 0 }, rootId: null });
    expect(called).toEqual([
      [
        "tools.invoke",
        { sessionKey: call.sessionKey, name: "sessions_list", arguments: { limit: 3 }, userId: "ann" },
      ],
    ]);
  });

  test("a refusal of the gateway is returned in its words", async () => {
    const refuse = (code: string) =>
      gateway(() => {
        throw Object.assign(new Error("This token lacks the scope."), { code });
      }).parts.callTool("sessions_list", {}, call);
    expect((await refuse("forbidden")).result).toEqual({
      status: "forbidden",
      code: "forbidden",
      error: "This token lacks the scope.",
    });
    expect((await refuse("unavailable")).result).toMatchObject({ status: "error", code: "unavailable" });
    const broken = gateway(() => {
      throw new TypeError("no");
    });
    await expect(broken.parts.callTool("sessions_list", {}, call)).rejects.toThrow(TypeError);
  });

  test("receives the user's events from the gateway, and learns of gaps", async () => {
    const payload = { at: 1, sessionKey: "agent:main:main", sessionId: "m" };
    const events = [
      { event: "session.created", payload, seq: 1 },
      { event: "session.created", payload: { ...payload, userId: "bob" }, seq: 2 },
      { event: "gap", payload: { after: 1, upTo: 2, reason: "slow" }, seq: 2 },
    ] as ReceivedEvent[];
    const { parts, filters, closed } = gateway(() => ({}), events);
    const heard: SkeinEvent[] = [];
    const lost = vi.fn();
    const leave = parts.subscribe("ann", (event) => heard.push(event), lost);
    await expect.poll(() => heard).toEqual([{ type: "session.created", userId: "ann", ...payload }]);
    await expect.poll(() => lost).toHaveBeenCalledOnce();
    leave();
    expect([filters, closed()]).toEqual([[{ userId: "ann" }], 1]);
  });
});
