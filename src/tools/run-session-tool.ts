import { mapStrings } from "../access/redaction/map-strings.ts";
import { SkeinError } from "../core/errors.ts";
import { isRecord } from "../core/is-record.ts";
import { own, stringifyJson } from "../core/json.ts";
import { withoutPathsOutside } from "../core/text.ts";
import type { App } from "../sessions/app.ts";
import type { Caller } from "../sessions/session-access.ts";
import { readFields, refuseUnknown, shown } from "./read-value.ts";
import type { SessionTool, ToolAnswer, ToolResult } from "./session-tool.ts";
import { isRefusal, refusalOf, ToolInputError } from "./session-tool.ts";

/**
 * Runs a session tool in the same way for all callers: reads the arguments, turns errors into error results, and
 * redacts the result. Throws only if the run is aborted or has lost its fence.
 */
export async function runSessionTool(
  tool: SessionTool,
  rawArgs: unknown,
  call: Caller,
  app: App,
): Promise<ToolAnswer> {
  const redacted = (result: ToolResult) => {
    const safe = app.redactor.redactJson(result).value as ToolResult;
    return isRefusal(safe) ? hidePaths(safe, call) : safe;
  };
  try {
    const answer = await tool.execute(readArguments(tool, rawArgs), call, app);
    const result = toPlainJson(answer.result);
    // An error result can quote the arguments and the error, which the tool has not redacted.
    const isSafe = tool.isRedacted === true && !isRefusal(result);
    return { ...answer, result: isSafe ? result : redacted(result) };
  } catch (error) {
    call.signal.throwIfAborted();
    if (error instanceof SkeinError && error.code === "fenced") throw error;
    const refusal = refusalOf(tool.name, error, app.report);
    return { result: redacted(toPlainJson({ ...refusal, ...tool.refused?.(call) })) };
  }
}

/** Removes local paths, which sandboxed models and other users' models must not see. */
function hidePaths(refusal: ToolResult, { userId, sandboxed, session }: Caller): ToolResult {
  if (userId === null && !sandboxed) return refusal;
  return mapStrings(refusal, (text) => withoutPathsOutside(session?.cwd ?? null, text)) as ToolResult;
}

/** Drops `undefined` values, as JSON does. */
function toPlainJson(result: ToolResult): ToolResult {
  return JSON.parse(stringifyJson(result)) as ToolResult;
}

export type ReadableTool = Pick<
  SessionTool,
  "name" | "parameters" | "aliases" | "exclusiveAliases" | "refusedNames"
>;

/** Checks and converts a call's arguments. Throws only ToolInputErrors. */
export function readArguments(tool: ReadableTool, raw: unknown): Record<string, unknown> {
  const given = raw ?? {};
  if (!isRecord(given)) {
    throw new ToolInputError(`The arguments for ${tool.name} must be an object, got ${shown(raw)}`, "");
  }
  const fields = copyFields(given);
  checkRefusedNames(tool, fields);
  const schema = tool.parameters;
  const names = Object.keys(schema.properties ?? {});
  const others = Object.keys(tool.aliases ?? {}).filter((name) => !names.includes(name));
  refuseUnknown(fields, [...names, ...others], "");
  const { args, givenAs } = foldAliases(tool, fields);
  try {
    return readFields(schema, args, "");
  } catch (error) {
    throw error instanceof ToolInputError ? withGivenName(error, givenAs) : unreadableArguments();
  }
}

/** Reads the object's own fields exactly once, because getters on a caller's object can throw. */
function copyFields(given: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  try {
    return Object.fromEntries(Object.entries(given));
  } catch {
    throw unreadableArguments();
  }
}

function unreadableArguments(): ToolInputError {
  return new ToolInputError("The arguments cannot be read", "");
}

/** Checks for names with a specific error message before checking for unknown names. */
function checkRefusedNames(
  { refusedNames = {} }: ReadableTool,
  given: Readonly<Record<string, unknown>>,
): void {
  for (const name of Object.keys(given)) {
    const text = own(refusedNames, name);
    if (text !== undefined && given[name] !== undefined) throw new ToolInputError(text, name);
  }
}

/** Replaces the argument's name in the error with the name that the caller used. */
function withGivenName(error: ToolInputError, givenAs: ReadonlyMap<string, string>): ToolInputError {
  const [name = "", ...rest] = error.path.split(".");
  const alias = givenAs.get(name);
  if (alias === undefined) return error;
  const path = [alias, ...rest].join(".");
  return new ToolInputError(
    error.message.replace(error.path, () => path),
    path,
  );
}

interface Folded {
  readonly args: Readonly<Record<string, unknown>>;
  /** The alias under which an argument was given, if any. */
  readonly givenAs: ReadonlyMap<string, string>;
}

/**
 * Renames aliases to their argument names. The argument name takes precedence, followed by its aliases in order. Other
 * values are dropped, or rejected if the tool accepts only one of the names.
 */
function foldAliases(
  {
    name: toolName,
    aliases = {},
    exclusiveAliases = [],
  }: Pick<SessionTool, "name" | "aliases" | "exclusiveAliases">,
  raw: Readonly<Record<string, unknown>>,
): Folded {
  const isAlias = (name: string) => own(aliases, name) !== undefined;
  const args = new Map(Object.entries(raw).filter(([name]) => !isAlias(name)));
  const givenAs = new Map<string, string>();
  for (const [alias, name] of Object.entries(aliases)) {
    const value = own(raw, alias);
    if (!isGiven(value)) continue;
    if (!isGiven(args.get(name))) {
      args.set(name, value);
      givenAs.set(name, alias);
    } else if (exclusiveAliases.includes(alias)) {
      throw new ToolInputError(`${toolName} accepts either ${name} or ${alias}, not both`, alias);
    }
  }
  return { args: Object.fromEntries(args), givenAs };
}

/** Whether a value is present. `null` and blank strings are treated as absent. */
function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null && !(typeof value === "string" && value.trim() === "");
}
