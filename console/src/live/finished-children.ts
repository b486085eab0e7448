import type { SessionRow } from "./session-row.ts";
import { idOf } from "./session-row.ts";

/** An item of a list in which finished sub-agents are nested. */
interface Nestable {
  readonly id: string;
  /** The item that it is nested under. */
  readonly host: string | null;
}

/** Stands for the finished sub-agents of one session. */
export interface Fold {
  readonly kind: "fold";
  readonly id: string;
  readonly host: string;
  readonly count: number;
  readonly isOpen: boolean;
}

/**
 * Returns the session under which each finished sub-agent is nested: its closest ancestor that is not nested itself. A
 * sub-agent whose parent is not among the rows is not nested.
 */
export function findHosts(
  rows: readonly SessionRow[],
  isFinished: (row: SessionRow) => boolean,
): ReadonlyMap<string, string> {
  const byId = new Map(rows.map((row) => [idOf(row), row]));
  const hosts = new Map<string, string>();
  const visited = new Set<string>();
  const hostOf = (row: SessionRow): string | undefined => {
    const id = idOf(row);
    const { spawnedBy: key, userId } = row;
    if (visited.has(id) || key === undefined || !isFinished(row)) return hosts.get(id);
    visited.add(id);
    const parent = byId.get(idOf({ key, userId }));
    const host = parent === undefined ? undefined : (hostOf(parent) ?? idOf(parent));
    // A session in a cycle of sessions that spawned each other is not nested under itself.
    if (host !== undefined && host !== id) hosts.set(id, host);
    return hosts.get(id);
  };
  for (const row of rows) hostOf(row);
  return hosts;
}

/** Places nested items directly after their hosts. The order is otherwise unchanged. */
export function nest<T extends Nestable>(items: readonly T[]): readonly T[] {
  const byHost = Map.groupBy(items, ({ host }) => host);
  return (byHost.get(null) ?? []).flatMap((item) => [item, ...(byHost.get(item.id) ?? [])]);
}

/** Adds a fold in front of each host's nested items. The items of a closed fold are hidden, except the kept ones. */
export function foldNested<T extends Nestable>(
  items: readonly T[],
  opened: ReadonlySet<string>,
  kept: ReadonlySet<string>,
): readonly (T | Fold)[] {
  const byHost = Map.groupBy(items, ({ host }) => host);
  const known = new Set<string>();
  return items.flatMap((item): (T | Fold)[] => {
    const { id, host } = item;
    if (host === null) return [item];
    const isOpen = opened.has(host);
    const shown = isOpen || kept.has(id) ? [item] : [];
    if (known.has(host)) return shown;
    known.add(host);
    const count = byHost.get(host)?.length ?? 0;
    return [{ kind: "fold", id: `finished ${host}`, host, count, isOpen }, ...shown];
  });
}
