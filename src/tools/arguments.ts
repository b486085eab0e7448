import { own } from "../core/own.ts";
import type { SessionTool } from "./contract.ts";
import { isRecord, readFields, refuseUnknown, shown } from "./read-value.ts";
import { ToolInputError } from "./tool-input-error.ts";

export type ReadableTool = Pick<
  SessionTool,
  "name" | "parameters" | "aliases" | "exclusiveAliases" | "refusedNames"
>;

/** The arguments of a call as its tool takes them. Throws a ToolInputError, and nothing else, whatever came. */
export function readArguments(tool: ReadableTool, raw: unknown): Record<string, unknown> {
  const given = raw ?? {};
  if (!isRecord(given)) {
    throw new ToolInputError(`The arguments of ${tool.name} must be an object, got ${shown(raw)}`, "");
  }
  const fields = plain(given);
  refuseNames(tool, fields);
  const schema = tool.parameters;
  const names = Object.keys(schema.properties ?? {});
  const others = Object.keys(tool.aliases ?? {}).filter((name) => !names.includes(name));
  refuseUnknown(fields, [...names, ...others], "");
  const { args, givenAs } = foldAliases(tool, fields);
  try {
    return readFields(schema, args, "");
  } catch (error) {
    throw error instanceof ToolInputError ? inTheirWords(error, givenAs) : cannotBeRead();
  }
}

/** Its own fields, read once: asking an object that comes from a program may fail. */
function plain(given: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  try {
    return Object.fromEntries(Object.entries(given));
  } catch {
    throw cannotBeRead();
  }
}

function cannotBeRead(): ToolInputError {
  return new ToolInputError("The arguments cannot be read", "");
}

/** Names that a tool refuses with a text of its own come before those that nobody knows. */
function refuseNames({ refusedNames = {} }: ReadableTool, given: Readonly<Record<string, unknown>>): void {
  for (const name of Object.keys(given)) {
    const text = own(refusedNames, name);
    if (text !== undefined && given[name] !== undefined) throw new ToolInputError(text, name);
  }
}

/** A mistake is told by the name that the caller used. */
function inTheirWords(error: ToolInputError, givenAs: ReadonlyMap<string, string>): ToolInputError {
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
  /** The name that an argument was given by, where it is another than its own. */
  readonly givenAs: ReadonlyMap<string, string>;
}

/**
 * Other names of arguments put under their own. The name itself goes first, then its aliases in their order; what comes
 * later is dropped, or refused where the tool takes only one of the two.
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
      throw new ToolInputError(`${toolName} takes ${name} or ${alias}, not both`, alias);
    }
  }
  return { args: Object.fromEntries(args), givenAs };
}

/** `null` and a blank text are as good as nothing. */
function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null && !(typeof value === "string" && value.trim() === "");
}
