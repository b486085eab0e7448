import type { SessionContext } from "../core/context.ts";
import type { Entry } from "../core/entries.ts";
import { retryAdvice, SkeinError } from "../core/errors.ts";
import type { IdSource } from "../core/ids.ts";
import { createIdSource } from "../core/ids.ts";
import type { AppendItem, Scope, SessionRecord } from "../store/contract.ts";
import { noSuchSession } from "../store/rules.ts";
import type { FenceOption, WorkingSessions } from "../store/work.ts";
import { toolResultLimit, truncateContent } from "../transcript/steps/truncate-tool-results.ts";
import { copyBranch, copyingFrom, pointsAt } from "./copy-branch.ts";

interface TruncateOptions extends FenceOption {
  readonly contextWindow: number;
  readonly newId?: IdSource;
}

interface TruncatedInSession {
  /** The IDs of the truncated results. Empty if nothing was written. */
  readonly truncated: readonly string[];
  /** The IDs of the copies, keyed by the IDs of their originals. */
  readonly copies: ReadonlyMap<string, string>;
  /**
   * The number of entries that were not copied because Skein does not write entries of their types. The model does not
   * see these entries.
   */
  readonly leftBehind: number;
  /** Why nothing was written even though a result is too long. */
  readonly refused: string | null;
}

const nothing: TruncatedInSession = { truncated: [], copies: new Map(), leftBehind: 0, refused: null };
const pageSize = 1000;

/**
 * Permanently truncates tool results that are too long for the window. Copies the branch, starting at the first of
 * these results, with the results truncated. The full results stay on the old branch. Throws `conflict` if the session
 * has changed since the record was read.
 *
 * Everything is written in one append. A crash leaves the session either unchanged or complete. If the disk loses part
 * of the append, the first copies can remain. `leaveTornCopies` then returns to the old branch.
 */
export async function truncateOversizedToolResultsInSession(
  sessions: WorkingSessions,
  scope: Scope,
  { sessionId, leafId }: SessionRecord,
  { contextWindow, newId = createIdSource(), fence }: TruncateOptions,
): Promise<TruncatedInSession> {
  const context = (await sessions.context(scope, sessionId)) ?? noSuchSession(sessionId);
  const cut = cutContext(context, toolResultLimit(contextWindow));
  if (cut.truncated.length === 0) return nothing;
  const path = await branchOf(sessions, scope, sessionId, leafId, context);
  const first = path.findIndex(({ id }) => id === cut.truncated[0]);
  if (first === -1) throw sessionChanged(leafId);
  const from = copyingFrom(path, first);
  const made = copyBranch(path, from, cut.messages, newId);
  if ("problem" in made)
    return { ...nothing, refused: `The results cannot be truncated permanently: ${made.problem}.` };
  const labels = await labelsOn(sessions, scope, sessionId, path[from]?.id ?? "", made.copies);
  await sessions.append(scope, sessionId, [...made.items, ...labels], {
    expectedLeafId: leafId,
    parentId: path[from - 1]?.id ?? null,
    ...(fence === undefined ? {} : { fence }),
  });
  return { truncated: cut.truncated, copies: made.copies, leftBehind: made.leftBehind, refused: null };
}

/**
 * Moves a session whose log ends with incomplete copies back to its old branch. Call this before a session continues.
 * Returns `true` if the session was moved.
 */
export async function leaveTornCopies(
  sessions: WorkingSessions,
  scope: Scope,
  sessionId: string,
  options: FenceOption = {},
): Promise<boolean> {
  const page = await sessions.page(scope, sessionId, { along: "branch", limit: 1 });
  const { backTo } = (page?.entries.at(-1) as { skein?: { backTo?: unknown } } | undefined)?.skein ?? {};
  if (typeof backTo !== "string") return false;
  await sessions.branch(scope, sessionId, backTo, options);
  return true;
}

/** Returns the context messages by entry ID, with long tool results truncated. */
function cutContext({ messages, entryIds }: SessionContext, limit: number) {
  const truncated: string[] = [];
  const byId = new Map<string, SessionContext["messages"][number]>();
  for (const [index, message] of messages.entries()) {
    const id = entryIds[index] ?? "";
    const content = message.role === "toolResult" ? truncateContent(message, limit) : null;
    if (content !== null) truncated.push(id);
    byId.set(id, content === null || message.role !== "toolResult" ? message : { ...message, content });
  }
  return { truncated, messages: byId };
}

/**
 * Returns the end of the branch, starting at the first entry that is in the context or that a compaction in the context
 * keeps.
 */
async function branchOf(
  sessions: WorkingSessions,
  scope: Scope,
  sessionId: string,
  leafId: string | null,
  { entryIds }: SessionContext,
): Promise<readonly Entry[]> {
  let path: readonly Entry[] = [];
  for (;;) {
    const before = path[0] === undefined ? {} : { before: path[0].id };
    const range = { along: "branch", limit: pageSize, ...before } as const;
    const page = (await sessions.page(scope, sessionId, range)) ?? noSuchSession(sessionId);
    if (page.leafId !== leafId) throw sessionChanged(leafId);
    path = [...page.entries, ...path];
    if (!page.hasEarlier || isEnough(path, entryIds)) return path;
  }
}

/**
 * Whether the path is long enough. It must include the entry before the first one, because the new branch starts there.
 */
function isEnough(path: readonly Entry[], entryIds: readonly string[]): boolean {
  const places = new Map(path.map(({ id }, place) => [id, place]));
  const placeOf = (id: string) => places.get(id) ?? 0;
  const first = entryIds.reduce((least, id) => Math.min(least, placeOf(id)), path.length);
  return path.slice(first).every((entry) => placeOf(pointsAt(entry) ?? entry.id) > 0);
}

function sessionChanged(leafId: string | null): SkeinError {
  const problem = `The session has changed; its leaf is no longer ${leafId ?? "before the root"}`;
  return new SkeinError("conflict", { problem, advice: retryAdvice });
}

/** Returns the originals' labels for use on the copies. A label comes after its target, on any branch. */
async function labelsOn(
  sessions: WorkingSessions,
  scope: Scope,
  sessionId: string,
  first: string,
  copies: ReadonlyMap<string, string>,
): Promise<AppendItem[]> {
  const live = new Map<string, string | undefined>();
  for (let after = first; ; ) {
    const page = await sessions.page(scope, sessionId, { along: "all", limit: pageSize, after });
    for (const entry of page?.entries ?? [])
      if (entry.type === "label") live.set(entry.targetId, entry.label);
    after = page?.entries.at(-1)?.id ?? after;
    if (page === null || !page.hasLater) break;
  }
  return [...copies].flatMap(([original, targetId]) => {
    const label = live.get(original);
    return label ? [{ draft: { type: "label" as const, targetId, label } }] : [];
  });
}
