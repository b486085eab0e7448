import { createHash } from "node:crypto";
import { childRunId, hashedId } from "../core/hashed-id.ts";
import { formatKey } from "../core/keys.ts";
import { cutText, escapeToLine, inLine } from "../core/text.ts";
import { readThinkingLevel, thinkingLevels } from "../core/thinking-levels.ts";
import type { SessionMeta, SessionRecord } from "../store/contract.ts";
import { parseModel } from "../transcript/model-table.ts";
import type { Agent } from "./agents.ts";
import type { AcpAgents } from "./app.ts";
import type { GivenAttachment } from "./attachments.ts";

/** The parameters for a spawn, with all defaults applied. */
export interface SpawnRequest {
  readonly task: string;
  readonly label?: string;
  readonly runtime: "subagent" | "acp";
  readonly agentId?: string;
  readonly resumeSessionId?: string;
  readonly model?: string;
  readonly thinking?: string;
  readonly cwd?: string;
  /** 0 means no timeout. */
  readonly runTimeoutSeconds?: number;
  readonly thread: boolean;
  readonly mode: "run" | "session";
  readonly cleanup: "keep" | "delete";
  readonly sandbox: "inherit" | "require";
  readonly streamTo?: "parent";
  readonly tools?: readonly unknown[];
  readonly background: boolean;
  readonly context: "isolated" | "fork";
  readonly attachments: readonly GivenAttachment[];
  readonly mountPath?: string;
}

/** Why nothing was spawned, in the form that the tool returns. */
export interface SpawnRefusal {
  readonly status: "error" | "forbidden";
  readonly code: string;
  readonly error: string;
  /** For `budget_exceeded`: the limit and the amounts used. */
  readonly budget?: Readonly<Record<string, string | number>>;
  /** The ID of a thread that had already been opened. */
  readonly threadId?: string;
}

/** Returns which arguments contradict each other, or `null` if none do. */
export function requestProblem(request: SpawnRequest): SpawnRefusal | null {
  const { runtime, streamTo, resumeSessionId, mode, cleanup, attachments, mountPath } = request;
  const line = lineProblem(request, "label", Number.POSITIVE_INFINITY);
  if (line !== null) return line;
  if (runtime !== "acp" && streamTo !== undefined) {
    return unfit(`streamTo is only supported for runtime=acp; got runtime=${runtime}`);
  }
  if (runtime !== "acp" && resumeSessionId !== undefined) {
    return unfit(`resumeSessionId is only supported for runtime=acp; got runtime=${runtime}`);
  }
  const ofAcp = runtime === "acp" ? acpProblem(request) : null;
  if (ofAcp !== null) return ofAcp;
  if (mode === "session" && cleanup === "delete") {
    return unfit(
      'cleanup="delete" cannot be combined with mode="session", because the session stays open for further messages.',
    );
  }
  if (mountPath === undefined || attachments.length > 0) return null;
  return unfit("attachAs sets where attachments are written, but there are no attachments.");
}

/** Rejects options that no ACP agent supports. Whether a model or a thinking level is accepted is up to the agent. */
function acpProblem(request: SpawnRequest): SpawnRefusal | null {
  const { attachments, mountPath, tools, context } = request;
  if (attachments.length > 0 || mountPath !== undefined) {
    return unfit(
      "attachments are currently unsupported for runtime=acp; use runtime=subagent or remove attachments",
    );
  }
  const given = { tools, 'context="fork"': context === "fork" ? true : undefined };
  const [name] = Object.entries(given).find(([, value]) => value !== undefined) ?? [];
  if (name !== undefined) {
    return unfit(`${name} is unsupported for runtime=acp; use runtime=subagent or omit it`);
  }
  return (
    lineProblem(request, "resumeSessionId", longestSessionId) ??
    lineProblem(request, "model", longestWord) ??
    lineProblem(request, "thinking", longestWord)
  );
}

const longestSessionId = 512;
const longestWord = 256;

function lineProblem(
  request: SpawnRequest,
  name: "label" | "resumeSessionId" | "model" | "thinking",
  longest: number,
): SpawnRefusal | null {
  const value = request[name];
  if (value === undefined) return null;
  if (value.length > longest)
    return unfit(`${name} has ${value.length} characters; the maximum is ${longest}`);
  const shown = escapeToLine(value);
  return shown === value
    ? null
    : unfit(`${name} must be one line without control characters, got "${shown}"`);
}

export function unfit(error: string): SpawnRefusal {
  return { status: "error", code: "invalid_arguments", error };
}

/**
 * A child's identifiers. They are derived from the call that spawns the child, so a retried call finds the same child.
 */
