import { SkeinError } from "../../core/errors.ts";
import { cutText, escapeToLine } from "../../core/text.ts";

const longest = 2000;

/** An agent that cannot be had as things stand, and what to do about it. */
export function unavailable(agent: string, problem: string, advice: string): SkeinError {
  return new SkeinError("acp_unavailable", { agent, problem: inLine(problem), advice });
}

/** Words of a stranger: on one line, and not for ever. */
export function inLine(text: string): string {
  return cutText(escapeToLine(text.trim()), longest);
}
