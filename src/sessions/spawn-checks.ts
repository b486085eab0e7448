import { resolve } from "node:path";
import { threadOpener } from "../channels/contract.ts";
import { SkeinError } from "../core/errors.ts";
import { readAgentId } from "../core/names.ts";
import { escapeToLine, inLine } from "../core/text.ts";
import type { DeliveryTarget, RootRef } from "../runs/contract.ts";
import type { SessionRecord } from "../store/contract.ts";
import { checkTextSize, modelWindow } from "./accept.ts";
import type { Agent } from "./agents.ts";
import type { App } from "./app.ts";
import { mountPathProblem } from "./attachment-place.ts";
import type { Attachment } from "./attachments.ts";
import { hasNotes, readAttachments } from "./attachments.ts";
import { spawnerOf } from "./child-rules.ts";
import type { Caller } from "./session-access.ts";
import type { SpawnRefusal, SpawnRequest } from "./spawn-request.ts";
import {
  acpAllowedProblem,
  allowedProblem,
  childrenProblem,
  depthLimit,
  depthOf,
  depthProblem,
  forbidden,
  isChildSandboxed,
  sandboxProblem,
  thinkingProblem,
  toolsProblem,
} from "./spawn-request.ts";

/** The terms of a spawn that has passed every check. */
export interface SpawnTerms {
  /** The spawning agent. */
  readonly own: Agent;
  readonly target: SpawnTarget;
  /** The agent that spawned the spawning session. `null` if the session was not spawned or the agent is unknown. */
  readonly above: Agent | null;
  readonly depth: number;
  /** Applies to the whole lineage. */
  readonly maxDepth: number;
  readonly sandboxed: boolean;
  readonly cwd: string;
  /** Opens the child's thread. `null` if no thread was requested. */
  readonly openThread: ((title: string) => Promise<DeliveryTarget & { readonly threadId: string }>) | null;
  readonly attachments: readonly Attachment[];
}

/** The child's agent. */
interface SpawnTarget extends Pick<Agent, "id" | "sandboxed"> {
  /** The maximum depth to which the child's sessions can spawn, or 0 if they cannot spawn. */
  readonly maxSpawnDepth: number;
}

/** A caller with a session, which becomes the child's parent. */
export interface Spawner extends Caller {
  readonly session: SessionRecord;
}

/** Returns the child's agent. Defaults to the caller's own agent or, over ACP, to the configured default. */
export function targetAgentId(
  { acp }: Pick<App, "acp">,
  caller: Caller,
  { agentId: named, runtime }: SpawnRequest,
): string | SpawnRefusal {
  const agentId = named ?? (runtime === "acp" ? acp.defaultAgent : caller.agentId);
  if (agentId === null) return noAcpAgent(acp.names);
  const id = readAgentId(agentId);
  if (id !== null) return id;
  const { message } = new SkeinError("invalid_agent_id", { agentId, pattern: "[a-z0-9][a-z0-9_-]{0,63}" });
  return { status: "error", code: "invalid_agent_id", error: message };
}

function noAcpAgent(names: readonly string[]): SpawnRefusal {
  const error = `No ACP agent was named, and there is no default. Pass \`agentId\` (one of ${names.join(", ")}), or set \`acp.defaultAgent\` in the configuration.`;
  return { status: "error", code: "acp_unavailable", error };
}

/**
 * Runs every check in order and returns the first failure. The limits on children and budget are checked here only to
 * give refusals a stable order. The transaction that creates the child enforces them.
 */
export async function checkSpawn(
  app: App,
  caller: Spawner,
  request: SpawnRequest,
  root: RootRef,
): Promise<SpawnTerms | SpawnRefusal> {
  const agents = checkAgents(app, caller, request);
  if ("status" in agents) return agents;
  const { own, target } = agents;
  const { meta } = caller.session;
  const max = own.subagents.maxSpawnDepth;
  const sandboxed = isChildSandboxed(caller.sandboxed, own, target);
  const refused =
    depthProblem(meta, max) ??
    (await openChildrenProblem(app, caller, own)) ??
    (await budgetProblem(app, root)) ??
    sandboxProblem(request, caller.sandboxed, sandboxed);
  if (refused !== null) return refused;
  const place = checkCwd(app, caller, request, target);
  if ("status" in place) return place;
  const thread = checkThread(app, caller, request);
  if ("status" in thread) return thread;
  const unfit =
    thinkingProblem(request, (name) => app.models.check(name)) ??
    toolsProblem(request.tools) ??
    (await taskSizeProblem(app, request, target));
  if (unfit !== null) return unfit;
  const mount = request.mountPath === undefined ? null : mountPathProblem(request.mountPath);
  if (mount !== null) return { status: "error", ...mount };
  // A replayed call's arguments can contain notes instead of the files, which an earlier attempt might have written.
  // The notes are compared with those files later.
  const read = hasNotes(request.attachments)
    ? { attachments: [] }
    : readAttachments(request.attachments, own.subagents.attachments);
  if ("code" in read) return { status: "error", ...read };
  const { attachments } = read;
  const { openThread } = thread;
  return {
    own,
    target,
    above: meta.spawnedBy === undefined ? null : app.agents.find(spawnerOf(meta, own.id)),
    depth: depthOf(meta) + 1,
    maxDepth: depthLimit(meta, max),
    sandboxed,
    ...place,
    openThread,
    attachments,
  };
}

