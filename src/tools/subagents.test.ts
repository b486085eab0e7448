import { beforeEach, describe, expect, test } from "vitest";
import { fakeApp } from "../../test/support/fake-app.ts";
import { agentNamed, spawnIdOf, WatchingWorld } from "../../test/support/watching-world.ts";
import type { Run } from "../runs/contract.ts";
import type { SessionRecord } from "../store/contract.ts";
import type { ToolResult } from "./session-tool.ts";
import { subagents } from "./subagents.ts";

let world: WatchingWorld;
let parent: SessionRecord;
let run: Run;
beforeEach(async () => {
  world = new WatchingWorld();
  parent = await world.session("agent:main:main");
  run = await world.running(parent);
});

const minute = 60_000;
const act = async (args: Record<string, unknown>, by = world.caller(parent, run)): Promise<ToolResult> =>
  (await subagents.execute(args, by, world.deps)).result;
const spawn = (spawnId: string, label: string, task?: string) =>
  world.spawn(parent, spawnId, { by: run, label, ...(task === undefined ? {} : { task }) });
const claimAndEnd = async () => {
  const claim = await world.books.claim();
  await world.books.runs.end(claim.held, { state: "ok" });
  return claim.run;
};

describe("subagents list", () => {
  test("lists working children and recently ended ones, with their status", async () => {
    const old = await spawn("old", "old");
    await claimAndEnd();
    world.books.now += 31 * minute;
    const done = await spawn("done", "done", `Read\n${"x".repeat(100)}`);
    await claimAndEnd();
    world.books.now += 5 * minute;
    const busy = await spawn("busy", "busy");
    await world.books.claim();
    world.books.now += 1000;
    const next = await spawn("next", "next");
    const result = await act({});
    expect(result).toMatchObject({ status: "ok", action: "list", total: 3 });
    expect(result.active).toEqual([
      {
        runId: next.run.runId,
        sessionKey: `subagent:${spawnIdOf("next")}`,
        label: "next",
        task: "Look it up",
        status: "queued",
        model: "rehearsal/basic",
        totalTokens: 0,
        pendingDescendants: 0,
      },
      expect.objectContaining({ runId: busy.run.runId, status: "running", runtimeMs: 1000 }),
    ]);
    expect(result.recent).toMatchObject([
      { runId: done.run.runId, status: "ok", runtimeMs: 0, endedAt: expect.any(Number) },
    ]);
    const [{ task }] = result.recent as [{ task: string }];
    expect(task).toBe(`Read ${"x".repeat(66)}…`);
    expect(result.text).toBe(
      `Active:\n- next: queued (Look it up)\n- busy: running (Look it up)\nRecent:\n- done: ok (${task})`,
    );
    const further = await act({ action: "list", recentMinutes: 1440 });
    expect(further.total).toBe(4);
    expect((further.recent as { runId: string }[]).map(({ runId }) => runId)).toContain(old.run.runId);
  });

  test("a child with work below it is active, and other sessions' children are not listed", async () => {
    const { session } = await spawn("a", "a");
    await claimAndEnd();
    await world.spawn(session, "below");
    const stranger = await world.session("agent:main:session:other");
    await world.spawn(stranger, "theirs");
    expect(await act({})).toMatchObject({
      total: 1,
      active: [{ label: "a", status: "ok", pendingDescendants: 1 }],
      text: "Active:\n- a: ok, 1 working below it (Look it up)",
    });
    const nobody = await world.session("agent:main:session:alone");
    expect(await act({}, world.caller(nobody))).toMatchObject({ total: 0, text: "No sub-agents." });
    const outside = world.caller(parent, null, { session: null });
    expect(await act({}, outside)).toMatchObject({ code: "no_session", error: "No session context" });
  });
});

describe("the model of a child", () => {
  test("is the one it was spawned with, or its agent's", async () => {
    const { session } = await spawn("own", "own");
    await spawn("plain", "plain");
    await world.store.sessions.patch({ userId: "ann" }, session.sessionId, { model: "big/one" });
    const { active } = await act({});
    expect(active).toMatchObject([{ model: "rehearsal/basic" }, { model: "big/one" }]);
  });
});

