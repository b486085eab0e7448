import { isRecord } from "../core/shape.ts";
import type { ProcessIdentity } from "../store/files/process-identity.ts";
import { isGone, thisProcess } from "../store/files/process-identity.ts";

/** Who owns the runs that this process claims; `part` tells apart several in one process. */
export function ownerHere(part: string): string {
  return JSON.stringify({ ...thisProcess(), part });
}

/** Whether an owner is known to be dead; one that nobody can read is not. */
export function isOwnerGone(owner: string): boolean {
  const who = parsed(owner);
  return isIdentity(who) && isGone(who);
}

function isIdentity(value: unknown): value is ProcessIdentity {
  return isRecord(value) && typeof value.pid === "number" && typeof value.host === "string";
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null; // written by somebody else
  }
}
