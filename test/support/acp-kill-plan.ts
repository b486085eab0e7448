import { Chance } from "../transcript/random.ts";
import { runSeed } from "./run-seed.ts";

/** The plans and faults of the children of the kill suite, derived from the seed of the test run. */

/**
 * A step of one turn. `leave`: a call that never gets its result. `child`: a process that ignores SIGTERM; `stray`: one
 * outside its group.
 */
export type PlanStep =
  | "say"
  | "think"
  | "tool"
  | "leave"
  | "permission"
  | "file"
  | "terminal"
  | "child"
  | "stray"
  | number;

export type Blow =
  | "kill_self"
  | "term_self"
  | "exit"
  | "kill_children"
  | "kill_skein"
  /** Its own warden is stopped first. */
  | "kill_skein_unwatched"
  | "abort"
  | "subagents_kill"
  | "close"
  /** It reports this, and waits to be stopped, or to be killed with its owner. */
  | "hold";

/** The plan of an agent, as JSON in its task. A number among the steps is a pause in milliseconds. */
export interface Plan {
  readonly number: number;
  readonly steps: readonly PlanStep[];
  readonly blow: Blow | null;
  /** The step before which it dies; after the last: right before the answer. */
  readonly at: number;
}

/** `early` dies during its start, `stubborn` ignores cancel and SIGTERM, `official` uses the SDK. */
export type AgentName = "lean" | "stubborn" | "early" | "official";

export interface PlannedSpawn {
  readonly plan: Plan;
  readonly agent: AgentName;
  readonly more: Readonly<Record<string, unknown>>;
}

export const childrenEach = 5;

const agents = ["lean", "lean", "lean", "lean", "lean", "lean", "stubborn", "stubborn", "early"] as const;
const steps = [
  "say",
  "say",
  "think",
  "tool",
  "tool",
  "leave",
  "permission",
  "file",
  "terminal",
  "child",
  "stray",
] as const;
const blows = [
  "kill_self",
  "kill_self",
  "kill_self",
  "term_self",
  "exit",
  "kill_children",
  "kill_skein",
  "kill_skein",
  "abort",
  "abort",
  "subagents_kill",
  "close",
] as const;
const kinds = [{}, {}, {}, {}, { mode: "session" }, { cleanup: "delete" }, { streamTo: "parent" }] as const;

export function plannedSpawn(number: number): PlannedSpawn {
  const chance = new Chance(runSeed * 10_007 + number);
  // The SDK takes longer to load than the rest of an agent.
  const agent = number % 16 === 7 ? "official" : chance.pick(agents);
  const planned = Array.from({ length: chance.between(2, 5) }, () =>
    chance.once(4) ? chance.between(1, 150) : chance.pick(steps),
  );
  const blow = chance.once(3) ? null : chance.pick(blows);
  const own: PlanStep[] = blow === "kill_children" ? ["child", ...planned] : planned;
  const at = blow === "kill_children" ? chance.between(1, own.length) : chance.below(own.length + 1);
  const background = chance.once(6) ? { background: false } : {};
  return { plan: { number, steps: own, blow, at }, agent, more: { ...chance.pick(kinds), ...background } };
}

/** The arguments of the call that creates it. */
export function spawnArguments(number: number): Readonly<Record<string, unknown>> {
  const { plan, agent, more } = plannedSpawn(number);
  return {
    task: `PLAN ${JSON.stringify(plan)}`,
    runtime: "acp",
    agentId: agent,
    label: `n${number}`,
    ...more,
  };
}

/** The numbers of the children of a parent. */
export function childrenOf(parent: number): number[] {
  return Array.from({ length: childrenEach }, (_, at) => parent * childrenEach + at);
}
