import { SkeinError } from "../../core/errors.ts";
import { parseAgentId, readAgentId } from "../../core/names.ts";
import { isRecord } from "../../core/shape.ts";
import type { Json } from "../../store/contract.ts";
import { agentChecks, checkFields, isText, refusal } from "./agent-checks.ts";
import type { ToolDefinition } from "./define-tool.ts";

/** How much an agent thinks. */
export type ThinkingLevel = "off" | "minimal" | "low" | "medium" | "high" | "xhigh";

/** What {@link defineAgent} is given. */
export interface AgentSpec {
  readonly id: string;
  /** As provider/model; left out: one whose key is there. */
  readonly model?: string;
  readonly system?: string;
  readonly thinking?: ThinkingLevel;
  readonly tools?: readonly ToolDefinition[];
  /** The tools that it may use, by name, `group:<name>` or a pattern with `*`; left out: all. */
  readonly allow?: readonly string[];
  /** Those that it may not; wins over `allow`. */
  readonly deny?: readonly string[];
  /** Those that a person is asked about before each call, written the same way, whatever the tool says itself. */
  readonly ask?: readonly string[];
  /**
   * State modules. Every run has its own instance of each: a function is called for it, an object is copied. A module that
   * keeps its value anywhere but in `this` has to be given as a function.
   */
  readonly state?: StateSource;
  /** Groups whose tools are offered only in sessions that have activated them, with `context.state.tools.activate`. */
  readonly onDemand?: readonly string[];
  /** An absolute path; `{userId}` and `{agentId}` as whole folder names are replaced. Left out: as the configuration says. */
  readonly cwd?: string;
  /** Model calls of a turn at the most. */
  readonly maxSteps?: number;
  /** 0: no limit. */
  readonly runTimeoutSeconds?: number;
  readonly maxOutputTokens?: number;
  /** Its sessions are kept from everything outside their own tree, and what they spawn with them. */
  readonly sandboxed?: boolean;
  /** Which of their user's sessions its own may reach: one word for every action, or a word for some. */
  readonly visibility?: VisibilityWord | { readonly [Action in ReachAction]?: VisibilityWord };
  /** Folders, absolute, that children of its sessions may work in beside those inside the parent's own. */
  readonly roots?: readonly string[];
  readonly subagents?: SubagentSpec;
}

type VisibilityWord = "self" | "tree" | "agent" | "all";
type ReachAction = "list" | "history" | "send" | "status";

/** What sessions of an agent may spawn. What is left out is as the configuration says. */
export interface SubagentSpec {
  /** Agents that children may run under, `*` for any; itself is always allowed. */
  readonly allowAgents?: readonly string[];
  /** 1 to 5. */
  readonly maxSpawnDepth?: number;
  /** Of one session, at work at once: 1 to 20. */
  readonly maxChildren?: number;
  /** 0: never. */
  readonly archiveAfterMinutes?: number;
  /** Given back of the tools that sub-agents are denied, and denied beside them. */
  readonly tools?: { readonly allow?: readonly string[]; readonly deny?: readonly string[] };
  readonly attachments?: {
    readonly maxFileBytes?: number;
    readonly maxTotalBytes?: number;
    readonly keep?: boolean;
  };
}

/** An agent, checked and frozen. What was left out is absent. */
export type AgentDefinition = Readonly<AgentSpec>;

/**
 * Describes an agent. Nothing is loaded and nothing is started; what is wrong is refused at once, by name.
 *
 * @example
 * ```ts
 * import { defineAgent } from "skein";
 * const main = defineAgent({
 *   id: "main",
 *   model: "anthropic/claude-sonnet-4-5",
 *   system: "You plan journeys.",
 *   allow: ["group:sessions"],
 * });
 * ```
 */
export function defineAgent(spec: AgentSpec): AgentDefinition {
  if (!isRecord(spec) || !isText(spec.id))
    throw refusal("An agent", "has no id", 'Give an id such as "main"');
  const id = parseAgentId(spec.id);
  const who = `Agent "${id}"`;
  checkFields(who, spec, agentChecks satisfies Readonly<Record<keyof AgentSpec, unknown>>);
  for (const [what, names] of [
    ["tools of the name", (spec.tools ?? []).map(({ name }) => name)],
    ["state modules of the key", modulesOf(spec).map(({ key }) => key)],
  ] as const) {
    const twice = names.find((name, index) => names.indexOf(name) !== index);
    if (twice !== undefined) throw refusal(who, `has two ${what} "${twice}"`, "Give each its own");
  }
  for (const module of modulesOf(spec)) {
    if (module.key === "tools")
      throw refusal(who, 'has a state module "tools", which is built in', "Give it another key");
    const problem = sharingProblem(module);
    if (problem === null) continue;
    const advice = "Give a function that makes a new one for each run: state: [() => new Module()]";
    throw refusal(
      who,
      `has a state module "${module.key}" that ${problem}, so that runs would share it`,
      advice,
    );
  }
  return Object.freeze({ ...frozen(spec), id });
}

