import { SkeinError } from "../../core/errors.ts";
import { matchesGlob } from "../../core/glob.ts";

export interface ToolRule {
  /** If absent, all tools are allowed. If empty, no tools are. */
  readonly allow?: readonly string[];
  /** Takes precedence over `allow`. */
  readonly deny?: readonly string[];
  /** Tools whose calls need approval, regardless of their definitions. */
  readonly ask?: readonly string[];
}

/** A rule and its owner, such as `agent main` or `this run`. */
export interface ToolLayer extends ToolRule {
  readonly of: string;
}

export interface Selectable {
  readonly name: string;
  readonly groups: readonly string[];
}

export interface Selection<T> {
  readonly tools: readonly T[];
  /** Entries in `allow` and `ask` that match no tool. They are usually typos. */
  readonly unmatched: readonly { readonly of: string; readonly entry: string; readonly note: string }[];
}

const prefix = "group:";

/** Returns a group's name with its prefix. */
export function groupName(name: string): string {
  return name.startsWith(prefix) ? name : `${prefix}${name}`;
}

/** Selects the tools that every layer allows and none denies. */
export function selectTools<T extends Selectable>(
  tools: readonly T[],
  layers: readonly ToolLayer[],
): Selection<T> {
  const isUnmatched = (entry: string) => !tools.some((tool) => fits(tool, entry));
  const unmatched = layers.flatMap(({ of, allow = [], ask = [] }) => [
    ...allow.filter(isUnmatched).map((entry) => ({
      of,
      entry,
      note: `The entry "${entry}" in the allow list of ${of} matches no tool.`,
    })),
    ...ask.filter(isUnmatched).map((entry) => ({
      of,
      entry,
      note: `The entry "${entry}" in the ask list of ${of} matches no tool.`,
    })),
  ]);
  return { tools: tools.filter((tool) => denialOf(tool, layers) === null), unmatched };
}

/** Returns the rule that denies a tool, or `null` if no rule does. */
export function denialOf(tool: Selectable, layers: readonly ToolLayer[]): string | null {
  for (const { of, allow, deny = [] } of layers) {
    const entry = deny.find((each) => fits(tool, each));
    if (entry !== undefined) return `the rules of ${of} deny "${entry}"`;
    if (allow !== undefined && !allow.some((each) => fits(tool, each)))
      return `the rules of ${of} do not allow it`;
  }
  return null;
}

/** Whether a layer requires approval for calls to the tool. */
export function isAskedAbout(tool: Selectable, layers: readonly ToolLayer[]): boolean {
  return layers.some(({ ask = [] }) => ask.some((entry) => fits(tool, entry)));
}

/** Combines the tools from all sources. Throws `conflict` if two tools have the same name. */
export function joinTools<T extends Selectable>(
  sources: readonly { readonly from: string; readonly tools: readonly T[] }[],
): readonly T[] {
  const origins = new Map<string, string>();
  for (const { from, tools } of sources)
    for (const { name } of tools) {
      const other = origins.get(name);
      if (other !== undefined) {
        const problem = `Two tools are named "${name}": one from ${other} and one from ${from}`;
        throw new SkeinError("conflict", {
          problem,
          advice: "Rename one of them, or remove one",
        });
      }
      origins.set(name, from);
    }
  return sources.flatMap(({ tools }) => tools);
}

function fits(tool: Selectable, entry: string): boolean {
  if (!entry.startsWith(prefix)) return matchesGlob(entry, tool.name);
  return tool.groups.some((group) => matchesGlob(entry, groupName(group)));
}
