import type { SessionKind } from "../../core/keys.ts";
import { present } from "../../core/present.ts";
import type { SessionQuery } from "../../store/contract.ts";

export const sessionKinds: readonly SessionKind[] = ["main", "group", "cron", "hook", "node", "other"];

export interface ListArguments {
  readonly kinds?: readonly SessionKind[];
  readonly activeMinutes?: number;
  readonly search?: string;
  readonly label?: string;
  readonly archived?: boolean;
  readonly limit?: number;
  readonly cursor?: string;
}

/** What a store is asked for: kinds and filters before the limit. `unknown` is never shown. */
export function listQuery(
  args: ListArguments,
  { now, scope }: { readonly now: number; readonly scope: "per-sender" | "global" },
): SessionQuery {
  const { kinds, activeMinutes, search, label, archived, limit, cursor } = args;
  return present({
    kinds,
    text: search,
    label,
    archived,
    // From the last appended entry: changes of metadata do not count.
    activeSince: activeMinutes === undefined ? null : now - activeMinutes * 60_000,
    includeGlobal: scope === "global" ? true : null,
    limit,
    cursor,
  });
}

/** Lowered, each once, an empty list for no filter; or what is no kind. */
export function readKinds(words: readonly string[]): { kinds: SessionKind[] } | { unknown: string } {
  const kinds = new Set<SessionKind>();
  for (const word of words) {
    const kind = sessionKinds.find((known) => known === word.trim().toLowerCase());
    if (kind === undefined) return { unknown: word };
    kinds.add(kind);
  }
  return { kinds: [...kinds] };
}
