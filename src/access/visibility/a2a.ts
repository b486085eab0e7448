import { matchesGlob } from "../../core/glob.ts";
import { readAgentId } from "../../core/names.ts";
import { cutText, escapeToLine } from "../../core/text.ts";

/** Which agents may reach which others: pairs with a direction, `*` in them for any characters. */

/** An entry of `tools.agentToAgent.allow` as it was understood. Patterns are lowered, as agent ids are. */
export type AllowEntry =
  | { readonly is: "pair"; readonly text: string; readonly from: string; readonly to: string }
  /** Both directions, among the bare ones of the list. */
  | { readonly is: "bare"; readonly text: string; readonly agent: string }
  /** Allows nothing. */
  | { readonly is: "mistake"; readonly text: string; readonly problem: string };

export interface AgentToAgent {
  readonly enabled: boolean;
  /** Empty: every pair. A list that holds nothing but mistakes is not empty, and allows none. */
  readonly allow: readonly AllowEntry[];
}

export type PairVerdict =
  /** `by`: what allows it, for people. */
  | { readonly allowed: true; readonly by: string }
  | { readonly allowed: false; readonly because: "disabled" | "not_allowed" };

/** No longer than an agent id: that bounds what matching can cost. */
const patternForm = /^[a-z0-9*][a-z0-9_*-]{0,63}$/;

export function readAllowList(entries: readonly string[]): readonly AllowEntry[] {
  return entries.map(readEntry);
}

/** Whether one agent may reach another. What is no agent id reaches nobody, and nobody reaches it. */
export function pairVerdict({ enabled, allow }: AgentToAgent, from: string, to: string): PairVerdict {
  const [asker, target] = [readAgentId(from), readAgentId(to)];
  const denied = { allowed: false, because: "not_allowed" } as const;
  if (asker !== null && asker === target) return { allowed: true, by: "it is the same agent" };
  if (!enabled) return { allowed: false, because: "disabled" };
  if (asker === null || target === null) return denied;
  if (allow.length === 0) return { allowed: true, by: "tools.agentToAgent.allow names no pairs" };
  const by = pairIn(allow, asker, target) ?? bareOnesIn(allow, asker, target);
  return by === null ? denied : { allowed: true, by: `tools.agentToAgent.allow has ${by}` };
}

function readEntry(text: string): AllowEntry {
  const sides = text.split("->", 3).map((side) => side.trim());
  const [from = "", to] = sides;
  if (from === "" && to === undefined) return { is: "mistake", text, problem: "it is blank" };
  if (sides.length > 2) return { is: "mistake", text, problem: "it has more than one ->" };
  if (from === "") return { is: "mistake", text, problem: "the agent before -> is missing" };
  if (to === "") return { is: "mistake", text, problem: "the agent behind -> is missing" };
  const patterns = sides.map(lowered);
  const wrong = patterns.findIndex((pattern) => !patternForm.test(pattern));
  if (wrong >= 0) {
    const problem = `"${shown(sides[wrong] ?? "")}" is no agent id, nor one with * for any characters`;
    return { is: "mistake", text, problem };
  }
  const [first = "", second] = patterns;
  return second === undefined
    ? { is: "bare", text, agent: first }
    : { is: "pair", text, from: first, to: second };
}

function pairIn(allow: readonly AllowEntry[], from: string, to: string): string | null {
  const entry = allow.find(
    (each) => each.is === "pair" && matchesGlob(each.from, from) && matchesGlob(each.to, to),
  );
  return entry === undefined ? null : `"${shown(entry.text)}"`;
}

function bareOnesIn(allow: readonly AllowEntry[], from: string, to: string): string | null {
  const bareFor = (agentId: string) =>
    allow.find((each) => each.is === "bare" && matchesGlob(each.agent, agentId));
  const one = bareFor(from);
  const other = one === undefined ? undefined : bareFor(to);
  if (one === undefined || other === undefined) return null;
  return one === other ? `"${shown(one.text)}"` : `"${shown(one.text)}" and "${shown(other.text)}"`;
}

/** ASCII alone, as of agent ids. */
function lowered(pattern: string): string {
  return pattern.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

function shown(text: string): string {
  return escapeToLine(cutText(text, 140));
}