/** Checks both agents. A caller that is not allowed to spawn an agent does not learn whether the agent exists. */
function checkAgents(
  app: App,
  caller: Caller,
  request: SpawnRequest,
): { readonly own: Agent; readonly target: SpawnTarget } | SpawnRefusal {
  const { agents, acp } = app;
  const targetId = targetAgentId(app, caller, request);
  if (typeof targetId !== "string") return targetId;
  const own = agents.find(caller.agentId);
  if (own === null) return noSuchAgent(caller.agentId);
  const isAcp = request.runtime === "acp";
  const refused = isAcp ? acpAllowedProblem(acp, targetId) : allowedProblem(own, targetId);
  if (refused !== null) return refused;
  // An ACP agent runs on the host and has no tools for spawning.
  if (isAcp) return { own, target: { id: targetId, sandboxed: false, maxSpawnDepth: 0 } };
  const target = agents.find(targetId);
  if (target === null) return noSuchAgent(targetId);
  const { id, sandboxed, subagents } = target;
  return { own, target: { id, sandboxed, maxSpawnDepth: subagents.maxSpawnDepth } };
}

function noSuchAgent(agentId: string): SpawnRefusal {
  const error = `Agent not found: ${escapeToLine(agentId)} (agents_list shows the available agents)`;
  return { status: "error", code: "not_found", error };
}

async function openChildrenProblem(
  { runs }: App,
  { userId, session }: Spawner,
  { subagents }: Agent,
): Promise<SpawnRefusal | null> {
  const open = await runs.children(userId, session.key, { open: true });
  return childrenProblem(open.length, subagents.maxChildren);
}

async function budgetProblem({ runs }: App, root: RootRef): Promise<SpawnRefusal | null> {
  try {
    await runs.checkBudget(root);
    return null;
  } catch (error) {
    return limitRefusal(error) ?? Promise.reject(error);
  }
}

/** Checks the task's size. The window of an ACP agent's model is unknown. */
async function taskSizeProblem(
  app: App,
  { task, model, runtime }: SpawnRequest,
  { id }: SpawnTarget,
): Promise<SpawnRefusal | null> {
  if (runtime === "acp") return null;
  try {
    await checkTextSize(task, () => modelWindow(app, id, "", model));
    return null;
  } catch (error) {
    if (!(error instanceof SkeinError)) throw error;
    return { status: "error", code: error.code, error: error.message };
  }
}

/** Returns the refusal for a limit that the transaction enforced, or `null` if the error has another cause. */
export function limitRefusal(error: unknown, max?: number): SpawnRefusal | null {
  if (!(error instanceof SkeinError)) return null;
  const code: string = error.code;
  if (code === "children_exceeded" && max !== undefined) return childrenProblem(max, max);
  if (code === "children_exceeded") return forbidden(code, error.message);
  if (code === "budget_exceeded")
    return { status: "error", code, error: error.message, budget: { ...error.details } };
  return null;
}

/** Checks the folder. A missing folder and a forbidden folder get the same refusal. */
function checkCwd(
  { files }: Pick<App, "files">,
  { userId, session }: Spawner,
  { cwd: given }: SpawnRequest,
  target: SpawnTarget,
): { readonly cwd: string } | SpawnRefusal {
  const owner = { userId, agentId: target.id };
  if (given === undefined) {
    // The parent's folder could be another agent's workspace.
    const isAllowed = "path" in files.checkPath(owner, session.cwd, "read");
    return { cwd: isAllowed ? session.cwd : files.defaultCwd(owner) };
  }
  const choice = files.resolveCwd(owner, resolve(session.cwd, given), { parent: session });
  if ("cwd" in choice) return choice;
  const error = `cwd "${inLine(given)}" is not a folder inside this session's working directory or one of its agent's roots (agents.<id>.roots).`;
  return forbidden("cwd_not_allowed", error);
}

function checkThread(
  { channels }: App,
  { session }: Spawner,
  { thread }: SpawnRequest,
): Pick<SpawnTerms, "openThread"> | SpawnRefusal {
  if (!thread) return { openThread: null };
  const { delivery } = session.meta;
  if (delivery === undefined) {
    const error = "thread=true requires a channel, but this session has never been reached over one.";
    return { status: "error", code: "thread_unavailable", error };
  }
  const open = threadOpener(channels, delivery.channel);
  if (open === null) {
    const error = `Thread bindings are unavailable for ${escapeToLine(delivery.channel)}.`;
    return { status: "error", code: "thread_unavailable", error };
  }
  const { threadId: _, ...target } = delivery;
  return { openThread: async (title) => ({ ...target, threadId: await open(target, title) }) };
}
