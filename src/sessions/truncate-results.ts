import type { SessionContext } from "../core/context.ts";
import type { Entry } from "../core/entries.ts";
import { decideAnew, SkeinError } from "../core/errors.ts";
import type { IdSource } from "../core/ids.ts";
import { createIdSource } from "../core/ids.ts";
import type { AppendItem, AppendOptions, Scope, SessionRecord, SessionStore } from "../store/contract.ts";
import { noSuchSession } from "../store/rules.ts";
import { toolResultLimit, truncateContent } from "../transcript/steps/truncate-tool-results.ts";
import { copyBranch, copyingFrom, pointsAt } from "./copy-branch.ts";

export interface TruncateOptions extends Pick<AppendOptions, "fence"> {
  readonly contextWindow: number;
  readonly newId?: IdSource;
}

export interface TruncatedInSession {
  /** The results that were cut, by the ids of the originals. Empty: nothing was written. */
  readonly truncated: readonly string[];
  /** The copies' ids by those of the originals. */
  readonly copies: ReadonlyMap<string, string>;
  /** Entries that stay behind because they are of a type that only others write, and that the model does not see. */
  readonly leftBehind: number;
  /** Why nothing was written although there was something to cut. */
  readonly refused: string | null;
}

const nothing: TruncatedInSession = { truncated: [], copies: new Map(), leftBehind: 0, refused: null };
const pageSize = 1000;

/**
 * Cuts the tool results of a session's context that are too long for the window, for good: on a new branch, from before
 * the first of them on, on which everything is said again. The whole stays on the branch that is left. `conflict` when the
 * session went on since the record was read.
 *
 * One write, so there is no moment between the move and the copies. A crash leaves the session as it was, or as it is to
 * be; a disk that was cut off within that write may leave the first of the copies, which `leaveTornCopies` goes back from.
 */
export async function truncateOversizedToolResultsInSession(
  sessions: SessionStore,
  scope: Scope,
  { sessionId, leafId }: SessionRecord,
  { contextWindow, newId = createIdSource(), fence }: TruncateOptions,
): Promise<TruncatedInSession> {
  const context = (await sessions.context(scope, sessionId)) ?? noSuchSession(sessionId);
  const cut = cutContext(context, toolResultLimit(contextWindow));
  if (cut.truncated.length === 0) return nothing;
  const path = await branchOf(sessions, scope, sessionId, leafId, context);
  const first = path.findIndex(({ id }) => id === cut.truncated[0]);
  if (first === -1) throw wentOn(leafId);
  const from = copyingFrom(path, first);
  const made = copyBranch(path, from, cut.messages, newId);
  if ("problem" in made)
    return { ...nothing, refused: `The results cannot be cut for good: ${made.problem}.` };
  const labels = await labelsOn(sessions, scope, sessionId, path[from]?.id ?? "", made.copies);
  await sessions.append(scope, sessionId, [...made.items, ...labels], {
    expectedLeafId: leafId,
    parentId: path[from - 1]?.id ?? null,
    ...(fence === undefined ? {} : { fence }),
  });
  return { truncated: cut.truncated, copies: made.copies, leftBehind: made.leftBehind, refused: null };
}

/**
 * Moves a session whose log ends in copies that were never finished back to where it stood. To be asked before a session
 * goes on. `true`: it was moved.
 */
export async function leaveTornCopies(
  sessions: SessionStore,
  scope: Scope,
  sessionId: string,
  options: Pick<AppendOptions, "fence"> = {},
): Promise<boolean> {
  const page = await sessions.page(scope, sessionId, { along: "branch", limit: 1 });
  const { backTo } = (page?.entries.at(-1) as { skein?: { backTo?: unknown } } | undefined)?.skein ?? {};
  if (typeof backTo !== "string") return false;
  await sessions.branch(scope, sessionId, backTo, options);
  return true;
}

/** The messages of the context by their entries, those that are too long cut. */
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

/** The branch, as far back as the context goes, and what compactions in it keep. */
async function branchOf(
  sessions: SessionStore,
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
    if (page.leafId !== leafId) throw wentOn(leafId);
    path = [...page.entries, ...path];
    if (!page.hasEarlier || isEnough(path, entryIds)) return path;
  }
}

/** With the entry before it all: that is where a new branch hangs. */
function isEnough(path: readonly Entry[], entryIds: readonly string[]): boolean {
  const places = new Map(path.map(({ id }, place) => [id, place]));
  const placeOf = (id: string) => places.get(id) ?? 0;
  const first = entryIds.reduce((least, id) => Math.min(least, placeOf(id)), path.length);
  return path.slice(first).every((entry) => placeOf(pointsAt(entry) ?? entry.id) > 0);
}

function wentOn(leafId: string | null): SkeinError {
  const problem = `The session went on: its leaf is no longer ${leafId ?? "before the root"}`;
  return new SkeinError("conflict", { problem, advice: decideAnew });
}

/** The labels that are on the originals now, for the copies. They stand behind what they are on, on whatever branch. */
async function labelsOn(
  sessions: SessionStore,
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
