import { Chance } from "../transcript/random.ts";
import { runSeed } from "./run-seed.ts";

/** The plans and faults of the kill suite's children, derived from the test run's seed. */

/**
 * A step of one turn. `leave` is a call that never gets a result, `child` a process that ignores SIGTERM, and `stray` a
 * process outside its group.
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
  /** The process's own warden is stopped first. */
  | "kill_skein_unwatched"
  | "abort"
  | "subagents_kill"
  | "close"
  /** The agent reports this step and waits until it is stopped or killed with its owner. */
  | "hold";

/** An agent's plan, as JSON in its task. A number among the steps is a pause in milliseconds. */
export interface Plan {
  readonly number: number;
  readonly steps: readonly PlanStep[];
  readonly blow: Blow | null;
  /** The step before which the agent dies. After the last step, it dies right before the answer. */
  readonly at: number;
}

/** `early` dies during startup, `stubborn` ignores cancel and SIGTERM, and `official` uses the SDK. */
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

/** Returns the arguments of the call that creates a child. */
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

/** Returns the numbers of a parent's children. */
export function childrenOf(parent: number): number[] {
  return Array.from({ length: childrenEach }, (_, at) => parent * childrenEach + at);
}
