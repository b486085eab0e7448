import type { Redactor } from "../access/redaction/redactor.ts";
import { mapConcurrently } from "../core/concurrency.ts";
import { SkeinError } from "../core/errors.ts";
import { stringifyJson } from "../core/json.ts";
import type { SessionKind } from "../core/keys.ts";
import { present } from "../core/present.ts";
import * as s from "../core/schema.ts";
import { Slices } from "../core/slices.ts";
import { cutText, escapeToLine } from "../core/text.ts";
import type { SessionRow } from "../protocol/session-list.ts";
import { outputs } from "../protocol/tool-results.ts";
import type { App } from "../sessions/app.ts";
import { readHistoryRange } from "../sessions/history-range.ts";
import { childrenOf, listRow } from "../sessions/list.ts";
import type { Asker, Caller } from "../sessions/session-access.ts";
import type {
  ListedSession,
  SessionPage,
  SessionQuery,
  SessionReach,
  SessionRecord,
} from "../store/contract.ts";
import { namesOf } from "../store/list-query.ts";
import { capMessagesInSteps, createEntryReader } from "./clean-messages.ts";
import type { SessionTool } from "./session-tool.ts";
import { ToolInputError } from "./session-tool.ts";
import { indexingField, readVisibilityFields, scopeOf } from "./visible-scope.ts";

const sessionKinds: readonly SessionKind[] = ["main", "group", "cron", "hook", "node", "other"];

const text = (description: string) => s.optional(s.string({ description }));

const parameters = s.closed({
  kinds: s.optional(s.array(s.string(), { description: `Only these kinds: ${sessionKinds.join(", ")}.` })),
  limit: s.optional(
    s.integer({ description: "Maximum number of sessions.", minimum: 1, maximum: 200, default: 100 }),
  ),
  activeMinutes: s.optional(
    s.integer({ description: "Only sessions with a new entry within this many minutes.", minimum: 1 }),
  ),
  messageLimit: s.optional(
    s.integer({
      description: "Number of most recent messages to show for each session.",
      minimum: 0,
      maximum: 20,
      default: 0,
    }),
  ),
  search: text("Only sessions with this text in their key, session ID, label or name."),
  label: text("Only the session with exactly this label."),
  agentId: text("Only this agent's sessions."),
  archived: s.optional(s.boolean({ description: "List archived sessions instead.", default: false })),
  cursor: text("The nextCursor from the previous page."),
});

const maxConcurrentReads = 4;
/** The limit for the messages in all rows combined. */
const maxBytes = 200 * 1024;
const noRoom: RowMessages = {
  messagesError: "The messages do not fit in the list. Read them with sessions_history, or request fewer.",
};

export const sessionsList: SessionTool = {
  name: "sessions_list",
  label: "Sessions",
  description: "List sessions with optional filters and last messages.",
  parameters,
  output: outputs.sessionsList,
  isReadOnly: true,
  isRedacted: true,
  async execute(args, call, app) {
    const { kinds = [], agentId, messageLimit = 0, ...filters } = args as s.Static<typeof parameters>;
    const now = app.clock.now();
    const query = listQuery(
      { limit: 100, ...filters, kinds: kindsOf(kinds) },
      { now, scope: app.config.session.scope },
    );
    const scope = scopeOf(call, agentId);
    const reach = await app.access.reach(call, "list");
    const page = await app.store.sessions.list(scope, { ...query, reach });
    const found = page.sessions.filter((session) => isFoundOpenly(session, filters.search, app));
    const rows = await listRows(call, { ...page, sessions: found }, reach, app);
    const sessions =
      messageLimit === 0
        ? rows.map(({ row }) => row)
        : await withMessages(rows, (session) => rowMessages(call, session, messageLimit, app));
    const result = present({
      count: sessions.length,
      sessions,
      nextCursor: page.nextCursor,
      indexing: indexingField(call, page.behind),
      ...(await readVisibilityFields(call, "list", { scope, reach, queries: [query] }, app)),
    });
    return { result };
  },
};

