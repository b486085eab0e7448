import { SkeinError } from "../core/errors.ts";
import { readKey } from "../core/keys.ts";
import type { Asker } from "../core/references.ts";
import { displayKey } from "../core/references.ts";

/** As much of a session in the trash as it is found by. */
export interface TrashedName {
  readonly key: string;
  readonly sessionId: string;
  readonly label?: string | null;
}

const mostCandidates = 5;

/**
 * The one in the trash that a reference means; `null`: none does. Several may have had one key, and then the session id is wanted.
 * `prefix`: a unique beginning of a session id will do.
 */
export function findTrashed<T extends TrashedName>(
  trashed: readonly T[],
  name: string,
  asker: Asker,
  { prefix = false }: { readonly prefix?: boolean } = {},
): T | null {
  const found = trashedAs(trashed, name, asker, { prefix });
  if (found.length > 1) {
    const candidates = found.slice(0, mostCandidates).map(({ sessionId }) => sessionId);
    throw new SkeinError("ambiguous", { name, what: "session", candidates: candidates.join(", ") });
  }
  return found[0] ?? null;
}

/** All that it could mean: by the first way that finds any. */
export function trashedAs<T extends TrashedName>(
  trashed: readonly T[],
  name: string,
  asker: Asker,
  { prefix = true }: { readonly prefix?: boolean } = {},
): readonly T[] {
  const lowered = name.toLowerCase();
  const hasId = ({ sessionId }: T) => sessionId.toLowerCase() === lowered;
  const ways: ((each: T) => boolean)[] = [
    ({ key }) => key === name || displayKey(key, asker) === name,
    // A session that was reset keeps its ID, but no longer goes by it where another one has the name.
    (each) => hasId(each) && formOf(each.key) !== "reset",
    ({ key }) => displayKey(key, asker) === `session:${name}`,
    hasId,
    ({ label }) => label === name,
    ({ sessionId }) => prefix && sessionId.toLowerCase().startsWith(lowered),
  ];
  for (const way of ways) {
    const found = trashed.filter(way);
    if (found.length > 0) return found;
  }
  return [];
}

function formOf(key: string): string | null {
  const parsed = readKey(key);
  return "problem" in parsed ? null : parsed.form;
}
