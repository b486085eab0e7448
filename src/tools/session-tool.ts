import type { SleepRequest } from "../agents/contract.ts";
import { messageWithoutPaths, SkeinError } from "../core/errors.ts";
import type { JsonSchema, Schema } from "../core/schema.ts";
import type { App } from "../sessions/app.ts";
import type { Caller } from "../sessions/session-access.ts";

/** The result of a tool: one JSON object. A refusal has `status`, `code` and `error`. */
export type ToolResult = Readonly<Record<string, unknown>>;

export interface ToolAnswer {
  readonly result: ToolResult;
  /** Ends the turn after all other calls of the same message. */
  readonly sleep?: SleepRequest;
}

/** A tool of `group:sessions`. It works the same in-process, on the command line, over the gateway and over MCP. */
export interface SessionTool {
  readonly name: string;
  readonly label: string;
  readonly description: string;
  /** The schema of the arguments object. */
  readonly parameters: Schema;
  /** The schema of the result, including refusals. */
  readonly output?: Schema;
  /** Called after all other calls of its message, so that it sees what they started. */
  readonly isLast?: boolean;
  /** Other names of arguments: alias → name. The first one that is given is used. */
  readonly aliases?: Readonly<Record<string, string>>;
  /** Aliases that are refused together with the name itself; other aliases are dropped then. */
  readonly exclusiveAliases?: readonly string[];
  /** Names that are refused with their own text: name → text. */
  readonly refusedNames?: Readonly<Record<string, string>>;
  /** The arguments of a call as the transcript stores them. Absent: unchanged. */
  persisted?(args: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>>;
  /** The tool starts nothing. */
  readonly isReadOnly?: boolean;
  /** The tool may end runs or remove something. */
  readonly isDestructive?: boolean;
  /** The tool redacts its result itself. Absent: the caller does it. */
  readonly isRedacted?: boolean;
  /** Fields of a refusal besides `status`, `code` and `error`. */
  refused?(call: Caller): ToolResult;
  /** `args` are checked, trimmed and clamped. A ToolInputError or SkeinError becomes a refusal. */
  execute(args: Readonly<Record<string, unknown>>, call: Caller, app: App): Promise<ToolAnswer>;
}

/** The result for an error. An internal error is reported, and its details are left out. */
export function refusalOf(toolName: string, error: unknown, report: (error: unknown) => void): ToolResult {
  const isExpected =
    error instanceof ToolInputError || (error instanceof SkeinError && error.code !== "internal");
  if (isExpected) return { status: "error", code: error.code, error: messageWithoutPaths(error) };
  report(error);
  const { code, message } = new SkeinError("internal", { problem: `${toolName} failed` });
  return { status: "error", code, error: message };
}

/** Whether a result reports that the call was refused or failed. */
export function isRefusal({ status }: ToolResult): boolean {
  return status === "error" || status === "forbidden";
}

/** An invalid argument. It becomes a refusal with this code. */
export class ToolInputError extends Error {
  override readonly name = "ToolInputError";
  readonly code = "invalid_arguments";
  /** For example `attachments.2.name`; empty: the arguments as a whole. */
  readonly path: string;

  constructor(message: string, path: string) {
    super(message);
    this.path = path;
  }
}

type Json = Readonly<Record<string, unknown>>;

/** Parameters in the form for a model: closed objects, and choices as one enum. */
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
