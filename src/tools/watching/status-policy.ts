import type { AccessPolicy } from "../../access/visibility/access-policy.ts";
import type { TranscriptPolicy } from "../../transcript/contract.ts";

/** What holds for a session, in short. Pure. */

/** One word where every action has the same. */
export function visibilityShown({ visibility }: AccessPolicy): unknown {
  const words = new Set(Object.values(visibility));
  return words.size === 1 ? visibility.list : visibility;
}

/** The pairs name other agents: they are not for a sandboxed session, which reaches none of them. */
export function agentToAgentShown(
  { agentToAgent, sandboxed }: AccessPolicy,
  isForSandboxed: boolean,
): unknown {
  const { enabled, allow } = agentToAgent;
  if (sandboxed || isForSandboxed) return { enabled: false };
  return { enabled, ...(allow.length === 0 ? {} : { allow: allow.map(({ text }) => text) }) };
}

/** The wire format, and the chief of what it asks for. */
export function transcriptShown(policy: TranscriptPolicy): unknown {
  const { provider, api, toolCallIds, turns, thinking, images } = policy;
  return { provider, api, toolCallIds, turns, thinking, images: images !== null };
}

export interface ContextSize {
  readonly tokens: number | null;
  readonly window: number | null;
}

/** How much of the window is full, in percent; `null`: not known. */
export function percentOf({ tokens, window }: ContextSize): number | null {
  if (tokens === null || window === null || window <= 0) return null;
  return Math.round((tokens / window) * 100);
}