describe("selecting a child", () => {
  test("by key, display key, label, run ID and last", async () => {
    const first = await spawn("one", "first");
    await spawn("two", "second");
    const { key } = first.session;
    for (const target of [key, `subagent:${spawnIdOf("one")}`, "first", first.run.runId]) {
      const shown = await act({ action: "steer", target, message: "Hi" });
      expect(shown.sessionKey, target).toBe(`subagent:${spawnIdOf("one")}`);
    }
    expect(await act({ action: "kill", target: "last" })).toMatchObject({ label: "second" });
  });

  test("an unrelated session is unknown, existing or not; a grandchild cannot be steered", async () => {
    const { session } = await spawn("a", "a");
    const below = await world.spawn(session, "below", { label: "below" });
    const stranger = await world.spawn(await world.session("agent:main:session:other"), "theirs");
    for (const target of [stranger.session.key, `agent:main:subagent:p:${spawnIdOf("nobody")}`]) {
      const error = `Unknown subagent session: ${target}`;
      expect(await act({ action: "kill", target })).toEqual({
        action: "kill",
        status: "error",
        code: "not_found",
        error,
      });
    }
    expect(await act({ action: "steer", target: "nobody", message: "Hi" })).toMatchObject({
      error: "Unknown subagent target: nobody",
    });
    expect(await act({ action: "steer", target: "below", message: "Hi" })).toEqual({
      action: "steer",
      status: "forbidden",
      code: "not_own_child",
      error: "Subagents can only control runs spawned from their own session.",
    });
    expect(await act({ action: "kill", target: "below" })).toMatchObject({
      status: "ok",
      runId: below.run.runId,
    });
    expect((await world.open(session)).length).toBe(1);
  });

  test("a leaf controls no one, and invalid arguments are refused with their path", async () => {
    const leaf = await world.session(`agent:main:subagent:p:${spawnIdOf("leaf")}`, {
      spawnedBy: parent.key,
      role: "leaf",
    });
    expect(await act({ action: "kill", target: "last" }, world.caller(leaf))).toMatchObject({
      status: "forbidden",
      error: "Leaf subagents cannot control other sessions.",
    });
    await spawn("a", "a");
    const refused = (args: object, path: string, message: string) =>
      expect(act({ ...args })).rejects.toMatchObject({ code: "invalid_arguments", path, message });
    await refused({ action: "kill" }, "target", "Missing subagent target.");
    await refused({ action: "steer", target: "a" }, "message", "message required");
    await refused({ action: "stop", target: "a" }, "action", "Unsupported action.");
    const message = "x".repeat(4001);
    await refused(
      { action: "steer", target: "a", message },
      "message",
      "Message too long (4001 chars, max 4000).",
    );
  });
});

describe("kill", () => {
  test("[OTH10] aborts the run and everything below it; a second time reports done", async () => {
    const { session, run: first } = await spawn("a", "a");
    const below = await world.spawn(session, "b");
    const deeper = await world.spawn(below.session, "c");
    await world.accept(session);
    expect(await act({ action: "kill", target: "a" })).toEqual({
      status: "ok",
      action: "kill",
      runId: first.runId,
      sessionKey: `subagent:${spawnIdOf("a")}`,
      label: "a",
      killed: 4,
      descendants: 2,
      text: "Killed a and 2 below it.",
    });
    for (const { runId } of [first, below.run, deeper.run])
      expect((await world.run(runId)).state).toBe("aborted");
    expect(await act({ action: "kill", target: "a" })).toMatchObject({
      status: "done",
      text: "a is already finished.",
    });
  });

  test("[OTH10] turns that the end of a descendant starts in the child are aborted too", async () => {
    const { session } = await spawn("a", "a");
    const below = await world.spawn(session, "b");
    const { deps } = world;
    const announced: Run[] = [];
    const untilEnded = async (runId: string) => {
      if (runId === below.run.runId) announced.push(await world.accept(session, { kind: "announce" }));
      return world.run(runId);
    };
    const caller = world.caller(parent, run);
    const { result } = await subagents.execute(
      { action: "kill", target: "a" },
      caller,
      fakeApp({ ...deps, watcher: { untilEnded } }),
    );
    expect(result).toMatchObject({ killed: 3, descendants: 1 });
    expect(await world.open(session)).toEqual([]);
    expect((await world.run(announced[0]?.runId ?? "")).state).toBe("aborted");
  });

  test("[OTH10] an abort of the caller ends the wait; a run that does not end in time is counted", async () => {
    await spawn("a", "a");
    const abort = new AbortController();
    const untilEnded = (_: string, signal: AbortSignal) =>
      new Promise<Run>((_done, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
        abort.abort(new Error("stopped"));
      });
    const caller = world.caller(parent, run, { signal: abort.signal });
    const killing = subagents.execute(
      { action: "kill", target: "a" },
      caller,
      fakeApp({ ...world.deps, watcher: { untilEnded } }),
    );
    await expect(killing).rejects.toThrow("stopped");
  });
});

