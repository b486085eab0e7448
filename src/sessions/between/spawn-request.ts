import { escapeToLine } from "../../core/text.ts";
import type { GivenAttachment } from "../attachments/contract.ts";

/** A wish to spawn, with every default in it. */
export interface SpawnRequest {
  readonly task: string;
  readonly label?: string;
  readonly runtime: "subagent" | "acp";
  readonly agentId?: string;
  readonly resumeSessionId?: string;
  readonly model?: string;
  readonly thinking?: string;
  readonly cwd?: string;
  /** 0: none. */
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

/** Why nothing was spawned, as the tool answers it. */
export interface SpawnRefusal {
  readonly status: "error" | "forbidden";
  readonly code: string;
  readonly error: string;
  /** Of `budget_exceeded`: the limit and the figures. */
  readonly budget?: Readonly<Record<string, string | number>>;
  /** A thread that was opened for it already. */
  readonly threadId?: string;
}

/** What arguments that are read one by one are not right with together; `null`: nothing. */
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
    return unfit('cleanup="delete" does not go with mode="session": the session stays for further messages.');
  }
  if (mountPath === undefined || attachments.length > 0) return null;
  return unfit("attachAs says where attachments go, and there are none.");
}

/** What somebody else's agent cannot be told. Whether it can be told a model or how much to think, it says itself. */
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
    return unfit(`${name} is unsupported for runtime=acp; use runtime=subagent or leave it out`);
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
    return unfit(`${name} has ${value.length} characters, and ${longest} is the most`);
  const shown = escapeToLine(value);
  return shown === value
    ? null
    : unfit(`${name} must be one line without control characters, got "${shown}"`);
}

export function unfit(error: string): SpawnRefusal {
  return { status: "error", code: "invalid_arguments", error };
}
