import { SkeinError } from "./errors.ts";

const agentIdPattern = /^[a-z0-9][a-z0-9_-]{0,63}$/;
const sessionIdPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const takenEndings = [".log", ".jsonl", ".lock", "."];
const takenWords = new Set(["main", "current", "global", "unknown"]);

export const agentIdForm = agentIdPattern.source.slice(1, -1);

/**
 * Converts an agent ID to lowercase and checks it. Throws `invalid_agent_id`.
 *
 * @example
 * ```ts
 * import { parseAgentId } from "skein";
 * parseAgentId("Research"); // "research"
 * ```
 */
export function parseAgentId(text: string): string {
  const agentId = readAgentId(text);
  if (agentId === null) throw new SkeinError("invalid_agent_id", { agentId: text, pattern: agentIdForm });
  return agentId;
}

/** Like {@link parseAgentId}, but returns `null` for an invalid ID. */
export function readAgentId(text: string): string | null {
  // Lowercases only ASCII, because full Unicode lowercasing turns the Kelvin sign (U+212A) into a plain k.
  const lowered = text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
  return agentIdPattern.test(lowered) ? lowered : null;
}

/**
 * Checks a session ID. Session IDs become file names, so some endings and words are reserved.
 *
 * @example
 * ```ts
 * import { parseSessionId } from "skein";
 * parseSessionId("trip-2026"); // "trip-2026"
 * ```
 */
export function parseSessionId(text: string): string {
  const problem = sessionIdProblem(text);
  if (problem !== null) throw new SkeinError("invalid_session_id", { sessionId: text, problem });
  return text;
}

/** Returns the problem with a session ID, or `null` if there is none. */
export function sessionIdProblem(text: string): string | null {
  if (!sessionIdPattern.test(text)) return `it does not match ${sessionIdPattern.source.slice(1, -1)}`;
  const lowered = text.toLowerCase();
  if (takenWords.has(lowered)) return `"${text}" is a reserved word`;
  const ending = takenEndings.find((each) => lowered.endsWith(each));
  return ending === undefined ? null : `it must not end with "${ending}"`;
}

/**
 * A folder whose path can depend on the user and the agent. Each placeholder must be a whole folder name because
 * combined names can collide: `{agentId}-{userId}` is `a-b-c` for both `a`, `b-c` and `a-b`, `c`.
 */
export const folderTemplatePattern =
  "^(?:[^\\u0000{}]|\\$\\{[^{}]*\\}|(?<=^|[/\\\\])\\{(?:userId|agentId)\\}(?=[/\\\\]|$))+$";
export const folderTemplateHelp =
  "braces are allowed only in {userId} and {agentId}, each as a whole folder name";

export function isFolderTemplate(path: string): boolean {
  return new RegExp(folderTemplatePattern).test(path);
}

/** The name and version to send to programs that Skein starts or connects to. */
export const clientInfo = { name: "skein", version: "0.1.0" } as const;
