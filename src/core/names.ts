import { SkeinError } from "./errors.ts";

/** The ids that people and programs choose: agents and sessions. */

const agentIdPattern = /^[a-z0-9][a-z0-9_-]{0,63}$/;
const sessionIdPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const takenEndings = [".log", ".jsonl", ".lock", "."];
const takenWords = new Set(["main", "current", "global", "unknown"]);

export const agentIdForm = agentIdPattern.source.slice(1, -1);

/**
 * Lowers the case of an agent id and checks it; everything else that is wrong is refused, never mended.
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

/** As {@link parseAgentId}, but `null` for what is not an agent id. */
export function readAgentId(text: string): string | null {
  // ASCII alone is lowered: U+212A (the Kelvin sign) would become a plain k.
  const lowered = text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
  return agentIdPattern.test(lowered) ? lowered : null;
}

/**
 * Checks a session id. Ids become file names, so endings and words that mean something there are taken.
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

/** What is wrong with a session id, or `null`. */
export function sessionIdProblem(text: string): string | null {
  if (!sessionIdPattern.test(text)) return `it does not match ${sessionIdPattern.source.slice(1, -1)}`;
  const lowered = text.toLowerCase();
  if (takenWords.has(lowered)) return `"${text}" is a reserved word`;
  const ending = takenEndings.find((each) => lowered.endsWith(each));
  return ending === undefined ? null : `it must not end in "${ending}"`;
}

/**
 * A folder whose path may depend on user and agent. Each placeholder is a whole folder name, because names that are put
 * together can be the same for two users: `{agentId}-{userId}` is `a-b-c` for `a` and `b-c`, and for `a-b` and `c`.
 */
export const folderTemplatePattern =
  "^(?:[^\\u0000{}]|\\$\\{[^{}]*\\}|(?<=^|[/\\\\])\\{(?:userId|agentId)\\}(?=[/\\\\]|$))+$";
export const folderTemplateHelp = "braces only around {userId} or {agentId} as a whole folder name";

export function isFolderTemplate(path: string): boolean {
  return new RegExp(folderTemplatePattern).test(path);
}
