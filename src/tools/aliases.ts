import { own } from "../core/own.ts";
import type { SessionTool } from "./contract.ts";
import { ToolInputError } from "./tool-input-error.ts";

export interface Folded {
  readonly args: Readonly<Record<string, unknown>>;
  /** The name that an argument was given by, where it is another than its own. */
  readonly givenAs: ReadonlyMap<string, string>;
}

/**
 * Other names of arguments put under their own. The name itself goes first, then its aliases in their order; what comes
 * later is dropped, or refused where the tool takes only one of the two.
 */
export function foldAliases(
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
