import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { agentPolicy, spawnGround, subagents, threadChannels, wish } from "../../test/support/spawning.ts";
import type { Agent } from "./agents.ts";
import { spawnChild } from "./spawn.ts";
import type { SpawnRequest } from "./spawn-request.ts";
import { requestProblem } from "./spawn-request.ts";

let folder = "";

beforeAll(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "spawn-checks-")));
  for (const name of ["parent/inside", "outside", "root/deep"])
    mkdirSync(join(folder, name), { recursive: true });
  symlinkSync(join(folder, "outside"), join(folder, "parent", "way-out"));
  writeFileSync(join(folder, "parent", "file"), "x");
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("combinations of arguments", () => {
  test.each<[Partial<SpawnRequest>, string]>([
    [{ streamTo: "parent" }, "streamTo is only supported for runtime=acp; got runtime=subagent"],
    [{ resumeSessionId: "x" }, "resumeSessionId is only supported for runtime=acp; got runtime=subagent"],
    [
      { runtime: "acp", attachments: [{ name: "a", content: "x" }] },
      "attachments are currently unsupported for runtime=acp; use runtime=subagent or remove attachments",
    ],
    [
      { runtime: "acp", tools: ["read"] },
      "tools is unsupported for runtime=acp; use runtime=subagent or omit it",
    ],
    [
      { runtime: "acp", context: "fork" },
      'context="fork" is unsupported for runtime=acp; use runtime=subagent or omit it',
    ],
    [
      { mode: "session", cleanup: "delete" },
      'cleanup="delete" cannot be combined with mode="session", because the session stays open for further messages.',
    ],
    [{ mountPath: "in" }, "attachAs sets where attachments are written, but there are no attachments."],
  ])("%j is refused", (more, error) => {
    expect(requestProblem(wish(more))).toEqual({ status: "error", code: "invalid_arguments", error });
  });

  test("accepts the rest", () => {
    expect(requestProblem(wish())).toBeNull();
    expect(requestProblem(wish({ runtime: "acp", streamTo: "parent", resumeSessionId: "x" }))).toBeNull();
  });
});

/** A request with every possible problem. Each case fixes the problems that precede the check under test. */
const wrong: Partial<SpawnRequest> = {
  agentId: "other",
  sandbox: "require",
  cwd: "/",
  thread: true,
  mode: "session",
  thinking: "hard",
  tools: [1],
  attachments: [{ name: "../x", content: "" }],
};
const strict: Partial<Agent> = { subagents: { ...subagents, maxSpawnDepth: 1 } };

describe("the order of checks", () => {
  const open = { ...subagents, allowAgents: ["other"] };

  async function refusalOf(
    request: Partial<SpawnRequest>,
    ground: {
      readonly own?: Partial<Agent>;
      readonly deep?: boolean;
      readonly children?: number;
      readonly budget?: boolean;
      readonly delivery?: boolean;
      readonly opens?: boolean;
    } = {},
  ) {
    const agents = [agentPolicy("main", ground.own), agentPolicy("other")];
    const channels = threadChannels(ground.opens === true ? async () => "t1" : null);
    const { deps, books, caller } = spawnGround(join(folder, "parent"), agents, { channels });
    const meta = {
      ...(ground.deep === true ? { spawnedBy: "agent:main:session:top", spawnDepth: 1, role: "leaf" } : {}),
      ...(ground.delivery === true ? { delivery: { channel: "desk", to: "ann" } } : {}),
    };
    for (let at = 0; at < (ground.children ?? 0); at++) {
      await spawnChild(deps, await caller(meta, { callId: `before-${at}` }), wish());
    }
    books.overBudget = ground.budget === true;
    return spawnChild(deps, await caller(meta), wish(request));
  }

  test("is agent ID, allowed agents, depth, children, budget, sandbox, cwd, thread, thinking, tools, attachments", async () => {
    const full = { children: 2, budget: true };
    expect(await refusalOf({ ...wrong, agentId: "No Id" }, full)).toMatchObject({ code: "invalid_agent_id" });
    expect(await refusalOf(wrong, full)).toEqual({
      status: "forbidden",
      code: "agent_not_allowed",
      error:
        "agentId is not allowed for sessions_spawn (allowed: none). An operator can add it to agents.main.subagents.allowAgents.",
    });
    expect(
      await refusalOf({ ...wrong, agentId: "none" }, { own: { subagents: { ...open, allowAgents: ["*"] } } }),
    ).toMatchObject({ status: "error", code: "not_found" });
    expect(await refusalOf(wrong, { own: { subagents: open }, deep: true, budget: true })).toEqual({
      status: "forbidden",
      code: "depth_exceeded",
      error: "sessions_spawn is not allowed at this depth (current depth: 1, max: 1)",
    });
    expect(await refusalOf(wrong, { own: { subagents: open }, ...full })).toEqual({
      status: "forbidden",
      code: "children_exceeded",
      error: "sessions_spawn has reached max active children for this session (2/2)",
    });
    expect(await refusalOf(wrong, { own: { subagents: open }, budget: true })).toMatchObject({
      status: "error",
      code: "budget_exceeded",
      error: expect.stringContaining("101"),
      budget: { limit: "runs", figure: 101, allowed: 100 },
    });
    const own = { own: { subagents: open } };
    expect(await refusalOf(wrong, own)).toMatchObject({ status: "forbidden", code: "sandbox_restricted" });
    const inherit = { ...wrong, sandbox: "inherit" as const };
    expect(await refusalOf(inherit, own)).toMatchObject({ status: "forbidden", code: "cwd_not_allowed" });
    const here = { ...inherit, cwd: "inside" };
    expect(await refusalOf(here, own)).toMatchObject({ status: "error", code: "thread_unavailable" });
    expect(await refusalOf(here, { ...own, delivery: true })).toEqual({
      status: "error",
      code: "thread_unavailable",
      error: "Thread bindings are unavailable for desk.",
    });
    const on = { ...own, delivery: true, opens: true };
    const mountPath = "/elsewhere";
    expect(await refusalOf({ ...wrong, mountPath }, full)).toMatchObject({ code: "agent_not_allowed" });
    expect(await refusalOf({ ...here, thinking: "low", tools: ["read"], mountPath }, on)).toMatchObject({
      code: "attachments_invalid_mount_path",
    });
    expect(await refusalOf(here, on)).toEqual({
      status: "error",
      code: "invalid_arguments",
      error: 'Invalid thinking level "hard". Use one of: off, minimal, low, medium, high, xhigh.',
    });
    expect(await refusalOf({ ...here, thinking: "low" }, on)).toMatchObject({
      code: "invalid_arguments",
      error: expect.stringContaining("tools[0]"),
    });
    expect(await refusalOf({ ...here, thinking: "low", tools: ["read"] }, on)).toMatchObject({
      status: "error",
      code: "attachments_invalid_name",
    });
    expect(await refusalOf({ ...here, thinking: "low", tools: [], attachments: [] }, on)).toMatchObject({
      status: "ok",
    });
  });

  test("a leaf cannot spawn, whatever its agent allows; an orchestrator can, down to its agent's depth", async () => {
    const meta = (role: string) => ({ spawnedBy: "agent:main:session:top", spawnDepth: 1, role });
    const generous = [agentPolicy("main", { subagents: { ...subagents, maxSpawnDepth: 5 } })];
    const leaf = spawnGround(folder, generous);
    expect(await spawnChild(leaf.deps, await leaf.caller(meta("leaf")), wish())).toMatchObject({
      error: "sessions_spawn is not allowed at this depth (current depth: 1, max: 1)",
    });
    const orchestrator = spawnGround(folder, generous);
    expect(
      await spawnChild(orchestrator.deps, await orchestrator.caller(meta("orchestrator")), wish()),
    ).toMatchObject({ status: "ok" });
    const narrow = spawnGround(folder, [agentPolicy("main", strict)]);
    expect(await spawnChild(narrow.deps, await narrow.caller(meta("orchestrator")), wish())).toMatchObject({
      code: "depth_exceeded",
    });
  });
});

