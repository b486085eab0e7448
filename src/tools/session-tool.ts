import type { SleepRequest } from "../agents/contract.ts";
import { messageWithoutPaths, SkeinError } from "../core/errors.ts";
import type { JsonSchema, Schema } from "../core/schema.ts";
import type { App } from "../sessions/app.ts";
import type { Caller } from "../sessions/session-access.ts";

/** A tool's result: one JSON object. An error result has `status`, `code` and `error`. */
export type ToolResult = Readonly<Record<string, unknown>>;

export interface ToolAnswer {
  readonly result: ToolResult;
  /** Ends the turn after all other calls in the same message. */
  readonly sleep?: SleepRequest;
}

/**
 * A tool in `group:sessions`. It works in the same way in-process, on the command line, over the gateway and over MCP.
 */
export interface SessionTool {
  readonly name: string;
  readonly label: string;
  readonly description: string;
  /** The schema for the arguments object. */
  readonly parameters: Schema;
  /** The schema for the result, including error results. */
  readonly output?: Schema;
  /** `true` if the tool runs after all other calls in its message so that it sees what they started. */
  readonly isLast?: boolean;
  /** Alternative argument names (alias → name). If a call contains several of them, the first one is used. */
  readonly aliases?: Readonly<Record<string, string>>;
  /** Aliases that are rejected if given together with the argument name. Other aliases are ignored in that case. */
  readonly exclusiveAliases?: readonly string[];
  /** Argument names that are rejected with a specific error message (name → message). */
  readonly refusedNames?: Readonly<Record<string, string>>;
  /** Returns a call's arguments as the transcript stores them. If absent, they are stored unchanged. */
  persisted?(args: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>>;
  /** `true` if the tool only reads and starts no runs. */
  readonly isReadOnly?: boolean;
  /** `true` if the tool can abort runs or delete data. */
  readonly isDestructive?: boolean;
  /** `true` if the tool redacts its own result. Otherwise, the caller redacts it. */
  readonly isRedacted?: boolean;
  /** Returns additional fields for an error result, besides `status`, `code` and `error`. */
  refused?(call: Caller): ToolResult;
  /** `args` has already been checked, trimmed and clamped. A ToolInputError or SkeinError becomes an error result. */
  execute(args: Readonly<Record<string, unknown>>, call: Caller, app: App): Promise<ToolAnswer>;
}

/** Returns the result for an error. An internal error is reported, and its details are left out of the result. */
export function refusalOf(toolName: string, error: unknown, report: (error: unknown) => void): ToolResult {
  const isExpected =
    error instanceof ToolInputError || (error instanceof SkeinError && error.code !== "internal");
  if (isExpected) return { status: "error", code: error.code, error: messageWithoutPaths(error) };
  report(error);
  const { code, message } = new SkeinError("internal", { problem: `${toolName} failed` });
  return { status: "error", code, error: message };
}

/** Whether a result reports that the call was rejected or failed. */
export function isRefusal({ status }: ToolResult): boolean {
  return status === "error" || status === "forbidden";
}

/** Thrown for an invalid argument. It becomes an error result with this code. */
export class ToolInputError extends Error {
  override readonly name = "ToolInputError";
  readonly code = "invalid_arguments";
  /** The argument's path, for example `attachments.2.name`. Empty if the error concerns the arguments as a whole. */
  readonly path: string;

  constructor(message: string, path: string) {
    super(message);
    this.path = path;
  }
}

type Json = Readonly<Record<string, unknown>>;

/** Returns the parameters in the format for models, with closed objects and with choices as a single enum. */
export function modelParameters({ keep: _, ...schema }: JsonSchema): Json {
  const { anyOf, items, properties } = schema;
  const words = anyOf?.map((each) => each.const) ?? schema.enum ?? [];
  if (words.length > 0 && words.every((word) => typeof word === "string")) {
    const { anyOf: __, ...rest } = schema;
    return { ...rest, type: "string", enum: words };
  }
  return {
    ...schema,
    ...(anyOf === undefined ? {} : { anyOf: anyOf.map(modelParameters) }),
    ...(items === undefined ? {} : { items: modelParameters(items) }),
    ...(properties === undefined
      ? {}
      : { properties: modelProperties(properties), additionalProperties: false }),
  };
}

function modelProperties(properties: Readonly<Record<string, JsonSchema>>): Json {
  return Object.fromEntries(Object.entries(properties).map(([name, each]) => [name, modelParameters(each)]));
}