export interface SpawnNames {
  readonly spawnId: string;
  readonly key: string;
  readonly sessionId: string;
  readonly runId: string;
}

const longestLabel = 512;

export function spawnNames(
  parent: SessionRecord,
  callId: string,
  agentId: string,
  runtime: "subagent" | "acp",
): SpawnNames {
  // Spawn IDs are unique in the store. Including the parent's uid separates users who have the same idempotency key.
  const spawnId = createHash("sha256")
    .update(JSON.stringify([parent.uid, callId]))
    .digest("hex")
    .slice(0, 16);
  return {
    spawnId,
    key: formatKey(
      runtime === "acp"
        ? { form: "acp", agentId, spawnId }
        : { form: "subagent", agentId, parentSessionId: parent.sessionId, spawnId },
    ),
    sessionId: hashedId("child session", parent.uid, callId),
    runId: childRunId(parent.uid, callId),
  };
}

/**
 * Returns the label, with ` (2)`, ` (3)` … appended if it is already taken. The result stays within the maximum length.
 */
export function numberedLabel(label: string, number: number): string {
  return withEnding(label, number === 1 ? "" : ` (${number})`);
}

/** Returns a label that is unique without a lookup. */
export function markedLabel(label: string, spawnId: string): string {
  return withEnding(label, ` (${spawnId.slice(0, 8)})`);
}

/** Whether a child's label matches the given one, with or without a suffix. */
export function isGivenLabel(label: string, given: string, spawnId: string): boolean {
  if (label === given || label === markedLabel(given, spawnId)) return true;
  const number = Number(/ \((\d{1,6})\)$/.exec(label)?.[1]);
  return number > 1 && label === numberedLabel(given, number);
}

function withEnding(label: string, ending: string): string {
  return `${cutText(label, longestLabel - ending.length).trimEnd()}${ending}`;
}

export function allowedProblem(own: Agent, targetId: string): SpawnRefusal | null {
  const { allowAgents } = own.subagents;
  if (targetId === own.id || allowAgents.includes("*") || allowAgents.includes(targetId)) return null;
  const allowed = allowAgents.length === 0 ? "none" : allowAgents.join(", ");
  const error = `agentId is not allowed for sessions_spawn (allowed: ${allowed}). An operator can add it to agents.${own.id}.subagents.allowAgents.`;
  return forbidden("agent_not_allowed", error);
}

/** Returns the same refusal whether or not the agent exists. */
export function acpAllowedProblem({ names }: AcpAgents, targetId: string): SpawnRefusal | null {
  if (names.includes(targetId)) return null;
  const error = `ACP agent "${targetId}" is not allowed by policy (allowed: ${names.join(", ")})`;
  return forbidden("agent_not_allowed", error);
}

/** Returns a session's depth, which is 0 if it was not spawned. */
export function depthOf({ spawnDepth, spawnedBy }: SessionMeta): number {
  if (spawnedBy === undefined) return 0;
  return typeof spawnDepth === "number" && Number.isInteger(spawnDepth) && spawnDepth > 0 ? spawnDepth : 1;
}

/** Returns the maximum depth of a lineage: the limit of its root or of the session's own agent, whichever is lower. */
export function depthLimit({ spawnLimit, spawnedBy }: SessionMeta, max: number): number {
  return spawnedBy !== undefined && typeof spawnLimit === "number" ? Math.min(spawnLimit, max) : max;
}

/**
 * Returns a refusal if the session is at its maximum depth. A session that was spawned as a leaf stays a leaf,
 * regardless of its agent's settings.
 */
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

/**
 * Whether the child is sandboxed. Only a child with the same agent inherits the setting. A different agent uses its own
 * setting.
 */
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

/** Checks the thinking level. An ACP agent checks its own model and thinking level. */
export function thinkingProblem(
  { thinking, model, runtime }: SpawnRequest,
  checkModel: (name: string) => void = () => undefined,
): SpawnRefusal | null {
  if (runtime === "acp") return null;
  if (thinking !== undefined && readThinkingLevel(thinking) === null) {
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

/** Checks the entries, which are names, groups or patterns. An empty list allows no tool. */
export function toolsProblem(tools: SpawnRequest["tools"]): SpawnRefusal | null {
  const at = (tools ?? []).findIndex((entry) => typeof entry !== "string" || entry.trim() === "");
  if (at === -1) return null;
  return unfit(`tools[${at}] must be a tool name, a group (group:sessions) or a pattern with *.`);
}

export function forbidden(code: string, error: string): SpawnRefusal {
  return { status: "forbidden", code, error };
}
