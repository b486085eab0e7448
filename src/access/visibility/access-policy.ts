import { matchesGlob } from "../../core/glob.ts";
import { readAgentId } from "../../core/names.ts";
import { cutText, escapeToLine } from "../../core/text.ts";

/** The sessions that a caller can see: itself, its tree, its agent's sessions, or all of its user's sessions. */
export type Visibility = "self" | "tree" | "agent" | "all";

export const accessActions = ["list", "history", "send", "status"] as const;

/** Each action has its own visibility because permission to send does not include permission to read. */
export type AccessAction = (typeof accessActions)[number];

export type VisibilityByAction = { readonly [Action in AccessAction]: Visibility };

/** One value for every action, or one per action. An action that is absent or `null` uses the fallback. */
export type VisibilitySetting = Visibility | { readonly [Action in AccessAction]?: Visibility | null };

/** The part of the configuration that determines access. */
export interface AccessSettings {
  readonly tools: {
    readonly sessions: { readonly visibility: VisibilitySetting };
    readonly agentToAgent: { readonly enabled: boolean; readonly allow: readonly string[] };
  };
  /** By agent ID. An agent's setting overrides `tools`. */
  readonly agents: { readonly [agentId: string]: { readonly visibility?: VisibilitySetting | null } };
}

/** The resolved settings for one caller. */
export interface AccessPolicy {
  readonly visibility: VisibilityByAction;
  readonly agentToAgent: AgentToAgent;
  readonly sandboxed: boolean;
}

const defaultVisibility: Visibility = "tree";

export function resolveAccessPolicy(
  { tools, agents }: AccessSettings,
  asker: { readonly agentId: string; readonly sandboxed: boolean },
): AccessPolicy {
  const agentId = readAgentId(asker.agentId) ?? asker.agentId;
  const own = Object.hasOwn(agents, agentId) ? agents[agentId]?.visibility : null;
  const { enabled, allow } = tools.agentToAgent;
  const of = (action: AccessAction): Visibility => {
    const said =
      visibilityFor(own, action) ?? visibilityFor(tools.sessions.visibility, action) ?? defaultVisibility;
    return asker.sandboxed && said !== "self" ? "tree" : said;
  };
  return {
    visibility: { list: of("list"), history: of("history"), send: of("send"), status: of("status") },
    agentToAgent: { enabled, allow: readAllowList(allow) },
    sandboxed: asker.sandboxed,
  };
}

function visibilityFor(
  setting: VisibilitySetting | null | undefined,
  action: AccessAction,
): Visibility | null {
  return (typeof setting === "string" ? setting : setting?.[action]) ?? null;
}

/** A parsed entry in `tools.agentToAgent.allow`. Patterns are lowercased like agent IDs. */
type AllowEntry =
  | { readonly is: "pair"; readonly text: string; readonly from: string; readonly to: string }
  /** Allows both directions between the bare entries in the list. */
  | { readonly is: "bare"; readonly text: string; readonly agent: string }
  | { readonly is: "mistake"; readonly text: string; readonly problem: string };

export interface AgentToAgent {
  readonly enabled: boolean;
  /** An empty list allows every pair. A list with only invalid entries is not empty and allows no pair. */
  readonly allow: readonly AllowEntry[];
}

type AgentPairVerdict =
  /** `by` is the reason, for display. */
  | { readonly allowed: true; readonly by: string }
  | { readonly allowed: false; readonly because: "disabled" | "not_allowed" };

/** No longer than an agent ID, which bounds the cost of matching. */
const patternForm = /^[a-z0-9*][a-z0-9_*-]{0,63}$/;

export function readAllowList(entries: readonly string[]): readonly AllowEntry[] {
  return entries.map(readEntry);
}

/** Whether one agent can reach another. An agent with an invalid ID can neither reach other agents nor be reached. */
export function checkAgentPair({ enabled, allow }: AgentToAgent, from: string, to: string): AgentPairVerdict {
  const [asker, target] = [readAgentId(from), readAgentId(to)];
  const denied = { allowed: false, because: "not_allowed" } as const;
  if (asker !== null && asker === target) return { allowed: true, by: "it is the same agent" };
  if (!enabled) return { allowed: false, because: "disabled" };
  if (asker === null || target === null) return denied;
  if (allow.length === 0)
    return {
      allowed: true,
      by: "tools.agentToAgent.allow is empty, so every agent can reach every other agent",
    };
  const by = findPair(allow, asker, target) ?? findBarePair(allow, asker, target);
  return by === null ? denied : { allowed: true, by: `tools.agentToAgent.allow has ${by}` };
}

function readEntry(text: string): AllowEntry {
  const sides = text.split("->", 3).map((side) => side.trim());
  const [from = "", to] = sides;
  if (from === "" && to === undefined) return { is: "mistake", text, problem: "it is blank" };
  if (sides.length > 2) return { is: "mistake", text, problem: "it has more than one ->" };
  if (from === "") return { is: "mistake", text, problem: "the agent before -> is missing" };
  if (to === "") return { is: "mistake", text, problem: "the agent after -> is missing" };
  const patterns = sides.map(lowerAscii);
  const wrong = patterns.findIndex((pattern) => !patternForm.test(pattern));
  if (wrong >= 0) {
    const problem = `"${toSafeLine(sides[wrong] ?? "")}" is not an agent ID or a pattern with *`;
    return { is: "mistake", text, problem };
  }
  const [first = "", second] = patterns;
  return second === undefined
    ? { is: "bare", text, agent: first }
    : { is: "pair", text, from: first, to: second };
}

function findPair(allow: readonly AllowEntry[], from: string, to: string): string | null {
  const entry = allow.find(
    (each) => each.is === "pair" && matchesGlob(each.from, from) && matchesGlob(each.to, to),
  );
  return entry === undefined ? null : `"${toSafeLine(entry.text)}"`;
}

function findBarePair(allow: readonly AllowEntry[], from: string, to: string): string | null {
  const bareFor = (agentId: string) =>
    allow.find((each) => each.is === "bare" && matchesGlob(each.agent, agentId));
  const one = bareFor(from);
  const other = one === undefined ? undefined : bareFor(to);
  if (one === undefined || other === undefined) return null;
  return one === other
    ? `"${toSafeLine(one.text)}"`
    : `"${toSafeLine(one.text)}" and "${toSafeLine(other.text)}"`;
}

/** Lowercases only ASCII, as for agent IDs. */
function lowerAscii(pattern: string): string {
  return pattern.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

function toSafeLine(text: string): string {
  return escapeToLine(cutText(text, 140));
}
