import type { Entry } from "../core/entries.ts";
import { isBookkeeping } from "../core/entries.ts";
import { SkeinError } from "../core/errors.ts";
import { present } from "../core/present.ts";
import type { SessionTree } from "../core/tree.ts";
import type { EntryPage, EntryRange, Scope, SessionRecord, SessionStore } from "../store/contract.ts";
import { pageOf } from "../store/list-query.ts";
import { noSuchSession } from "../store/rules.ts";
import { readTree } from "../store/session-trees.ts";
import type { SkeinStore } from "./app.ts";

/** Selects a branch to read. Defaults to the active branch. */
export interface BranchChoice {
  /** The last entry on the branch. Reading the branch does not move the session's leaf. */
  readonly leafId?: string | undefined;
  /**
   * An entry on the branch. Selects the active branch if the entry is on it, otherwise the most recently written branch
   * below the entry.
   */
  readonly around?: string | undefined;
}

type Bounds = Pick<EntryRange, "before" | "after">;

/** Reads a page of one branch. */
export type ReadPage = (bounds: Bounds, limit: number) => Promise<EntryPage>;

export interface Branch {
  readonly read: ReadPage;
  /** The last entry on the branch, or `null` for the active branch. */
  readonly lastId: string | null;
}

export type BranchStore = Pick<SkeinStore, "sessions"> & {
  readonly upkeep?: Pick<NonNullable<SkeinStore["upkeep"]>, "loadTree">;
};
type BranchSession = Pick<SessionRecord, "userId" | "sessionId">;

const chunkBytes = 8 * 1024 * 1024;

/**
 * Opens a branch for paging. The active branch is read from the store page by page. Any other branch is read from the
 * full session.
 */
export async function openBranch(
  store: BranchStore,
  scope: Scope,
  session: BranchSession,
  choice: BranchChoice = {},
): Promise<Branch> {
  const active = activeBranch(store.sessions, scope, session.sessionId);
  if (await isActive(active, choice)) return { read: active, lastId: null };
  const tree = await loadTree(store, scope, session);
  const { leafId, around } = choice;
  const lastId = leafId ?? lastBelow(tree, around ?? "");
  const path = tree.path(lastId);
  return {
    read: async (bounds, limit) => pageOf(path, tree.leafId, { along: "branch", ...bounds, limit }),
    lastId,
  };
}

/** Returns a reader for pages of the active branch. */
export function activeBranch(sessions: SessionStore, scope: Scope, sessionId: string): ReadPage {
  return async (bounds, limit) =>
    (await sessions.page(scope, sessionId, { along: "branch", ...bounds, limit, bytes: chunkBytes })) ??
    noSuchSession(sessionId);
}

async function isActive(read: ReadPage, { leafId, around }: BranchChoice): Promise<boolean> {
  if (leafId !== undefined) return (await read({}, 1)).leafId === leafId;
  if (around === undefined) return true;
  return read({ before: around }, 1).then(
    () => true,
    (error: unknown) => {
      if (error instanceof SkeinError && error.code === "not_found" && error.details.what === "Entry")
        return false;
      throw error;
    },
  );
}

/** Loads a session's whole tree. A file store caches the tree temporarily. */
export async function loadTree(
  store: BranchStore,
  scope: Scope,
  session: BranchSession,
): Promise<SessionTree> {
  const loading = store.upkeep?.loadTree(session);
  if (loading !== undefined && loading !== null) return loading;
  const record = await store.sessions.get(scope, session.sessionId);
  return readTree(store, record ?? noSuchSession(session.sessionId));
}

/** Returns the most recently written conversation entry below an entry, or the entry itself if there is none. */
function lastBelow(tree: SessionTree, id: string): string {
  // Throws `not_found` for an unknown entry.
  tree.path(id);
  const below = new Set<string>();
  let last = id;
  for (const entry of tree.entries()) {
    const parentId = tree.parentOf(entry.id)?.id;
    if (entry.id !== id && (parentId === undefined || !below.has(parentId))) continue;
    below.add(entry.id);
    if (!isBookkeeping(entry)) last = entry.id;
  }
  return last;
}

/** A page with an entry at its center. */
export interface CenteredPage extends EntryPage {
  /** The number of `entries` before the entry at the center. */
  readonly earlierCount: number;
}

export async function readPageAround(read: ReadPage, center: Entry, limit: number): Promise<CenteredPage> {
  const half = Math.floor((limit - 1) / 2);
  const before = await read({ before: center.id }, Math.max(1, half));
  const earlier = half === 0 ? [] : before.entries;
  const left = limit - 1 - earlier.length;
  const after = await read({ after: center.id }, Math.max(1, left));
  const later = after.entries.slice(0, left);
  return {
    entries: [...earlier, center, ...later],
    earlierCount: earlier.length,
    hasEarlier: before.hasEarlier || earlier.length < before.entries.length,
    hasLater: after.hasLater || later.length < after.entries.length,
    leafId: after.leafId,
  };
}

/** Reads the entry at the center of a page. Throws `not_found`. */
export async function readCenter(
  { sessions }: Pick<SkeinStore, "sessions">,
  scope: Scope,
  sessionId: string,
  entryId: string,
): Promise<Entry> {
  const entry = await sessions.entry(scope, sessionId, entryId);
  if (entry !== null) return entry;
  const advice = "Use the ID of an entry in this session";
  throw new SkeinError("not_found", { what: "Entry", name: entryId, advice });
}

/** Rejects combinations of parameters that make no sense. */
export function checkBranchRange(
  range: BranchChoice & Bounds & { readonly along?: string | undefined },
): void {
  const { around, leafId, before, after, along } = range;
  const problem =
    around !== undefined && (before ?? after) !== undefined
      ? "around cannot be combined with before or after"
      : leafId !== undefined && along === "all"
        ? "leafId names one branch, so along cannot be all"
        : null;
  if (problem === null) return;
  throw new SkeinError("invalid_arguments", { problem, advice: "Omit one of them" });
}

export function branchFields({ lastId }: Branch): { readonly branchLeafId?: string } {
  return present({ branchLeafId: lastId });
}
