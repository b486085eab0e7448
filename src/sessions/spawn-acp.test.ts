import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { agentPolicy, spawnGround, subagents, threadChannels, wish } from "../../test/support/spawning.ts";
import { resolveReference } from "../core/references.ts";
import type { Run } from "../runs/contract.ts";
import type { SessionMeta } from "../store/contract.ts";
import type { AcpAgents, App } from "./app.ts";
import { childEnd } from "./child-run.ts";
import { HookRegistry } from "./hooks.ts";
import { spawnChild } from "./spawn.ts";
import type { SpawnRequest } from "./spawn-request.ts";
import { requestProblem } from "./spawn-request.ts";

let folder = "";

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "spawn-acp-")));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

const acpWish = (more: Partial<SpawnRequest> = {}) => wish({ runtime: "acp", agentId: "codex", ...more });

/** An app with ACP agents. By default, each one reports its session ID immediately. */
function acpGround(acp: Partial<AcpAgents> = {}, more: Partial<App> = {}, agents = [agentPolicy("main")]) {
  const ground = spawnGround(folder, agents, {
    acp: {
      names: ["codex", "pi"],
      defaultAgent: null,
      untilAgentSessionId: async (run) => {
        await link(run);
        return "their-1";
      },
      ...acp,
    },
    ...more,
  });
  const link = async ({ session }: Pick<Run, "session">, agentSessionId = "their-1") => {
    const { meta } = (await ground.store.sessions.get({}, session.sessionId)) ?? { meta: {} as SessionMeta };
    const kept = meta.acp as Record<string, string>;
    await ground.store.sessions.patch({}, session.sessionId, { acp: { ...kept, agentSessionId } });
  };
  return { ...ground, link };
}

describe("arguments of a spawn over ACP", () => {
  test.each<[Partial<SpawnRequest>, string]>([
    [{ tools: [] }, "tools is unsupported for runtime=acp; use runtime=subagent or omit it"],
    [
      { mountPath: "in" },
      "attachments are currently unsupported for runtime=acp; use runtime=subagent or remove attachments",
    ],
    [
      { mode: "session", cleanup: "delete" },
      'cleanup="delete" cannot be combined with mode="session", because the session stays open for further messages.',
    ],
    [
      { resumeSessionId: "a\nb" },
      'resumeSessionId must be one line without control characters, got "a\\u000ab"',
    ],
    [{ resumeSessionId: "x".repeat(513) }, "resumeSessionId has 513 characters; the maximum is 512"],
    [{ model: "x".repeat(257) }, "model has 257 characters; the maximum is 256"],
    [{ thinking: "a\u0007" }, 'thinking must be one line without control characters, got "a\\u0007"'],
  ])("%j is refused", (more, error) => {
    expect(requestProblem(acpWish(more))).toEqual({ status: "error", code: "invalid_arguments", error });
  });

  test("the agent's own model and thinking level are passed on unchanged", async () => {
    const { deps: app, books, store, caller } = acpGround();
    const given = { model: "Opus (best)", thinking: "ultra", resumeSessionId: "x".repeat(512) };
    expect(await spawnChild(app, await caller(), acpWish(given))).toMatchObject({ status: "ok" });
    const child = await store.sessions.get({}, books.requests[0]?.session.sessionId ?? "");
    expect(child?.meta.acp).toEqual({ ...given, agentSessionId: "their-1" });
    expect(child?.meta).not.toHaveProperty("model");
    expect(child?.meta).not.toHaveProperty("thinkingLevel");
  });
});