/** Distributes the available bytes among the rows. Bytes that small rows do not use go to larger ones. */
async function withMessages(
  rows: Awaited<ReturnType<typeof listRows>>,
  fetch: (session: ListedSession) => Promise<RowMessages>,
): Promise<object[]> {
  const fetched = await mapConcurrently(rows, maxConcurrentReads, ({ session }) => fetch(session));
  const sizes = fetched.map((messages) => Buffer.byteLength(stringifyJson(messages)));
  const share = fairShare(sizes, maxBytes);
  return rows.map(({ row }, index) => {
    const messages = fetched[index] ?? noRoom;
    return { ...row, ...((sizes[index] ?? 0) <= share ? messages : newestWithin(messages, share)) };
  });
}

/** Returns the largest size per row at which all rows fit. */
function fairShare(sizes: readonly number[], room: number): number {
  let left = room;
  const sorted = sizes.toSorted((a, b) => a - b);
  for (const [index, size] of sorted.entries()) {
    const share = left / (sorted.length - index);
    if (size > share) return share;
    left -= size;
  }
  return room;
}

function newestWithin(row: RowMessages, share: number): RowMessages {
  if (row.messages === undefined) return noRoom;
  let size = 0;
  const from = row.messages.findLastIndex((message) => {
    size += Buffer.byteLength(stringifyJson(message)) + 1;
    return size > share;
  });
  const messages = row.messages.slice(from + 1);
  if (messages.length === 0) return noRoom;
  const messagesError = `Only the newest ${messages.length} of ${row.messages.length} messages fit in the list. Read the rest with sessions_history.`;
  return { messages, messagesError };
}

function kindsOf(words: readonly string[]): readonly SessionKind[] {
  const read = readKinds(words);
  if ("kinds" in read) return read.kinds;
  const shown = escapeToLine(cutText(read.unknown, 100));
  throw new ToolInputError(
    `"${shown}" is not a session kind. Use one of ${sessionKinds.join(", ")}.`,
    "kinds",
  );
}

/** Whether the search text occurs in the redacted names. A match in a masked part would confirm a guessed secret. */
function isFoundOpenly(session: ListedSession, search: string | undefined, { redactor }: App): boolean {
  if (search === undefined) return true;
  const safe = (text: string | null | undefined) => redactor.redact(text ?? "").text;
  const { name, meta } = session;
  const shown = { ...meta, label: safe(meta.label), displayName: safe(meta.displayName) };
  return namesOf({ ...session, name: safe(name), meta: shown }).includes(search.toLowerCase());
}

interface ListArguments {
  readonly kinds?: readonly SessionKind[];
  readonly activeMinutes?: number;
  readonly search?: string;
  readonly label?: string;
  readonly archived?: boolean;
  readonly limit?: number;
  readonly cursor?: string;
}

/** Returns the store query. It never matches sessions of kind `unknown`. */
function listQuery(
  args: ListArguments,
  { now, scope }: { readonly now: number; readonly scope: "per-sender" | "global" },
): SessionQuery {
  const { kinds, activeMinutes, search, label, archived, limit, cursor } = args;
  return present({
    kinds,
    text: search,
    label,
    archived,
    // Metadata changes are not activity.
    activeSince: activeMinutes === undefined ? null : now - activeMinutes * 60_000,
    includeGlobal: scope === "global" ? true : null,
    limit,
    cursor,
  });
}

/**
 * Returns the kinds in lowercase without duplicates. An empty list means no filter. If a word is not a kind, returns it
 * as `unknown`.
 */
export function readKinds(words: readonly string[]): { kinds: SessionKind[] } | { unknown: string } {
  const kinds = new Set<SessionKind>();
  for (const word of words) {
    const kind = sessionKinds.find((known) => known === word.trim().toLowerCase());
    if (kind === undefined) return { unknown: word };
    kinds.add(kind);
  }
  return { kinds: [...kinds] };
}

type ToolRow = Omit<SessionRow, "userId" | "cwd" | "summary">;

/**
 * Returns a page's rows as a caller is allowed to see them. Keys are short, and only parents and children that the
 * caller is allowed to list are included, so a row reveals nothing about other sessions.
 */