/** The state modules that are given as objects. */
function modulesOf({ state }: AgentSpec): readonly AgentState[] {
  if (state === undefined || typeof state === "function") return [];
  return state.flatMap((each) => (typeof each === "function" ? [] : [each]));
}

/** Lists and records are copied, so that nobody changes the agent through what it was made from. */
function frozen(spec: AgentSpec): AgentSpec {
  const { subagents, visibility } = spec;
  const said = Object.entries({ ...spec, subagents: copied(subagents), visibility: copied(visibility) });
  return Object.fromEntries(
    said
      .filter(([, value]) => value !== undefined)
      .map(([field, value]) => [field, Array.isArray(value) ? Object.freeze([...value]) : value]),
  ) as unknown as AgentSpec;
}

/** Agent ids are lowered, as the agent's own is. */
function copied(value: unknown, field = ""): unknown {
  if (Array.isArray(value))
    return Object.freeze(field === "allowAgents" ? value.map((id) => readAgentId(id) ?? id) : [...value]);
  if (!isRecord(value)) return value;
  const kept = Object.entries(value).filter(([, each]) => each !== undefined);
  return Object.freeze(Object.fromEntries(kept.map(([key, each]) => [key, copied(each, key)])));
}

/**
 * A part of the agent that outlives a run: its value as JSON, saved and loaded for each session. Every run has an instance
 * of its own, which its tools find in `context.state`.
 */
export interface AgentState {
  readonly key: string;
  save(): Json;
  /** `null` for a new session. */
  load(value: Json | null): void;
}

/** A module as it is given: an object that is copied for each run, or a function that makes one. */
type ModuleSource = AgentState | (() => AgentState);

type StateSource = readonly ModuleSource[] | (() => readonly AgentState[]);

/** Instances that a run already has: a function that returns one of them again would have two runs share it. */
const inUse = new WeakSet<AgentState>();

/** Instances of the state modules of an agent, for one run. */
export function instantiateState(state: StateSource | undefined): readonly AgentState[] {
  if (state === undefined) return [];
  const made = typeof state === "function" ? state() : state.map((source) => instanceOf(source));
  for (const module of made) {
    if (inUse.has(module)) {
      const problem = `The function for the state module "${module.key}" returned the same object for two runs`;
      throw new SkeinError("invalid_arguments", { problem, advice: "Return a new object at every call" });
    }
    inUse.add(module);
  }
  return made;
}

/**
 * Why a module that was given as an object cannot have one instance per run; `null`: it can. Copies of an object share
 * everything that its methods keep in variables outside of it.
 */
function sharingProblem(source: ModuleSource): string | null {
  if (typeof source === "function") return null;
  if (keepsValueOutside(source)) return 'does not keep its value in "this"';
  try {
    instanceOf(source).save();
    return null;
  } catch {
    return "cannot be copied";
  }
}

function instanceOf(source: ModuleSource): AgentState {
  if (typeof source === "function") return source();
  const fields = Object.getOwnPropertyDescriptors(source) as Record<string, PropertyDescriptor>;
  for (const field of Object.values(fields))
    if (isPlainData(field.value)) field.value = structuredClone(field.value);
  return Object.create(Object.getPrototypeOf(source) as object, fields) as AgentState;
}

/** Data that belongs to the module. Anything else, such as a connection, is a service that all instances use. */
function isPlainData(value: unknown): boolean {
  if (Array.isArray(value) || value instanceof Map || value instanceof Set || value instanceof Date)
    return true;
  return isRecord(value) && [Object.prototype, null].includes(Object.getPrototypeOf(value));
}

function keepsValueOutside({ save, load }: AgentState): boolean {
  const texts = [save, load].map((method) => Function.prototype.toString.call(method));
  const isFixed = (text: string) => text.includes("[native code]") || arrow.test(text);
  return texts.some(isFixed) || !/\bthis\b/.test(texts[0] ?? "");
}

const arrow = /^(?:async\s+)?(?:\([^)]*\)|[\w$]+)\s*(?::[^=]*)?=>/;