describe("sandbox", () => {
  const open = { ...subagents, allowAgents: ["*"] };
  const agents = [
    agentPolicy("main", { subagents: open }),
    agentPolicy("boxed", { sandboxed: true }),
    agentPolicy("free"),
  ];
  test.each<[boolean, Partial<SpawnRequest>, string]>([
    [true, { agentId: "free" }, "sandbox_restricted"],
    [true, {}, "boxed"],
    [true, { agentId: "boxed" }, "boxed"],
    [true, { sandbox: "require" }, "boxed"],
    [true, { runtime: "acp" }, "sandbox_restricted"],
    [false, { runtime: "acp", sandbox: "require" }, "sandbox_restricted"],
    [false, { runtime: "acp" }, "acp_unavailable"],
    [false, { sandbox: "require" }, "sandbox_restricted"],
    [false, { sandbox: "require", agentId: "boxed" }, "boxed"],
    [false, { agentId: "free" }, "free"],
  ])("[FAM27] a sandboxed parent: %s, %j: %s", async (sandboxed, request, expected) => {
    const { deps, books, store, caller } = spawnGround(folder, agents);
    const result = await spawnChild(deps, await caller({}, { sandboxed }), wish(request));
    if (result.status !== "ok") return expect(result.code).toBe(expected);
    const { session } = books.requests[0] ?? {};
    const child = await store.sessions.get({}, session?.sessionId ?? "");
    return expect(child?.meta.sandboxed === true ? "boxed" : "free").toBe(expected);
  });
});

describe("cwd", () => {
  /** Returns the child's working directory or the refusal. */
  async function childCwd(given: string, roots: readonly string[] = []) {
    const ground = spawnGround(join(folder, "parent"), [agentPolicy("main", { roots })]);
    const result = await spawnChild(ground.deps, await ground.caller(), wish({ cwd: given }));
    if (result.status !== "accepted" && result.status !== "ok") return result;
    const { session } = ground.books.requests[0] ?? {};
    return (await ground.store.sessions.get({}, session?.sessionId ?? ""))?.cwd;
  }

  test.each([
    ["inside", "parent/inside"],
    [".", "parent"],
    ["inside/..", "parent"],
  ])("[FBD7] accepts %s", async (given, real) => {
    expect(await childCwd(given)).toBe(join(folder, real));
  });

  test("[FBD7] accepts a folder in a root of the agent", async () => {
    const deep = join(folder, "root", "deep");
    expect(await childCwd(deep, [join(folder, "parent"), join(folder, "root")])).toBe(deep);
  });

  test.each(["..", "../outside", "way-out", "file", "missing", "/", "../parent-not"])(
    "[FBD7] refuses %s, with the same text",
    async (given) => {
      const refused = await childCwd(given);
      expect(refused).toMatchObject({ status: "forbidden", code: "cwd_not_allowed" });
      const { error = "" } = refused as { readonly error?: string };
      expect(error.replace(given, "X")).toMatch(/^cwd "X" is not a folder inside/);
    },
  );
});
