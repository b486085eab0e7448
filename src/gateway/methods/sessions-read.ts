import { mapConcurrently } from "../../core/concurrency.ts";
import type { Entry } from "../../core/entries.ts";
import { lineOf } from "../../core/entries.ts";
import { SkeinError } from "../../core/errors.ts";
import { stringifyJson } from "../../core/json.ts";
import { present } from "../../core/present.ts";
import { keyOfReference } from "../../core/references.ts";
import type { Steps } from "../../core/slices.ts";
import { Slices } from "../../core/slices.ts";
import { cutText } from "../../core/text.ts";
import type { HistoryPayload } from "../../protocol/chat.ts";
import type { Params } from "../../protocol/method-table.ts";
import type { EntriesPayload, PreviewsPayload, WireEntry } from "../../protocol/session-details.ts";
import type { TreePayload } from "../../protocol/session-views.ts";
import type { CenteredPage, ReadPage } from "../../sessions/branch-pages.ts";
import {
  branchFields,
  checkBranchRange,
  openBranch,
  readCenter,
  readPageAround,
} from "../../sessions/branch-pages.ts";
import { isShown, messageOf } from "../../sessions/history.ts";
import { readHistory } from "../../sessions/history-range.ts";
import { previewOf, viewingTree } from "../../sessions/tree-view.ts";
import type { EntryPage, SessionRecord } from "../../store/contract.ts";
import { noSuchSession } from "../../store/rules.ts";
import { isToolMessage } from "../../tools/clean-messages.ts";
import type { Mask } from "../auth/mask.ts";
import { maskFor } from "../auth/mask.ts";
import type { Call, FolderApp, HandlersOf } from "./dispatch.ts";
import { PayloadCache } from "./payload-cache.ts";
import type { SessionName } from "./session-lookup.ts";
import { askerOf, findSession, lookUpSession, scopeOf } from "./session-lookup.ts";
import { contentBytes, readWholeTree } from "./sessions-export.ts";

type EntriesMethod = "sessions.preview" | "sessions.tree" | "sessions.entries";

/** The maximum size of a page of entries. A single entry can be as large as a frame. */
const pageBytes = 8 * 1024 * 1024;
/** The number of entries that a preview considers. */
const previewed = 200;
const previewedBytes = 4 * 1024 * 1024;
/** The maximum number of characters per entry in a tree. */
const treeChars = 200;
const readsAtATime = 8;
/** An armored private key is the longest secret. */
const longestSecret = 16_384;
const previewedBlocks = 20;

/** Methods that return trees, entries and previews. */
export function entriesHandlers(app: FolderApp): HandlersOf<EntriesMethod> {
  return {
    "sessions.tree": async (params, call) => {
      const { limit, after } = params;
      const session = await findSession(app, call, params);
      const mask = maskFor(app, call);
      const tree = await readWholeTree(app, session, call.signal);
      const viewAs = mask.isOff ? undefined : (entry: Entry) => mask.value(beginningOf(entry, treeChars));
      const range = present({ viewAs, limit, after });
      const slices = new Slices(call.signal);
      return slices.run(maskedTree(await slices.run(viewingTree(tree, session.key, range)), mask));
    },
    "sessions.entries": async (params, call) => {
      checkBranchRange(params);
      const session = await findSession(app, call, params);
      const { key, sessionId } = session;
      const mask = maskFor(app, call);
      const entries = await readEntries(app, params, call, session, mask);
      return { key, sessionId, ...entries, ...(mask.hasMasked ? { redacted: true } : {}) };
    },
    "sessions.preview": async ({ keys, agentId, limit = 12, maxChars = 240 }, call) => {
      const named = [...new Set(keys)];
      const found = await mapConcurrently(named, readsAtATime, (key) =>
        previewFor(app, call, { key, agentId }, { limit, maxChars }),
      );
      const byKey = new Map(found.map((each) => [each.key, each]));
      return { previews: keys.flatMap((key) => byKey.get(key) ?? []) };
    },
  };
}

