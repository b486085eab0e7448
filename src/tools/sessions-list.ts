import { stringifyJson } from "../core/json.ts";
import type { SessionKind } from "../core/keys.ts";
import { present } from "../core/present.ts";
import * as s from "../core/schema.ts";
import { cutText, escapeToLine } from "../core/text.ts";
import { outputs } from "../protocol/tool-results.ts";
import type { App } from "../sessions/app.ts";
import type { ListedSession } from "../store/contract.ts";
import { namesOf } from "../store/list-query.ts";
import type { SessionTool } from "./contract.ts";
import { inTurns } from "./reading/in-turns.ts";
import { listQuery, readKinds, sessionKinds } from "./reading/list-query.ts";
import { listRows } from "./reading/list-rows.ts";
import type { RowMessages } from "./reading/row-messages.ts";
import { rowMessages } from "./reading/row-messages.ts";
import { indexingFor, scopeOf, visibilityFields } from "./reading/scope.ts";
import { ToolInputError } from "./tool-input-error.ts";

const text = (description: string) => s.optional(s.string({ description }));

const parameters = s.closed({
  kinds: s.optional(s.array(s.string(), { description: `Only these kinds: ${sessionKinds.join(", ")}.` })),
  limit: s.optional(
    s.integer({ description: "Sessions at the most.", minimum: 1, maximum: 200, default: 100 }),
  ),
  activeMinutes: s.optional(
    s.integer({ description: "Only those with a new entry in so many minutes.", minimum: 1 }),
  ),
  messageLimit: s.optional(
    s.integer({ description: "Last messages of each session.", minimum: 0, maximum: 20, default: 0 }),
  ),
  search: text("Only those with this text in key, session id, label or name."),
  label: text("Only the one with exactly this label."),
  agentId: text("Only those of this agent."),
  archived: s.optional(s.boolean({ description: "The archived ones instead.", default: false })),
  cursor: text("nextCursor of the page before."),
});

const fetchesAtATime = 4;
/** Of the messages of all rows together. */
const mostBytes = 200 * 1024;
const noRoom: RowMessages = {
  messagesError: "The messages have no room in the list. Read them with sessions_history, or ask for fewer.",
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
      indexing: indexingFor(call, page.behind),
      ...(await visibilityFields(call, "list", { scope, reach, queries: [query] }, app)),
    });
    return { result };
  },
};

/** Every row gets its share of the room: what small rows leave over goes to the large ones. */
async function withMessages(
  rows: Awaited<ReturnType<typeof listRows>>,
  fetch: (session: ListedSession) => Promise<RowMessages>,
): Promise<object[]> {
  const fetched = await inTurns(rows, fetchesAtATime, ({ session }) => fetch(session));
  const sizes = fetched.map((messages) => Buffer.byteLength(stringifyJson(messages)));
  const share = fairShare(sizes, mostBytes);
  return rows.map(({ row }, index) => {
    const messages = fetched[index] ?? noRoom;
    return { ...row, ...((sizes[index] ?? 0) <= share ? messages : newestWithin(messages, share)) };
  });
}

/** The most that each may have so that all together have no more than the room. */
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
  const messagesError = `Only the newest ${messages.length} of ${row.messages.length} messages have room in the list. Read the rest with sessions_history.`;
  return { messages, messagesError };
}

function kindsOf(words: readonly string[]): readonly SessionKind[] {
  const read = readKinds(words);
  if ("kinds" in read) return read.kinds;
  const shown = escapeToLine(cutText(read.unknown, 100));
  throw new ToolInputError(
    `"${shown}" is no kind of session. The kinds are ${sessionKinds.join(", ")}.`,
    "kinds",
  );
}

/** Whether what was looked for stands in what is shown: found in what is masked, it would confirm a guess at a secret. */
function isFoundOpenly(session: ListedSession, search: string | undefined, { redactor }: App): boolean {
  if (search === undefined) return true;
  const safe = (text: string | null | undefined) => redactor.redact(text ?? "").text;
  const { name, meta } = session;
  const shown = { ...meta, label: safe(meta.label), displayName: safe(meta.displayName) };
  return namesOf({ ...session, name: safe(name), meta: shown }).includes(search.toLowerCase());
}