describe("steer", () => {
  test("adds to the running turn, under the caller's root, with its origin, once", async () => {
    const { session } = await spawn("a", "a");
    world.known(session);
    const claim = await world.books.claim();
    const result = await act({ action: "steer", target: "a", message: "Only the north." });
    expect(result).toMatchObject({
      status: "ok",
      action: "steer",
      sessionKey: `subagent:${spawnIdOf("a")}`,
      mode: "steered",
    });
    const again = await act({ action: "steer", target: "a", message: "Only the north." });
    expect(again.runId).toBe(result.runId);
    const [said, ...others] = await world.books.runs.steerable(claim.held);
    expect(others).toEqual([]);
    const provenance = {
      kind: "inter_session",
      sourceSessionKey: parent.key,
      sourceTool: "subagents",
      rootId: run.root.rootId,
      hops: run.root.hops + 1,
      deliveryId: "call-1",
    };
    expect(said).toMatchObject({
      runId: result.runId,
      kind: "send",
      queueMode: "steer",
      message: { role: "user", content: "Only the north.", provenance },
      root: { rootId: run.root.rootId, hops: run.root.hops + 1 },
      provenance,
    });
  });

  test("an ACP agent gets the message when its turn has ended, and each result says so", async () => {
    const { session } = await world.spawn(parent, "a", { by: run, label: "a", acp: "codex" });
    world.known(session);
    const claim = await world.books.claim();
    const said = await act({ action: "steer", target: session.key, message: "Only the north." });
    expect(said).toMatchObject({
      status: "ok",
      sessionKey: session.key,
      mode: "queued",
      text: "The message will be delivered after its current turn, because ACP agents accept no input during a turn.",
    });
    await world.books.runs.mergeInput(claim.held, String(said.runId));
    await world.books.runs.end(claim.held, { state: "ok" });
    expect(await act({ action: "steer", target: "a", message: "Only the north." })).toEqual(said);
  });

  test("an ACP agent is listed as such, and killed like any other", async () => {
    world.agents.set("codex", agentNamed("codex", { model: "m/of-another" }));
    const { session } = await world.spawn(parent, "a", { by: run, label: "a", acp: "codex" });
    const listed = await act({ action: "list" });
    expect(listed).toMatchObject({
      active: [{ sessionKey: session.key, model: "acp/codex", status: "queued" }],
    });
    expect(await act({ action: "kill", target: "last" })).toMatchObject({ status: "ok", killed: 1 });
    expect(await world.open(session)).toEqual([]);
  });

  test("a child that has not started takes it as a separate turn; a finished one is done", async () => {
    const { session } = await spawn("a", "a");
    world.known(session);
    const said = await act({ action: "steer", target: "a", message: "Hi" });
    expect(said).toMatchObject({ mode: "queued" });
    await world.books.runs.abort((await world.open(session))[0]?.runId ?? "");
    await world.books.runs.abort((await world.open(session))[0]?.runId ?? "");
    // Repeating the call returns the first result. A different call is too late.
    expect(await act({ action: "steer", target: "a", message: "Hi" })).toEqual(said);
    const other = { ...world.caller(parent, run), callId: "call-2" };
    expect(await act({ action: "steer", target: "a", message: "Hi" }, other)).toMatchObject({
      status: "done",
      text: "a is already finished.",
    });
  });
});
