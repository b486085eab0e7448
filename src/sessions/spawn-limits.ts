import { inLine } from "../core/text.ts";
import type { SessionMeta } from "../store/contract.ts";
import { parseModel } from "../transcript/parse-model.ts";
import type { Agent } from "./agents.ts";
import type { AcpAgents } from "./app.ts";
import type { SpawnRefusal, SpawnRequest } from "./spawn-request.ts";
import { unfit } from "./spawn-request.ts";

/** The single checks before something is spawned, each by what it is told. `null`: nothing is in the way. */

export const thinkingLevels = ["off", "minimal", "low", "medium", "high", "xhigh"];

export function allowedProblem(own: Agent, targetId: string): SpawnRefusal | null {
  const { allowAgents } = own.subagents;
  if (targetId === own.id || allowAgents.includes("*") || allowAgents.includes(targetId)) return null;
  const allowed = allowAgents.length === 0 ? "none" : allowAgents.join(", ");
  return forbidden("agent_not_allowed", `agentId is not allowed for sessions_spawn (allowed: ${allowed})`);
}

/** The same words whether there is such an agent or not. */
export function acpAllowedProblem({ names }: AcpAgents, targetId: string): SpawnRefusal | null {
  if (names.includes(targetId)) return null;
  const error = `ACP agent "${targetId}" is not allowed by policy (allowed: ${names.join(", ")})`;
  return forbidden("agent_not_allowed", error);
}

/** How deep a session is: 0 for one that nobody spawned. */
export function depthOf({ spawnDepth, spawnedBy }: SessionMeta): number {
  if (spawnedBy === undefined) return 0;
  return typeof spawnDepth === "number" && Number.isInteger(spawnDepth) && spawnDepth > 0 ? spawnDepth : 1;
}

/** How deep a lineage may go from here: as far as whoever began it allowed, and no further than its own agent does. */
export function depthLimit({ spawnLimit, spawnedBy }: SessionMeta, max: number): number {
  return spawnedBy !== undefined && typeof spawnLimit === "number" ? Math.min(spawnLimit, max) : max;
}

/** Who was spawned as a leaf stays one, whatever its own agent allows. */
export function depthProblem(meta: SessionMeta, max: number): SpawnRefusal | null {
  const depth = depthOf(meta);
  const limit = depthLimit(meta, max);
  const most = meta.spawnedBy !== undefined && meta.role !== "orchestrator" ? Math.min(depth, limit) : limit;
  if (depth < most) return null;
  const figures = `(current depth: ${depth}, max: ${most})`;
  return forbidden("depth_exceeded", `sessions_spawn is not allowed at this depth ${figures}`);
}

export function childrenProblem(active: number, max: number): SpawnRefusal | null {
  if (active < max) return null;
  const figures = `(${active}/${max})`;
  const error = `sessions_spawn has reached max active children for this session ${figures}`;
  return forbidden("children_exceeded", error);
}

/** Inherited by a child of the same agent alone: another agent is what it is. */
export function isChildSandboxed(
  isSandboxed: boolean,
  own: Pick<Agent, "id">,
  target: Pick<Agent, "id" | "sandboxed">,
): boolean {
  return target.sandboxed || (isSandboxed && own.id === target.id);
}

export function sandboxProblem(
  { sandbox, runtime }: Pick<SpawnRequest, "sandbox" | "runtime">,
  isSandboxed: boolean,
  isChildToBe: boolean,
): SpawnRefusal | null {
  if (runtime === "acp" && isSandboxed) {
    const error =
      'Sandboxed sessions cannot spawn ACP sessions because runtime="acp" runs on the host. Use runtime="subagent" from sandboxed sessions.';
    return forbidden("sandbox_restricted", error);
  }
  if (runtime === "acp" && sandbox === "require") {
    const error =
      'sessions_spawn sandbox="require" is unsupported for runtime="acp" because ACP sessions run outside the sandbox. Use runtime="subagent" or sandbox="inherit".';
    return forbidden("sandbox_restricted", error);
  }
  if (runtime === "acp") return null;
  if (isSandboxed && !isChildToBe) {
    const error =
      "Sandboxed sessions cannot spawn unsandboxed subagents. Set a sandboxed target agent or use the same agent runtime.";
    return forbidden("sandbox_restricted", error);
  }
  if (sandbox === "inherit" || isChildToBe) return null;
  const error =
    'sessions_spawn sandbox="require" needs a sandboxed target runtime. Pick a sandboxed agentId or use sandbox="inherit".';
  return forbidden("sandbox_restricted", error);
}

/** Of the words of somebody else's agent nothing is known here. */
export function thinkingProblem(
  { thinking, model, runtime }: SpawnRequest,
  checkModel: (name: string) => void = () => undefined,
): SpawnRefusal | null {
  if (runtime === "acp") return null;
  if (thinking !== undefined && !thinkingLevels.includes(thinking)) {
    return unfit(
      `Invalid thinking level "${inLine(thinking, 60)}". Use one of: ${thinkingLevels.join(", ")}.`,
    );
  }
  if (model === undefined) return null;
  try {
    parseModel(model);
    checkModel(model);
    return null;
  } catch (error) {
    return unfit(error instanceof Error ? error.message : String(error));
  }
}

/** Names, groups and patterns. An empty list is none at all. */
export function toolsProblem(tools: SpawnRequest["tools"]): SpawnRefusal | null {
  const at = (tools ?? []).findIndex((entry) => typeof entry !== "string" || entry.trim() === "");
  if (at === -1) return null;
  return unfit(`tools[${at}] must be the name of a tool, a group (group:sessions) or a pattern with *.`);
}

export function forbidden(code: string, error: string): SpawnRefusal {
  return { status: "forbidden", code, error };
}