describe("a child over ACP", () => {
  test("[ASP14] is a session of the ACP agent's name with the parent's lineage, and gets only the task", async () => {
    const { deps: app, books, store, caller } = acpGround();
    const delivery = { channel: "desk", to: "ann" };
    const run = { runId: "parent-run", root: { rootId: "r", hops: 2 }, options: {} } as Run;
    const from = await caller({ channel: "desk", delivery, sendPolicy: "deny" }, { run });
    const result = await spawnChild(app, from, acpWish({ label: "pages", streamTo: "parent" }));
    const [request] = books.requests;
    const spawnId = request?.child?.spawnId ?? "";
    expect(spawnId).toMatch(/^[0-9a-f]{16}$/);
    expect(result).toEqual({
      status: "ok",
      runId: request?.runId,
      agentSessionId: "their-1",
      childSessionKey: `agent:codex:acp:${spawnId}`,
      label: "pages",
      mode: "run",
      note: expect.stringContaining("sessions_yield"),
    });
    expect(request).toMatchObject({
      kind: "spawn",
      message: { role: "user", content: "Count the pages", provenance: { sourceTool: "sessions_spawn" } },
      root: { rootId: "r", hops: 3 },
      startedBy: "parent-run",
      options: { streamTo: "parent", sequel: { type: "child", label: "pages" } },
      child: { parentKey: "agent:main:main", maxChildren: 2, archiveAfterMs: 3_600_000 },
    });
    const child = await store.sessions.get({}, request?.session.sessionId ?? "");
    expect(child).toMatchObject({ agentId: "codex", cwd: folder, userId: null });
    expect(child?.meta).toMatchObject({
      spawnedBy: "agent:main:main",
      spawnDepth: 1,
      spawnLimit: 2,
      role: "leaf",
      spawnMode: "run",
      rootId: "r",
      channel: "desk",
      delivery,
      sendPolicy: "deny",
      acp: { agentSessionId: "their-1" },
    });
  });

  test("[ASP14] can store its agent's reports from the start, and has a key that its parent can find", async () => {
    const { deps: app, store, caller } = acpGround({ untilAgentSessionId: async () => null });
    const { childSessionKey } = await spawnChild(app, await caller(), acpWish());
    const asker = { agentId: "main", key: "agent:main:main" };
    const found = await resolveReference(String(childSessionKey), asker, (by) => store.sessions.find({}, by));
    expect(found?.meta.acp).toEqual({});
  });

  test("[ASP14] uses the default agent if none is named, and a label in use gets a number", async () => {
    const { deps: app, caller } = acpGround({ defaultAgent: "pi" });
    const labels: unknown[] = [];
    for (const callId of ["1", "2"]) {
      const { agentId: _, ...unnamed } = acpWish({ label: "a" });
      const { label, childSessionKey } = await spawnChild(app, await caller({}, { callId }), unnamed);
      labels.push(label, String(childSessionKey).split(":")[1]);
    }
    expect(labels).toEqual(["a", "pi", "a (2)", "pi"]);
  });

  test("[ASP14] can be bound to a thread like any other", async () => {
    const channels = threadChannels(async () => "t1");
    const { deps: app, books, caller } = acpGround({}, { channels });
    const from = await caller({ delivery: { channel: "desk", to: "ann" } });
    const result = await spawnChild(app, from, acpWish({ thread: true, mode: "session" }));
    expect(result).toMatchObject({ threadId: "t1", mode: "session" });
    expect(books.threads.get("desk/t1")).toBe(result.childSessionKey);
  });

  test("is passed to hooks as an ACP session, when it is created and when it ends", async () => {
    const hooks = new HookRegistry();
    const told: unknown[] = [];
    hooks.on("subagent_spawning", ({ runtime, agentId }) => void told.push(runtime, agentId));
    hooks.on("subagent_spawned", ({ runtime, childSessionKey }) => void told.push(runtime, childSessionKey));
    const { deps: app, books, caller } = acpGround({}, { hooks });
    const { runId, childSessionKey } = await spawnChild(app, await caller(), acpWish());
    expect(told).toEqual(["acp", "codex", "acp", childSessionKey]);
    expect(childEnd(books.end(String(runId), "done"))).toMatchObject({ runtime: "acp", result: "done" });
  });
});

