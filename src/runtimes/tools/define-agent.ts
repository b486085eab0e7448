import { SkeinError } from "../../core/errors.ts";
import { parseAgentId } from "../../core/names.ts";
import type { Json } from "../../store/contract.ts";
import type { ToolDefinition } from "./define-tool.ts";

/**
 * How much an agent thinks.
 *
 * @example
 * ```ts
 * import type { ThinkingLevel } from "skein";
 * const level: ThinkingLevel = "low";
 * ```
 */
export type ThinkingLevel = "off" | "minimal" | "low" | "medium" | "high" | "xhigh";

/**
 * A part of the agent that outlives a run: what it is now, as JSON, and how to become it again.
 *
 * @example
 * ```ts
 * import type { AgentState } from "skein";
 * let visits = 0;
 * const counter: AgentState = {
 *   key: "visits",
 *   save: () => visits,
 *   load: (value) => {
 *     visits = typeof value === "number" ? value : 0;
 *   },
 * };
 * ```
 */
export interface AgentState {
  readonly key: string;
  save(): Json;
  /** `null` for a new session. */
  load(value: Json | null): void;
}

/**
 * What {@link defineAgent} is given.
 *
 * @example
 * ```ts
 * import type { AgentSpec } from "skein";
 * const spec: AgentSpec = { id: "main", deny: ["group:mcp"] };
 * ```
 */
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
  /** A function is called for each run, so that two runs share nothing. */
  readonly state?: readonly AgentState[] | (() => readonly AgentState[]);
  /** An absolute path; left out: where the caller stands. */
  readonly cwd?: string;
  /** Model calls of a turn at the most. */
  readonly maxSteps?: number;
  /** 0: no limit. */
  readonly runTimeoutSeconds?: number;
  readonly maxOutputTokens?: number;
}

/**
 * An agent, checked and frozen. What was left out is absent.
 *
 * @example
 * ```ts
 * import { type AgentDefinition, defineAgent } from "skein";
 * const agent: AgentDefinition = defineAgent({ id: "main" });
 * ```
 */
export type AgentDefinition = Readonly<AgentSpec>;

interface Check {
  readonly expected: string;
  fits(value: unknown): boolean;
}

const levels: readonly unknown[] = ["off", "minimal", "low", "medium", "high", "xhigh"];
const isText = (value: unknown): value is string => typeof value === "string";
const isTextList = (value: unknown): boolean => Array.isArray(value) && value.every(isText);
const isCount = (value: unknown, least: number): boolean =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= least;
const isModule = (value: unknown): boolean =>
  isRecord(value) &&
  isText(value.key) &&
  typeof value.save === "function" &&
  typeof value.load === "function";
const isTool = (value: unknown): boolean =>
  isRecord(value) && isText(value.name) && typeof value.execute === "function" && "needsApproval" in value;

const toolEntries: Check = { expected: "a list of names, groups and patterns", fits: isTextList };
const count: Check = { expected: "a whole number from 1", fits: (value) => isCount(value, 1) };

const checks: Readonly<Record<keyof AgentSpec, Check>> = {
  id: { expected: "an agent id", fits: isText },
  model: {
    expected: 'a model such as "anthropic/claude-sonnet-4-5"',
    fits: (value) => isText(value) && /^[A-Za-z0-9][A-Za-z0-9._-]*\/\S+$/.test(value),
  },
  system: { expected: "a text", fits: isText },
  thinking: { expected: `one of ${levels.join(", ")}`, fits: (value) => levels.includes(value) },
  tools: {
    expected: "a list of what defineTool made",
    fits: (value) => Array.isArray(value) && value.every(isTool),
  },
  allow: toolEntries,
  deny: toolEntries,
  state: {
    expected: "a list of state modules, or a function that makes one",
    fits: (value) => typeof value === "function" || (Array.isArray(value) && value.every(isModule)),
  },
  cwd: {
    expected: "an absolute path",
    fits: (value) => isText(value) && /^(?:\/|[A-Za-z]:[\\/]|\\\\)/.test(value),
  },
  maxSteps: count,
  runTimeoutSeconds: { expected: "a whole number from 0 (no limit)", fits: (value) => isCount(value, 0) },
  maxOutputTokens: count,
};

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
  for (const [field, value] of Object.entries(spec)) {
    if (!Object.hasOwn(checks, field))
      throw refusal(who, `has no field "${field}"`, `Use ${Object.keys(checks).join(", ")}`);
    const check = checks[field as keyof AgentSpec];
    if (value !== undefined && !check.fits(value))
      throw refusal(who, `has a wrong ${field}`, `Expected ${check.expected}`);
  }
  for (const [what, names] of [
    ["tools of the name", (spec.tools ?? []).map(({ name }) => name)],
    ["state modules of the key", Array.isArray(spec.state) ? spec.state.map(({ key }) => key) : []],
  ] as const) {
    const twice = names.find((name, index) => names.indexOf(name) !== index);
    if (twice !== undefined) throw refusal(who, `has two ${what} "${twice}"`, "Give each its own");
  }
  return Object.freeze({ ...frozen(spec), id });
}

/** Lists are copied, so that nobody changes the agent through the array that it was made from. */
function frozen(spec: AgentSpec): AgentSpec {
  const kept = Object.entries(spec).filter(([, value]) => value !== undefined);
  return Object.fromEntries(
    kept.map(([field, value]) => [field, Array.isArray(value) ? Object.freeze([...value]) : value]),
  ) as unknown as AgentSpec;
}

function refusal(who: string, problem: string, advice: string): SkeinError {
  return new SkeinError("invalid_arguments", { problem: `${who} ${problem}`, advice });
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
