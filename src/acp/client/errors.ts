import { SkeinError } from "../../core/errors.ts";
import { cutText, escapeToLine } from "../../core/text.ts";

/** Errors from ACP agents. `problem` can quote the agent, so it is reduced to one line of bounded length. */

const maxProblemChars = 2000;

function problemText(text: string): string {
  return cutText(escapeToLine(text.trim()), maxProblemChars);
}

/** The agent cannot be started or used as configured. */
export function unavailable(agent: string, problem: string, advice: string): SkeinError {
  return new SkeinError("acp_unavailable", { agent, problem: problemText(problem), advice });
}

/** The agent failed or violated the protocol. */
export function failed(
  agent: string,
  problem: string,
  advice = "Read its output, and run it manually",
): SkeinError {
  return new SkeinError("acp_failed", { agent, problem: problemText(problem), advice });
}

/** The agent does not offer what was requested. */
export function unsupported(agent: string, problem: string, advice: string): SkeinError {
  return new SkeinError("acp_unsupported", { agent, problem: problemText(problem), advice });
}