/** Also masks names and labels, because users write them, and diagnostics, because they can quote the file. */
function* maskedTree(view: TreePayload, mask: Mask): Steps<TreePayload> {
  if (mask.isOff) return view;
  const { name, diagnostics } = view;
  const entries: TreePayload["entries"] = [];
  for (const row of view.entries) {
    const label = row.label === undefined ? null : mask.text(row.label);
    entries.push({ ...row, preview: mask.text(row.preview), ...present({ label }) });
    yield row.preview.length;
  }
  return {
    ...view,
    ...present({ name: name === undefined ? null : mask.text(name) }),
    entries,
    ...present({ diagnostics: diagnostics?.map((each) => ({ ...each, note: mask.text(each.note) })) }),
  };
}

type EntriesPart = Pick<EntriesPayload, "leafId" | "entries" | "hasEarlier" | "hasLater">;

async function readEntries(
  { store }: FolderApp,
  { along, before, after, around, leafId, limit = 200 }: Params<"sessions.entries">,
  call: Call,
  session: SessionRecord,
  mask: Mask,
): Promise<EntriesPart & Pick<EntriesPayload, "branchLeafId">> {
  const scope = scopeOf(call);
  const { sessionId } = session;
  const slices = new Slices(call.signal);
  const inLogOrder: ReadPage = async (bounds, count) =>
    (await store.sessions.page(scope, sessionId, {
      along: "all",
      ...bounds,
      limit: count,
      bytes: pageBytes,
    })) ?? noSuchSession(sessionId);
  const branch =
    along === "all"
      ? { read: inLogOrder, lastId: null }
      : await openBranch(store, scope, session, { leafId, around });
  if (around === undefined) {
    const page = await branch.read(present({ before, after }), limit);
    return { ...(await slices.run(entriesWithin(page, after !== undefined, mask))), ...branchFields(branch) };
  }
  const center = await readCenter(store, scope, sessionId, around);
  const page = await readPageAround(branch.read, center, limit);
  return { ...(await slices.run(entriesAround(page, mask))), ...branchFields(branch) };
}

/** Each side is limited to half a page so that the entry in the middle is always included. */
function* entriesAround(page: CenteredPage, mask: Mask): Steps<EntriesPart> {
  const { entries, earlierCount } = page;
  const half = pageBytes / 2;
  const later = yield* entriesWithin({ ...page, entries: entries.slice(earlierCount) }, true, mask, half);
  const earlier = yield* entriesWithin(
    { ...page, entries: entries.slice(0, earlierCount) },
    false,
    mask,
    half,
  );
  return { ...later, entries: [...earlier.entries, ...later.entries], hasEarlier: earlier.hasEarlier };
}

/** Returns as many entries as fit on a page, starting at the requested end. Returns at least one. */
function* entriesWithin(page: EntryPage, forward: boolean, mask: Mask, most = pageBytes): Steps<EntriesPart> {
  const kept: WireEntry[] = [];
  let bytes = 0;
  for (const entry of forward ? page.entries : page.entries.toReversed()) {
    const shown = mask.value(lineOf(entry));
    const size = Buffer.byteLength(stringifyJson(shown));
    if (size > contentBytes) throw tooLarge(`Entry ${entry.id}`);
    bytes += size;
    if (bytes > most && kept.length > 0) break;
    kept.push(shown as unknown as WireEntry);
    yield size;
  }
  const isCut = kept.length < page.entries.length;
  return {
    leafId: page.leafId,
    entries: forward ? kept : kept.reverse(),
    hasEarlier: page.hasEarlier || (isCut && !forward),
    hasLater: page.hasLater || (isCut && forward),
  };
}

function tooLarge(what: string): SkeinError {
  return new SkeinError("too_large", { what });
}

/** A session that cannot be read does not cause the other previews to fail. */
async function previewFor(
  app: FolderApp,
  call: Call,
  named: SessionName & { readonly key: string },
  { limit, maxChars }: { readonly limit: number; readonly maxChars: number },
): Promise<PreviewsPayload["previews"][number]> {
  const { key } = named;
  try {
    const session = await lookUpSession(app, call, named);
    const range = { along: "branch", limit: previewed, bytes: previewedBytes } as const;
    const page =
      session === null ? null : await app.store.sessions.page(scopeOf(call), session.sessionId, range);
    if (page === null) return { key, status: "missing", items: [] };
    const items = itemsOf(page.entries, { limit, maxChars }, maskFor(app, call));
    await new Slices(call.signal).turn();
    return { key, status: items.length === 0 ? "empty" : "ok", items };
  } catch (error) {
    if (!(error instanceof SkeinError)) throw error;
    return { key, status: "error", items: [] };
  }
}

