import { SkeinError } from "../../core/errors.ts";
import { isRecord } from "../../core/is-record.ts";
import { parseAgentId, readAgentId } from "../../core/names.ts";
import type { ThinkingLevel } from "../../core/thinking-levels.ts";
import type { Json } from "../../store/contract.ts";
import { agentChecks, checkFields, isText, refusal } from "./agent-checks.ts";
import type { ToolDefinition } from "./define-tool.ts";

/** The argument of {@link defineAgent}. */
export interface AgentSpec {
  readonly id: string;
  /** In `provider/model` format. Defaults to a model whose API key is set. */
  readonly model?: string;
  readonly system?: string;
  readonly thinking?: ThinkingLevel;
  readonly tools?: readonly ToolDefinition[];
  /** The tools that the agent can use, by name, `group:<name>` or a pattern with `*`. Defaults to all tools. */
  readonly allow?: readonly string[];
  /** The tools that the agent cannot use. Takes precedence over `allow`. */
  readonly deny?: readonly string[];
  /** The tools whose calls need approval, regardless of their definitions. */
  readonly ask?: readonly string[];
  /**
   * State modules. Every run has its own instance of each module, which comes from calling the function or copying the
   * object. A module that stores its value anywhere other than in `this` must be passed as a function.
   */
  readonly state?: StateSource;
  /** Groups whose tools are offered only in sessions that have activated the group: `context.state.tools.activate`. */
  readonly onDemand?: readonly string[];
  /**
   * An absolute path. `{userId}` and `{agentId}` in folder names are replaced. The default comes from the
   * configuration.
   */
  readonly cwd?: string;
  /** The maximum number of model calls in a turn. */
  readonly maxSteps?: number;
  /** 0 means no limit. */
  readonly runTimeoutSeconds?: number;
  readonly maxOutputTokens?: number;
  /** Restricts the agent's sessions, and the sessions that they spawn, to their own tree. */
  readonly sandboxed?: boolean;
  /** Which of the user's sessions the agent's sessions can reach, for all actions or per action. */
  readonly visibility?: VisibilityWord | { readonly [Action in ReachAction]?: VisibilityWord };
  /**
   * Absolute paths of folders in which child sessions are allowed to work, in addition to folders inside the parent's
   * own folder.
   */
  readonly roots?: readonly string[];
  readonly subagents?: SubagentSpec;
}

type VisibilityWord = "self" | "tree" | "agent" | "all";
type ReachAction = "list" | "history" | "send" | "status";

/** Limits on the children that an agent's sessions spawn. Defaults come from the configuration. */
export interface SubagentSpec {
  /** The agents that children can run as, or `*` for any agent. The agent itself is always allowed. */
  readonly allowAgents?: readonly string[];
  /** From 1 to 5. */
  readonly maxSpawnDepth?: number;
  /** The maximum number of running children per session, from 1 to 20. */
  readonly maxChildren?: number;
  /** 0 means never. */
  readonly archiveAfterMinutes?: number;
  /** Exceptions to the list of tools denied to sub-agents, and additional tools to deny. */
  readonly tools?: { readonly allow?: readonly string[]; readonly deny?: readonly string[] };
  readonly attachments?: {
    readonly maxFileBytes?: number;
    readonly maxTotalBytes?: number;
    readonly keep?: boolean;
  };
}

/** A checked and frozen agent. */
export type AgentDefinition = Readonly<AgentSpec>;

/**
 * Defines an agent. Throws `invalid_arguments`, naming the field, if a field is invalid.
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
  if (!isRecord(spec) || !isText(spec.id)) throw refusal("An agent", "has no ID", 'Set an id such as "main"');
  const id = parseAgentId(spec.id);
  const who = `Agent "${id}"`;
  checkFields(who, spec, agentChecks satisfies Readonly<Record<keyof AgentSpec, unknown>>);
  for (const [what, names] of [
    ["tools named", (spec.tools ?? []).map(({ name }) => name)],
    ["state modules with the key", modulesOf(spec).map(({ key }) => key)],
  ] as const) {
    const twice = names.find((name, index) => names.indexOf(name) !== index);
    if (twice !== undefined) throw refusal(who, `has two ${what} "${twice}"`, "Make each one unique");
  }
  for (const module of modulesOf(spec)) {
    if (module.key === "tools")
      throw refusal(who, 'has a state module "tools", which is built in', "Give it a different key");
    const problem = sharingProblem(module);
    if (problem === null) continue;
    const advice = "Pass a function that creates a new one for each run: state: [() => new Module()]";
    throw refusal(who, `has a state module "${module.key}" that ${problem}, so runs would share it`, advice);
  }
  return Object.freeze({ ...frozen(spec), id });
}

/** Returns the state modules that were passed as objects. */
function modulesOf({ state }: AgentSpec): readonly AgentState[] {
  if (state === undefined || typeof state === "function") return [];
  return state.flatMap((each) => (typeof each === "function" ? [] : [each]));
}

/** Copies lists and records, so that the caller cannot change the agent later. */
function frozen(spec: AgentSpec): AgentSpec {
  const { subagents, visibility } = spec;
  const fields = Object.entries({ ...spec, subagents: copied(subagents), visibility: copied(visibility) });
  return Object.fromEntries(
    fields
      .filter(([, value]) => value !== undefined)
      .map(([field, value]) => [field, Array.isArray(value) ? Object.freeze([...value]) : value]),
  ) as unknown as AgentSpec;
}

/** Copies a value. Agent IDs are converted to lowercase, like the agent's own ID. */
function copied(value: unknown, field = ""): unknown {
  if (Array.isArray(value))
    return Object.freeze(field === "allowAgents" ? value.map((id) => readAgentId(id) ?? id) : [...value]);
  if (!isRecord(value)) return value;
  const kept = Object.entries(value).filter(([, each]) => each !== undefined);
  return Object.freeze(Object.fromEntries(kept.map(([key, each]) => [key, copied(each, key)])));
}

/** Agent state that is saved as JSON with each session. Tools access the run's instance through `context.state`. */
export interface AgentState {
  readonly key: string;
  save(): Json;
  /** Called with `null` for a new session. */
  load(value: Json | null): void;
}

/** An object that is copied for each run, or a function that returns a new one. */
type ModuleSource = AgentState | (() => AgentState);

type StateSource = readonly ModuleSource[] | (() => readonly AgentState[]);

/** Instances in use, to detect a function that returns the same object twice. */
const inUse = new WeakSet<AgentState>();

/** Creates the instances of an agent's state modules for one run. */
export function instantiateState(state: StateSource | undefined): readonly AgentState[] {
  if (state === undefined) return [];
  const made = typeof state === "function" ? state() : state.map((source) => instanceOf(source));
  for (const module of made) {
    if (inUse.has(module)) {
      const problem = `The function for the state module "${module.key}" returned the same object for two runs`;
      throw new SkeinError("invalid_arguments", { problem, advice: "Return a new object on every call" });
    }
    inUse.add(module);
  }
  return made;
}

/**
 * Returns the reason why an object cannot be copied for each run, or `null` if it can. All copies share the variables
 * outside the object.
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

/** Whether a value is plain data, which is cloned. Anything else, such as a connection, is shared by all instances. */
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