async function listRows(
  asker: Asker & Pick<Caller, "isOperator">,
  page: SessionPage,
  reach: SessionReach,
  app: App,
): Promise<{ readonly row: ToolRow; readonly session: ListedSession }[]> {
  const { store, runs, access } = app;
  const works = await runs.work(page.sessions.map(({ uid }) => uid));
  const parents = await visibleParents(asker, page.sessions, app);
  // If a store's index is behind, every list call spends time catching up. `behind` counts all sessions, so it must not
  // affect what a sandboxed caller sees.
  const withChildren = asker.sandboxed || page.behind === 0;
  const keys = withChildren ? page.sessions.map(({ key }) => key) : [];
  const children = await childrenOf(store.sessions, scopeOf(asker), keys, reach);
  const seesPaths = !asker.sandboxed && (app.config.tools.sessions.showPaths || asker.isOperator === true);
  const paths = seesPaths ? store.upkeep?.workingSets(page.sessions) : null;
  const rows = [];
  for (const session of page.sessions) {
    const { key, uid, meta } = session;
    const extras = {
      childSessions: (children.get(key) ?? []).map((child) => access.display(asker, child)),
      work: works.get(uid),
      transcriptPath: paths?.get(uid),
    };
    const listed = listRow(session, present(extras));
    const { userId: _userId, spawnedBy: _spawnedBy, state: _state, ...row } = listed;
    const parent = meta.spawnedBy !== undefined && parents.has(meta.spawnedBy) ? meta.spawnedBy : null;
    const names = present({
      key: access.display(asker, key),
      spawnedBy: parent === null ? null : access.display(asker, parent),
    });
    rows.push({ row: { ...safeTexts(row, app.redactor), ...names }, session });
  }
  return rows;
}

/** Returns the sessions' parents that the caller is allowed to list. */
async function visibleParents(
  asker: Asker,
  sessions: readonly ListedSession[],
  { store, access }: App,
): Promise<ReadonlySet<string>> {
  const visible = new Set(sessions.map(({ key }) => key));
  const parents = new Set(sessions.flatMap(({ meta }) => meta.spawnedBy ?? []));
  for (const key of parents) {
    if (visible.has(key)) continue;
    const [parent] = await store.sessions.find(scopeOf(asker), { by: "key", key });
    if (parent !== undefined && (await access.check(asker, parent, "list")) === null) visible.add(key);
  }
  return visible;
}

/** Redacts text written by users and programs. Keys, IDs and paths are kept. */
function safeTexts(row: ToolRow, redactor: Redactor): ToolRow {
  const { key, sessionId, childSessions, transcriptPath, ...texts } = row;
  const safe = redactor.redactJson(texts).value as typeof texts;
  return { key, ...safe, sessionId, ...present({ childSessions, transcriptPath }) };
}

/** The last messages in a row's session. */
interface RowMessages {
  readonly messages?: readonly Readonly<Record<string, unknown>>[];
  /** The error code if the caller is allowed to list the session but not to read it. */
  readonly messagesRefused?: string;
  readonly messagesError?: string;
}

/** Returns a session's last messages without tool messages. Never throws. An error becomes part of the row. */
async function rowMessages(
  asker: Asker,
  session: SessionRecord,
  limit: number,
  { access, store, redactor, report }: App,
): Promise<RowMessages> {
  try {
    const refusal = await access.check(asker, session, "history");
    if (refusal !== null) return { messagesRefused: refusal.code };
    const { isWanted, clean } = createEntryReader(redactor, false);
    const { sessionId } = session;
    const { entries } = await readHistoryRange(
      store.sessions,
      scopeOf(asker),
      sessionId,
      { limit },
      isWanted,
    );
    const { messages } = await new Slices().run(capMessagesInSteps(entries, clean));
    return { messages };
  } catch (error) {
    report(error);
    // Only the code is included, because the error's text can contain paths.
    const code = error instanceof SkeinError ? error.code : "internal";
    return { messagesError: `The messages could not be read (${code}); call sessions_history for details.` };
  }
}
