import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { SkeinEvent, SkeinEventType } from "../../core/events.ts";
import { sessionToolTable } from "../../tools/all.ts";
import type { Principal } from "../auth/principal.ts";
import { callTool, RunFollower } from "./call-tool.ts";
import type { McpAsker, McpBackend } from "./mcp-context.ts";
import { mcpAskerOf, subscribeForUser } from "./mcp-context.ts";
import { referenceIn, uriOf, urisOf } from "./mcp-server.ts";
import { Notices } from "./notices.ts";

const principal: Principal = {
  tokenId: "a1b2",
  name: "test",
  scopes: ["read", "write"],
  user: "ann",
  expiresAt: null,
};
const asker: McpAsker = mcpAskerOf(principal, "main");
const at = { at: 0, userId: "ann", sessionKey: "agent:main:session:trip", sessionId: "trip" };

function event<T extends SkeinEventType>(type: T, fields: object = {}): SkeinEvent {
  return { type, ...at, ...fields } as SkeinEvent;
}

/** Dependencies with scripted tool results and with events that the test emits. */
function world(answer: (name: string, args: unknown) => object | Promise<object>) {
  const listeners = new Set<(event: SkeinEvent) => void>();
  const losses = new Set<() => void>();
  const reported: unknown[] = [];
  let isCurrent = true;
  let lookups = 0;
  const app: McpBackend = {
    version: "0",
    defaultAgentId: "main",
    scope: "per-sender",
    allowedTools: async () => new Set(sessionToolTable.map(({ name }) => name)),
    callTool: async (name, args) => ({ result: { ...(await answer(name, args)) }, rootId: null }),
    subscribe: (_, listener, onLoss) => {
      listeners.add(listener);
      if (onLoss !== undefined) losses.add(onLoss);
      return () => listeners.delete(listener);
    },
    findEndedTokens: async (tokenIds) => {
      lookups++;
      return new Set(isCurrent ? [] : tokenIds);
    },
    report: (error) => reported.push(error),
  };
  const emit = (each: SkeinEvent) => {
    for (const listener of listeners) listener(each);
  };
  const revoke = () => {
    isCurrent = false;
  };
  const lose = () => {
    for (const onLoss of losses) onLoss();
  };
  return { app, emit, lose, reported, listeners, revoke, lookups: () => lookups };
}

describe("the asker", () => {
  test("[GMC2] is a node of the agent, named by the token, of the token's user", () => {
    expect(asker).toEqual({
      tokenId: "a1b2",
      userId: "ann",
      agentId: "main",
      sessionKey: "agent:main:node:mcp-a1b2",
      scopes: ["read", "write"],
    });
    expect(mcpAskerOf({ ...principal, user: "*" }, "Research")).toMatchObject({
      userId: null,
      sessionKey: "agent:research:node:mcp-a1b2",
    });
    expect(() => mcpAskerOf(principal, "a:b")).toThrow(/not an agent ID/);
  });
});

describe("session URIs", () => {
  test("[GMC7] can be parsed back", () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1, unit: "grapheme" }), (name) => {
        expect(referenceIn(uriOf(name))).toBe(name);
      }),
    );
    const none = ["", "skein://sessions/", "skein://sessions/%", "skein://runs/1", "file:///etc/passwd"];
    for (const uri of none) expect(referenceIn(uri)).toBeNull();
  });

  test("a session has one for each of its names, the short one first", () => {
    const { app } = world(() => ({}));
    const keyed = { sessionKey: "agent:main:cron:daily", sessionId: "d1" };
    expect(urisOf(app, asker, keyed)).toEqual([
      "skein://sessions/cron%3Adaily",
      "skein://sessions/agent%3Amain%3Acron%3Adaily",
      "skein://sessions/d1",
    ]);
  });
});

describe("progress", () => {
  test("follows the awaited runs and the runs they started, and no others", () => {
    const told: [number, string][] = [];
    const follower = new RunFollower((...each) => told.push(each));
    follower.hear(event("run.started", { runId: "r1", attempt: 1 }));
    follower.follow(["r1"]);
    follower.hear(event("run.step", { runId: "r1", phase: "asked", step: 1 }));
    follower.hear(event("run.step", { runId: "r2", phase: "asked", step: 1 }));
    follower.hear(event("run.queued", { runId: "r3", startedBy: "r1" }));
    follower.hear(event("run.tool", { runId: "r3", phase: "call", toolName: "weather\n" }));
    follower.hear(event("run.delta", { runId: "r1", kind: "text", delta: "secret" }));
    follower.hear(event("session.created"));
    expect(told).toEqual([
      [1, "Waiting for the reply."],
      [2, "Step 1: calling the model."],
      [3, "A run is queued."],
      [4, "Calling the tool weather\\u000a."],
    ]);
  });
});

describe("calls", () => {
  const request = { name: "sessions_list", args: {}, signal: new AbortController().signal };

  test("an unexpected error is reported, and shown without internal details", async () => {
    const { app, reported } = world(() => {
      throw new Error("disk of /home/ann is full");
    });
    const answer = await callTool(app, sessionToolTable, asker, request);
    expect(answer).toMatchObject({ isError: true, structuredContent: { status: "error", code: "internal" } });
    expect(JSON.stringify(answer)).not.toContain("/home/ann");
    expect(reported).toHaveLength(1);
  });

  test("leaves no listener after a call", async () => {
    const { app, listeners } = world(() => ({ count: 0, sessions: [] }));
    await callTool(app, sessionToolTable, asker, { ...request, tell: () => undefined });
    expect(listeners.size).toBe(0);
  });
});

