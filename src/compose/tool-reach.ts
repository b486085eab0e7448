import type { ToolRule } from "../agents/tools/select-tools.ts";
import { matchesGlob } from "../core/glob.ts";

/** What is known of the tools of a source before it is asked. */
export interface ToolReach {
  /** Every name begins with it. */
  readonly prefix: string;
  /** Every tool is in them, each with its prefix. */
  readonly groups: readonly string[];
}

const groupPrefix = "group:";

/** Whether rules may leave anything of a source; a source of which they leave nothing need not be asked. */
export function mayReach(reach: ToolReach, layers: readonly ToolRule[]): boolean {
  return layers.every(({ allow, deny = [] }) => {
    if (deny.some((entry) => fitsAll(entry, reach))) return false;
    return allow === undefined || allow.some((entry) => mayFit(entry, reach));
  });
}

/** Whether an entry of `allow` may mean one of its tools. */
export function mayFit(entry: string, { prefix, groups }: ToolReach): boolean {
  if (entry.startsWith(groupPrefix)) return groups.some((group) => matchesGlob(entry, group));
  const wanted = [...entry];
  const begin = [...prefix];
  const star = wanted.indexOf("*");
  const fixed = star === -1 ? wanted : wanted.slice(0, star);
  if (star === -1 && fixed.length < begin.length) return false;
  return begin.every((sign, at) => {
    const here = fixed[at];
    return here === undefined || here === "?" || here === sign;
  });
}

function fitsAll(entry: string, { prefix, groups }: ToolReach): boolean {
  if (entry.startsWith(groupPrefix)) return groups.some((group) => matchesGlob(entry, group));
  return entry.endsWith("*") && matchesGlob(entry, prefix);
}