describe("the order of checks over ACP", () => {
  const everything: Partial<SpawnRequest> = { sandbox: "require", cwd: "/", thread: true, mode: "session" };
  const deep: SessionMeta = { spawnedBy: "agent:main:session:top", spawnDepth: 2, role: "orchestrator" };

  interface Wrong {
    readonly meta?: SessionMeta;
    readonly children?: number;
    readonly overBudget?: boolean;
    readonly sandboxed?: boolean;
  }

  async function refusalOf(request: Partial<SpawnRequest>, wrong: Wrong) {
    const { deps: app, books, caller } = acpGround();
    for (let at = 0; at < (wrong.children ?? 0); at++)
      await spawnChild(app, await caller(wrong.meta, { callId: `${at}` }), acpWish());
    books.overBudget = wrong.overBudget ?? false;
    const from = await caller(wrong.meta, { callId: "last", sandboxed: wrong.sandboxed ?? false });
    return spawnChild(app, from, wish({ runtime: "acp", ...everything, ...request }));
  }

  const all: Wrong = { meta: deep, overBudget: true, sandboxed: true };
  test.each<[string, Partial<SpawnRequest>, Wrong]>([
    ["acp_unavailable", {}, all],
    ["invalid_agent_id", { agentId: "no such id" }, all],
    ["agent_not_allowed", { agentId: "other" }, all],
    ["depth_exceeded", { agentId: "codex" }, all],
    ["children_exceeded", { agentId: "codex" }, { children: 2, overBudget: true, sandboxed: true }],
    ["budget_exceeded", { agentId: "codex" }, { overBudget: true, sandboxed: true }],
    ["sandbox_restricted", { agentId: "codex", sandbox: "inherit" }, { sandboxed: true }],
    ["sandbox_restricted", { agentId: "codex" }, {}],
    ["cwd_not_allowed", { agentId: "codex", sandbox: "inherit" }, {}],
    ["thread_unavailable", { agentId: "codex", sandbox: "inherit", cwd: "." }, {}],
    ["ok", { agentId: "codex", sandbox: "inherit", cwd: ".", thread: false }, {}],
  ])("%s is checked before what follows", async (code, request, wrong) => {
    const result = await refusalOf(request, wrong);
    expect(result.code ?? result.status).toBe(code);
  });

  test("a refusal does not reveal which other agents exist", async () => {
    const { deps: app, caller } = acpGround();
    const told = async (agentId: string) =>
      (await spawnChild(app, await caller(), acpWish({ agentId }))).error;
    expect(await told("claude")).toBe('ACP agent "claude" is not allowed by policy (allowed: codex, pi)');
    expect(await told("main")).toBe('ACP agent "main" is not allowed by policy (allowed: codex, pi)');
  });

  test("an agent allowed only for sub-agents is not an ACP agent, and vice versa", async () => {
    const own = agentPolicy("main", { subagents: { ...subagents, allowAgents: ["*"] } });
    const { deps: app, caller } = acpGround({}, {}, [own, agentPolicy("other")]);
    expect(await spawnChild(app, await caller(), acpWish({ agentId: "other" }))).toMatchObject({
      code: "agent_not_allowed",
    });
    expect(await spawnChild(app, await caller(), wish({ agentId: "codex" }))).toMatchObject({
      code: "not_found",
    });
  });

  test("without a default agent, one must be named", async () => {
    const { deps: app, caller } = acpGround();
    expect(await spawnChild(app, await caller(), wish({ runtime: "acp" }))).toEqual({
      status: "error",
      code: "acp_unavailable",
      error:
        "No ACP agent was named, and there is no default. Pass `agentId` (one of codex, pi), or set `acp.defaultAgent` in the configuration.",
    });
  });

  test("accepts a folder inside the parent's", async () => {
    mkdirSync(join(folder, "inside"));
    const { deps: app, books, store, caller } = acpGround();
    await spawnChild(app, await caller(), acpWish({ cwd: "inside" }));
    const child = await store.sessions.get({}, books.requests[0]?.session.sessionId ?? "");
    expect(child?.cwd).toBe(join(folder, "inside"));
  });
});