describe("notifications", () => {
  const rows = (...ids: readonly string[]) => ({
    sessions: ids.map((sessionId) => ({ sessionId, key: `session:${sessionId}` })),
  });

  /** Collects the notifications for a client that may read and list these sessions. */
  function listening(seen: { reads: readonly string[]; lists: string[] }) {
    const asked: string[] = [];
    const made = world(async (name, args) => {
      asked.push(name);
      if (name === "sessions_list") return rows(...seen.lists);
      const { sessionKey } = args as { sessionKey: string };
      return seen.reads.includes(sessionKey) ? { messages: [] } : { status: "forbidden" };
    });
    const heard: string[] = [];
    const listener = {
      updated: ([uri = ""]: readonly string[]) => heard.push(uri),
      listChanged: () => heard.push("list"),
    };
    const notices = new Notices(made.app, asker, listener);
    const settled = () => new Promise((resolve) => setImmediate(resolve));
    return { ...made, notices, heard, asked, settled, seen };
  }

  test("a session that the asker may not read causes no notification", async () => {
    const { emit, heard, settled } = listening({ reads: ["agent:main:session:trip"], lists: [] });
    emit(event("entry.appended"));
    emit(event("entry.appended", { sessionKey: "agent:main:session:hidden" }));
    await settled();
    expect(heard).toEqual(["skein://sessions/session%3Atrip"]);
  });

  test("many changes at once cause few notifications, the last one after the last change", async () => {
    const made = listening({ reads: ["agent:main:session:trip"], lists: [] });
    const { app, emit, heard, asked, settled } = made;
    const emitMany = () => {
      for (let count = 0; count < 100; count++) emit(event("entry.appended"));
    };
    const { callTool } = app;
    app.callTool = (name, args, call) => {
      if (name === "sessions_history" && !asked.includes(name)) emitMany();
      return callTool(name, args, call);
    };
    emitMany();
    await settled();
    expect(heard).toHaveLength(2);
    expect(asked.filter((name) => name === "sessions_history")).toHaveLength(2);
    emit(event("entry.appended"));
    await settled();
    expect(heard).toHaveLength(3);
  });

  test("the list changes when a listable session is created or removed", async () => {
    const { emit, heard, settled, seen } = listening({ reads: [], lists: ["a"] });
    await settled();
    emit(event("session.created", { sessionId: "hidden" }));
    emit(event("session.updated", { sessionId: "a" }));
    await settled();
    expect(heard).toEqual([]);
    seen.lists.push("b");
    emit(event("session.created", { sessionId: "b" }));
    await settled();
    expect(heard).toEqual(["list"]);
    seen.lists.shift();
    emit(event("session.deleted", { sessionId: "a" }));
    await settled();
    expect(heard).toEqual(["list", "list"]);
    seen.lists.push("a");
    emit(event("session.updated", { sessionId: "a" }));
    await settled();
    expect(heard).toHaveLength(3);
  });

  test("lost events cause notifications about the listed sessions and about a changed list", async () => {
    const { lose, heard, settled, seen } = listening({ reads: [], lists: ["a"] });
    await settled();
    lose();
    await settled();
    expect(heard).toEqual(["skein://sessions/session%3Aa"]);
    seen.lists.push("b");
    lose();
    await settled();
    expect(heard.slice(1)).toEqual(["list", "skein://sessions/session%3Aa", "skein://sessions/session%3Ab"]);
    lose();
    await settled();
    expect(heard).toHaveLength(6);
  });

  test("each user is notified of lost events, which might have been about that user", () => {
    const told: string[] = [];
    const subscribe = subscribeForUser((listener, onLoss) => {
      listener(event("session.created"));
      onLoss?.();
      return () => undefined;
    });
    subscribe(
      "bob",
      ({ type }) => told.push(type),
      () => told.push("lost"),
    );
    expect(told).toEqual(["lost"]);
  });

  test("a revoked or expired token gets no more notifications", async () => {
    const { emit, heard, listeners, settled, revoke } = listening({ reads: [at.sessionKey], lists: [] });
    revoke();
    emit(event("entry.appended"));
    emit(event("session.deleted"));
    await settled();
    expect({ heard, listening: listeners.size }).toEqual({ heard: [], listening: 0 });
  });

  test("a token revoked during the access check gets nothing", async () => {
    const { emit, heard, listeners, settled, revoke } = listening({ reads: [at.sessionKey], lists: [] });
    await settled();
    emit(event("entry.appended"));
    revoke();
    await settled();
    expect({ heard, listening: listeners.size }).toEqual({ heard: [], listening: 0 });
  });

  test("a thousand deltas of an answer cause no token lookup", async () => {
    const { emit, settled, lookups } = listening({ reads: [at.sessionKey], lists: [] });
    await settled();
    const before = lookups();
    for (let count = 0; count < 1000; count++) emit(event("run.delta", { runId: "r1", delta: "a" }));
    await settled();
    expect(lookups()).toBe(before);
    for (let count = 0; count < 1000; count++) emit(event("entry.appended"));
    await settled();
    expect(lookups() - before).toBeLessThan(10);
  });

  test("nothing is received or checked after close", async () => {
    const { notices, emit, heard, listeners, settled } = listening({ reads: [at.sessionKey], lists: [] });
    emit(event("entry.appended"));
    notices.close();
    await settled();
    expect({ heard, listening: listeners.size }).toEqual({ heard: [], listening: 0 });
  });
});
