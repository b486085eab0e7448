import { inLine } from "../../core/text.ts";
import type { Child } from "../../runs/contract.ts";
import type { Member } from "./family.ts";

/** Which child is meant. */

export type Targeted =
  | { readonly child: Child }
  | { readonly status: "forbidden" | "error"; readonly code: string; readonly error: string };

const notOwn = "Subagents can only control runs spawned from their own session.";

/**
 * By key, label, run id or `last`. What its children spawned is theirs to steer, but may be killed from above; whatever is
 * outside the family is unknown, existing or not.
 */
export function targetedChild(
  target: string,
  family: readonly Member[],
  options: { readonly descendants: boolean; display(key: string): string },
): Targeted {
  const own = family.filter(({ depth }) => depth === 1);
  const [last] = own;
  if (target === "last") return last === undefined ? unknown(target) : { child: last.child };
  const found = own.filter(({ child }) => isMeant(child, target, options.display));
  const [first, second] = found;
  if (second !== undefined) return ambiguous(target, found, options.display);
  if (first !== undefined) return { child: first.child };
  const below = family.filter(({ child, depth }) => depth > 1 && isMeant(child, target, options.display));
  const [descendant] = below;
  if (descendant === undefined) return unknown(target);
  if (!options.descendants) return { status: "forbidden", code: "not_own_child", error: notOwn };
  return below.length > 1 ? ambiguous(target, below, options.display) : { child: descendant.child };
}

function isMeant({ run, label, spawnId }: Child, target: string, display: (key: string) => string): boolean {
  const { key } = run.session;
  return [run.runId, key, display(key), `subagent:${spawnId}`, label].includes(target);
}

function unknown(target: string): Targeted {
  const what = target.includes(":") ? "session" : "target";
  return { status: "error", code: "not_found", error: `Unknown subagent ${what}: ${inLine(target, 300)}` };
}

function ambiguous(target: string, found: readonly Member[], display: (key: string) => string): Targeted {
  const keys = found.map(({ child }) => display(child.run.session.key)).join(", ");
  const error = `Ambiguous subagent label: ${inLine(target, 300)} (use one of ${keys})`;
  return { status: "error", code: "ambiguous", error };
}
