import { SkeinError } from "../../../core/errors.ts";
import { inLine, unavailable } from "../unavailable.ts";

/** What goes wrong with an agent, and what to do about it. */

const lookAtIt = "Look at what it wrote, and try it by hand";

export function failed(agent: string, problem: string, advice = lookAtIt): SkeinError {
  return new SkeinError("acp_failed", { agent, problem: inLine(problem), advice });
}

export function unsupported(agent: string, problem: string, advice: string): SkeinError {
  return new SkeinError("acp_unsupported", { agent, problem: inLine(problem), advice });
}

/** In its own words, and with the ways that it offers. */
export function loginNeeded(agent: string, said: string, ways: readonly string[]): SkeinError {
  const advice = "Log in with the agent's own command, or give it its key under acp.agents";
  const offers = ways.length === 0 ? "" : `; it offers: ${ways.join(", ")}`;
  return unavailable(agent, `it wants somebody to log in first (${said})${offers}`, advice);
}
