import type { Static, TObject, TProperties } from "typebox";
import { SkeinError } from "../../core/errors.ts";

/** The context of a tool call. `signal` is aborted if the run ends before the tool returns. */
export interface ToolContext {
  readonly signal: AbortSignal;
  readonly toolCallId: string;
  readonly runId: string;
  readonly sessionKey: string;
  readonly sessionId: string;
  readonly userId: string | null;
  /** The request's namespace, or `null` if the sessions are in the user's own folders. */
  readonly namespace: readonly string[] | null;
  /** The request's store, or `null` for Skein's own. */
  readonly store: string | null;
  readonly agentId: string;
  readonly cwd: string;
  /**
   * The folder that `attachments/` in the session's messages refers to. It might not exist yet. `null` if there is
   * none.
   */
  readonly attachments: string | null;
  /** The run's instances of the agent's state modules, by key. They are saved after the run. */
  readonly state: ToolState;
}

/** A session's state modules, by key. `tools` is built in. */
export interface ToolState {
  readonly tools: ActiveGroups;
  readonly [key: string]: StateInstance;
}

interface StateInstance {
  readonly key: string;
  save(): unknown;
}

/** Which of the agent's `onDemand` groups are active in the session. A change takes effect on the next request. */
interface ActiveGroups extends StateInstance {
  readonly groups: readonly string[];
  activate(group: string): void;
  deactivate(group: string): void;
}

/** The argument of {@link defineTool}. */
export interface ToolSpec<P extends ToolParameters | undefined> {
  /** Letters, digits, `_` and `-`, at most 64 characters. */
  readonly name: string;
  /** Describes to the model what the tool does and when to use it. */
  readonly description: string;
  /** A schema for an object. If absent, the tool takes no arguments. */
  readonly parameters?: P;
  /**
   * Returns text, JSON, or `{content}` with text and image blocks. A thrown error becomes a failed result, and the run
   * continues.
   */
  execute(args: ArgumentsOf<P>, context: ToolContext): unknown;
  /**
   * `safe` means that the tool can be called again after a crash, when the outcome of the first call is unknown.
   * Defaults to `never`.
   */
  readonly replay?: "safe" | "never";
  /** Whether a call needs a user's approval. Defaults to `false`. */
  readonly approval?: boolean | ((args: ArgumentsOf<P>) => boolean | Promise<boolean>);
  /** The groups by which `allow` and `deny` can name the tool: `group:<name>`. */
  readonly groups?: readonly string[];
}

/** A checked tool, as returned by {@link defineTool}. */
export interface ToolDefinition<Arguments = unknown> {
  readonly name: string;
  readonly description: string;
  readonly parameters: ToolParameters | null;
  readonly replay: "safe" | "never";
  readonly groups: readonly string[];
  /** `asked` means that `needsApproval` decides based on the arguments. */
  readonly approval: "always" | "never" | "asked";
  needsApproval(args: Arguments): boolean | Promise<boolean>;
  execute(args: Arguments, context: ToolContext): unknown;
}

const namePattern = /^[A-Za-z0-9_-]{1,64}$/;
const fields = ["name", "description", "parameters", "execute", "replay", "approval", "groups"];

/**
 * Defines a tool. Throws `invalid_arguments` if the definition is invalid.
 *
 * @example
 * ```ts
 * import { defineTool } from "skein";
 * import Type from "typebox";
 * const add = defineTool({
 *   name: "add",
 *   description: "Adds two numbers.",
 *   parameters: Type.Object({ a: Type.Number(), b: Type.Number() }),
 *   replay: "safe",
 *   execute: ({ a, b }) => a + b,
 * });
 * ```
 */
