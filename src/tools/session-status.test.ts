import { beforeEach, describe, expect, test } from "vitest";
import { agentNamed, spawnIdOf, WatchingWorld } from "../../test/support/watching-world.ts";
import type { Caller } from "../sessions/session-access.ts";
import type { AppendItem, SessionRecord } from "../store/contract.ts";
import { sessionStatus } from "./session-status.ts";
import type { ToolResult } from "./session-tool.ts";

let world: WatchingWorld;
let session: SessionRecord;
beforeEach(async () => {
  world = new WatchingWorld();
  session = await world.session("agent:main:main", { channel: "desk", thinkingLevel: "low" });
});

const statusOf = async (call: Caller, sessionKey?: string): Promise<ToolResult> =>
  (await sessionStatus.execute(sessionKey === undefined ? {} : { sessionKey }, call, world.deps)).result;
const tokens = { input: 200, output: 50, cacheRead: 0, cacheWrite: 0, totalTokens: 250 };
const answered = (): AppendItem => ({
  draft: {
    type: "message" as const,
    message: {
      role: "assistant" as const,
      content: [{ type: "text" as const, text: "Yes." }],
      api: "openai-completions",
      provider: "rehearsal",
      model: "basic",
      usage: { ...tokens, cost: { total: 0.25 } },
      stopReason: "stop",
    },
  },
});

describe("session_status", () => {
  test("reports everything about its own session during a run", async () => {
    await world.store.sessions.append({ userId: "ann", agentId: "main" }, session.sessionId, [answered()]);
    const run = await world.running(session);
    await world.accept(session);
    const { session: child, run: first } = await world.spawn(session, "a", { by: run, label: "facts" });
    const result = await statusOf(world.caller(session, run));
    expect(result).toEqual({
      sessionKey: "main",
      sessionId: session.sessionId,
      agentId: "main",
      channel: "desk",
      model: "rehearsal/basic",
      thinkingLevel: "low",
      tools: ["read", "session_status"],
      policy: {
        visibility: "tree",
        agentToAgent: { enabled: false },
        sandboxed: false,
        transcript: {
          provider: "rehearsal",
          api: "openai-completions",
          toolCallIds: "strict",
          turns: "any",
          thinking: "none",
          images: false,
        },
      },
      context: { tokens: 250, window: 1000, percent: 25, compactions: 0 },
      usage: { totalTokens: 250 },
      cost: 0.25,
      run: { runId: run.runId, state: "running", startedAt: world.books.now },
      queue: 1,
      children: [
        { sessionKey: `subagent:${spawnIdOf("a")}`, label: "facts", runId: first.runId, status: "queued" },
      ],
      createdAt: expect.any(Number),
      updatedAt: expect.any(Number),
    });
    expect(child.meta.spawnedBy).toBe(session.key);
  });

  test("unknown values are absent, and nothing is written", async () => {
    const other = await world.session("agent:gone:session:x", { model: "who/knows" });
    world.settings = {
      tools: {
        sessions: { visibility: { list: "self", status: "all" } },
        agentToAgent: { enabled: true, allow: [] },
      },
      agents: {},
    };
    const result = await statusOf(world.caller(session), other.key);
    expect(result).toEqual({
      sessionKey: other.key,
      sessionId: other.sessionId,
      agentId: "gone",
      channel: "unknown",
      model: "who/knows",
      policy: {
        visibility: { list: "self", history: "tree", send: "tree", status: "all" },
        agentToAgent: { enabled: true },
        sandboxed: false,
      },
      context: { compactions: 0 },
      usage: { totalTokens: 0 },
      cost: 0,
      queue: 0,
      children: [],
      createdAt: other.createdAt,
      updatedAt: other.updatedAt,
    });
    expect(await world.store.sessions.get({ userId: "ann" }, other.sessionId)).toEqual(other);
  });

  test("handles a record that is older than an archiving or a removal", async () => {
    const scope = { userId: "ann", agentId: "main" };
    await world.store.sessions.patch(scope, session.sessionId, { archived: true });
    expect(await statusOf(world.caller(session))).toMatchObject({ sessionId: session.sessionId });
    await world.store.sessions.remove(scope, session.sessionId);
    expect(await statusOf(world.caller(session))).toMatchObject({ status: "error", code: "not_found" });
  });

  test("a sleeping run is shown with what it waits for", async () => {
    const run = await world.running(session);
    const { run: child } = await world.spawn(session, "a", { by: run });
    const sleep = { waitFor: [child.runId], wakeAt: world.books.now + 1000 };
    await world.books.runs.sleep({ runId: run.runId, fence: run.fence }, sleep);
    const { run: shown } = await statusOf(world.caller(session));
    expect(shown).toMatchObject({ runId: run.runId, state: "sleeping", waitsFor: [child.runId] });
    const claim = await world.books.claim();
    await world.books.runs.end(claim.held, { state: "error", code: "internal" });
    expect((await statusOf(world.caller(session))).children).toMatchObject([{ status: "error" }]);
  });

  test("shows another session if it is visible, by key or label, also archived", async () => {
    const other = await world.session("agent:main:session:trip", { label: "trip", archived: true });
    expect(await statusOf(world.caller(session), "trip")).toMatchObject({
      status: "forbidden",
      code: "tree_visibility_restricted",
      error: expect.stringContaining("Session status visibility is restricted to the current session tree"),
    });
    world.settings = { ...world.settings, agents: { main: { visibility: { status: "agent" } } } };
    expect(await statusOf(world.caller(session), "trip")).toMatchObject({ sessionId: other.sessionId });
    expect(await statusOf(world.caller(session), other.key)).toMatchObject({
      tools: ["read", "session_status"],
    });
    await world.session("agent:main:session:bobs", {}, "bob");
    expect(await statusOf(world.caller(session), "agent:main:session:bobs")).toMatchObject({
      code: "not_found",
    });
  });

  test("omits children that the asker may not see, and pairs of agents that a sandboxed asker may not know", async () => {
    await world.spawn(session, "a");
    world.settings = {
      tools: { sessions: { visibility: "self" }, agentToAgent: { enabled: true, allow: ["main -> secret"] } },
      agents: {},
    };
    const open = await statusOf(world.caller(session));
    expect(open.children).toEqual([]);
    expect(open.policy).toMatchObject({ agentToAgent: { enabled: true, allow: ["main -> secret"] } });
    const sandboxed = await world.session("agent:main:session:box", { sandboxed: true });
    const boxed = await statusOf(world.caller(sandboxed));
    expect(boxed.policy).toMatchObject({ sandboxed: true, agentToAgent: { enabled: false } });
    expect(JSON.stringify(boxed)).not.toContain("secret");
    expect(await statusOf(world.caller(sandboxed), session.key)).toMatchObject({ status: "forbidden" });
  });

  test("a child of a sandboxed agent counts as sandboxed", async () => {
    const { session: child } = await world.spawn(session, "a");
    world.agents.set("main", agentNamed("main", { sandboxed: true }));
    const { policy } = await statusOf(world.caller(session), child.key);
    expect(policy).toMatchObject({ sandboxed: true });
  });

  test("without a session, one must be named", async () => {
    const outside = world.caller(session, null, { session: null });
    await expect(statusOf(outside)).rejects.toMatchObject({ code: "invalid_arguments", path: "sessionKey" });
  });
});