function itemsOf(
  entries: readonly Entry[],
  { limit, maxChars }: { readonly limit: number; readonly maxChars: number },
  mask: Mask,
): PreviewsPayload["previews"][number]["items"] {
  const items = [];
  for (const entry of entries.toReversed()) {
    if (items.length === limit) break;
    if (!isShown(entry)) continue;
    const message = messageOf(entry);
    if (isToolMessage(message as unknown as Readonly<Record<string, unknown>>)) continue;
    const text = mask.text(previewOf(mask.value(beginningOf(withoutCalls(entry), maxChars)), maxChars));
    if (text !== "") items.push({ id: entry.id, role: message.role, text });
  }
  return items.reverse();
}

/** Truncates long text before masking it, but keeps enough extra text that no secret in the preview is cut in half. */
function beginningOf(entry: Entry, maxChars: number): Entry {
  const most = 4 * maxChars + longestSecret;
  const cut = (value: unknown, depth = 0): unknown => {
    if (typeof value === "string") return cutText(value, most);
    if (typeof value !== "object" || value === null || depth > 8) return value;
    if (Array.isArray(value)) return value.slice(0, previewedBlocks).map((each) => cut(each, depth + 1));
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, cut(each, depth + 1)]));
  };
  return cut(entry) as Entry;
}

/** Returns an answer without its tool calls. */
function withoutCalls(entry: Entry): Entry {
  if (entry.type !== "message" || entry.message.role !== "assistant") return entry;
  const { message } = entry;
  const content = message.content.filter(({ type }) => type !== "toolCall");
  return { ...entry, message: { ...message, content } };
}

/** Values that change only together with the session's row. */
type Found = Pick<SessionRecord, "uid" | "key" | "sessionId" | "userId">;
type HistoryParams = Params<"chat.history">;

/** The maximum number of cached pages. */
const mostPages = 1000;
const mostText = 16 * 1024 * 1024;

/**
 * Methods that return pages of messages. A page is cached until a process changes the folder's sessions or runs, or the
 * session's log. Both are checked on every call.
 */
export function historyHandlers(app: FolderApp): HandlersOf<"chat.history"> {
  const sessions = new PayloadCache<Found>({ most: mostPages });
  const pages = new PayloadCache<HistoryPayload>({ most: mostPages, mostText });
  return {
    "chat.history": async (params, call) => {
      const { upkeep } = app.store;
      const work = upkeep?.workMark() ?? null;
      const logMark = (session: Found) => upkeep?.logMark(session) ?? null;
      const look = () => sessionFor(app, params, call);
      if (work === null) return pageFor(app, params, call, await look());
      const name = JSON.stringify([params, call.userId, call.isAdmin]);
      const session = await (isOfKey(params) ? sessions.get(name, work, look) : look());
      const log = logMark(session);
      // Sessions that have not been read recently are not cached.
      if (log === null) return pageFor(app, params, call, session);
      const find = () => pageFor(app, params, call, session);
      return pages.get(name, `${work} ${log}`, find, () => `${work} ${logMark(session)}`);
    },
  };
}

/**
 * Whether the session is named by key. Keys are resolved from the database. Any other reference might match a file that
 * has not been indexed yet.
 */
function isOfKey({ sessionKey }: HistoryParams): boolean {
  return sessionKey === "main" || sessionKey.includes(":");
}

/** Like `findSession`, but does not read the log if the session is named by key. */
async function sessionFor(app: FolderApp, params: HistoryParams, call: Call): Promise<Found> {
  const key = keyOfReference(params.sessionKey, askerOf(app, params));
  const found = key === null ? null : await app.runs.read(() => app.store.work.find(call.userId, { key }));
  return found ?? findSession(app, call, params);
}

async function pageFor(
  app: FolderApp,
  { limit, before, after, around, leafId }: HistoryParams,
  call: Call,
  session: Found,
): Promise<HistoryPayload> {
  const mask = maskFor(app, call);
  const range = present({ limit, before, after, around, leafId });
  const pending = await app.runs.pending(session.uid);
  const seen = <T extends object>(value: T) => mask.value(value);
  return readHistory(app.store, scopeOf(call), session, range, pending, seen);
}