export function defineTool<P extends ToolParameters | undefined = undefined>(
  spec: ToolSpec<P>,
): ToolDefinition<ArgumentsOf<P>> {
  const problem = problemOf(spec);
  if (problem !== null) throw new SkeinError("invalid_arguments", problem);
  const { approval = false } = spec;
  return Object.freeze({
    name: spec.name,
    description: spec.description,
    parameters: spec.parameters ?? null,
    replay: spec.replay ?? "never",
    groups: Object.freeze([...(spec.groups ?? [])]),
    approval: typeof approval === "function" ? "asked" : approval ? "always" : "never",
    needsApproval: (args: ArgumentsOf<P>) => (typeof approval === "function" ? approval(args) : approval),
    execute: (args: ArgumentsOf<P>, context: ToolContext) => spec.execute(args, context),
  } as const);
}

interface Problem {
  readonly problem: string;
  readonly advice: string;
}

/** Checks the definition at run time, because the compiler does not check JavaScript callers. */
function problemOf(spec: unknown): Problem | null {
  if (typeof spec !== "object" || spec === null)
    return { problem: "A tool definition must be an object", advice: "Set name, description and execute" };
  const given = spec as Readonly<Record<string, unknown>>;
  const { name } = given;
  if (typeof name !== "string" || !namePattern.test(name))
    return {
      problem: `Tool name ${JSON.stringify(name) ?? "undefined"} is not valid`,
      advice: "Use up to 64 letters, digits, underscores and hyphens",
    };
  const wrong = wrongField(given);
  return wrong === null ? null : { problem: `Tool "${name}": ${wrong.problem}`, advice: wrong.advice };
}

function wrongField(given: Readonly<Record<string, unknown>>): Problem | null {
  const unknown = Object.keys(given).find((field) => !fields.includes(field));
  if (unknown !== undefined)
    return { problem: `field "${unknown}" is unknown`, advice: `Use ${fields.join(", ")}` };
  if (typeof given.description !== "string" || given.description.trim() === "")
    return {
      problem: "it has no description",
      advice: "Describe to the model what it does and when to use it",
    };
  if (typeof given.execute !== "function")
    return { problem: "execute is not a function", advice: "Set execute(args, context)" };
  if (!areParameters(given.parameters))
    return {
      problem: "parameters is not a schema for an object",
      advice: "Use Type.Object from TypeBox, z.object from zod, or any other Standard Schema",
    };
  if (given.replay !== undefined && given.replay !== "safe" && given.replay !== "never")
    return { problem: 'replay is neither "safe" nor "never"', advice: "Omit it if you are not sure" };
  if (given.approval !== undefined && !["boolean", "function"].includes(typeof given.approval))
    return { problem: "approval is not true, false or a function", advice: "Use one of them" };
  if (!areGroups(given.groups))
    return { problem: "groups is not a list of names", advice: 'Use names such as ["weather"]' };
  return null;
}

/** Whether this is a schema. Arktype schemas are functions with properties. */
function areParameters(given: unknown): boolean {
  if (given === undefined) return true;
  if ((typeof given !== "object" && typeof given !== "function") || given === null) return false;
  if (!("~standard" in given)) return "type" in given && given.type === "object";
  const standard = given["~standard"];
  return typeof standard === "object" && standard !== null && "validate" in standard;
}

function areGroups(given: unknown): boolean {
  const isName = (each: unknown) => typeof each === "string" && /^[^\s*?]+$/.test(each);
  return given === undefined || (Array.isArray(given) && given.every(isName));
}

/** A schema from any library that implements Standard Schema, such as zod, valibot or arktype. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

export interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** A tool's parameters: a Standard Schema, or a TypeBox schema for an object. */
export type ToolParameters = StandardSchema | { readonly type: "object" };

/** The type of a tool's arguments. */
export type ArgumentsOf<P> = P extends {
  readonly "~standard": { readonly types?: { readonly output: infer Output } | undefined };
}
  ? Output
  : P extends TObject<infer Properties extends TProperties>
    ? Static<TObject<Properties>>
    : P extends { readonly type: "object" }
      ? Readonly<Record<string, unknown>>
      : Readonly<Record<string, never>>;

export function isStandardSchema(parameters: ToolParameters): parameters is StandardSchema {
  return "~standard" in parameters;
}
