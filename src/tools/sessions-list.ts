import type { Static } from "typebox";
import Type from "typebox";
import { stringifyJson } from "../core/json.ts";
import type { SessionKind } from "../core/keys.ts";
import { present } from "../core/present.ts";
import { cutText, escapeToLine } from "../core/text.ts";
import type { ListedSession, Scope, SessionQuery, SessionReach } from "../store/contract.ts";
import { namesOf } from "../store/listing.ts";
import type { SessionTool, ToolDeps } from "./contract.ts";
import { outputs } from "./outputs.ts";
import { listQuery, readKinds, sessionKinds } from "./reading/list-query.ts";
import { listRows } from "./reading/list-rows.ts";
import type { RowMessages } from "./reading/row-messages.ts";
import { rowMessages } from "./reading/row-messages.ts";
import { indexingFor, scopeOf } from "./reading/scope.ts";
import { ToolInputError } from "./tool-input-error.ts";

const text = (description: string) => Type.Optional(Type.String({ description }));

const parameters = Type.Object(
  {
    kinds: Type.Optional(
      Type.Array(Type.String(), { description: `Only these kinds: ${sessionKinds.join(", ")}.` }),
    ),
    limit: Type.Optional(
      Type.Integer({ description: "Sessions at the most.", minimum: 1, maximum: 200, default: 100 }),
    ),
    activeMinutes: Type.Optional(
      Type.Integer({ description: "Only those with a new entry in so many minutes.", minimum: 1 }),
    ),
    messageLimit: Type.Optional(
      Type.Integer({ description: "Last messages of each session.", minimum: 0, maximum: 20, default: 0 }),
    ),
    search: text("Only those with this text in key, session id, label or name."),
    label: text("Only the one with exactly this label."),
    agentId: text("Only those of this agent."),
    archived: Type.Optional(Type.Boolean({ description: "The archived ones instead.", default: false })),
    cursor: text("nextCursor of the page before."),
  },
  { additionalProperties: false },
);

const mostHidden = 1000;
const fetchesAtATime = 4;
/** Of the messages of all rows together. */
const mostBytes = 200 * 1024;
const tooMuch: RowMessages = {
  messagesError: "Left out: the list has enough messages. Read them with sessions_history, or ask for fewer.",
};

export const sessionsList: SessionTool = {
  name: "sessions_list",
  label: "Sessions",
  description: "List sessions with optional filters and last messages.",
  parameters: { ...parameters },
  output: outputs.sessionsList,
  isReadOnly: true,
  isRedacted: true,
  async execute(args, call, deps) {
    const { kinds = [], agentId, messageLimit = 0, ...filters } = args as Static<typeof parameters>;
    const now = deps.clock.now();
    const query = listQuery({ limit: 100, ...filters, kinds: kindsOf(kinds) }, { now, ...deps.settings });
    const scope = scopeOf(call, agentId);
    const reach = await deps.access.reach(call, "list");
    const page = await deps.store.sessions.list(scope, { ...query, reach });
    const found = page.sessions.filter((session) => isFoundOpenly(session, filters.search, deps));
    const rows = await listRows(call, { ...page, sessions: found }, reach, deps);
    const sessions =
      messageLimit === 0
        ? rows.map(({ row }) => row)
        : await withMessages(rows, (session) => rowMessages(call, session, messageLimit, deps));
    const { visibility, sandboxed } = deps.access.policyFor(call);
    const result = present({
      count: sessions.length,
      sessions,
      nextCursor: page.nextCursor,
      hidden: call.sandboxed ? null : await countHidden(scope, query, reach, deps),
      indexing: indexingFor(call, page.behind),
      visibility: { mode: visibility.list, sandboxed },
    });
    return { result };
  },
};

/** Four sessions at a time, newest first, until there is enough of it: a result is to stay one that a model can read. */
async function withMessages(
  rows: Awaited<ReturnType<typeof listRows>>,
  fetch: (session: ListedSession) => Promise<RowMessages>,
): Promise<object[]> {
  const shown: object[] = [];
  let left = mostBytes;
  for (let at = 0; at < rows.length; at += fetchesAtATime) {
    const some = rows.slice(at, at + fetchesAtATime);
    const fetched = await Promise.all(some.map(({ session }) => (left > 0 ? fetch(session) : tooMuch)));
    for (const [index, { row }] of some.entries()) {
      const messages = left > 0 ? (fetched[index] ?? tooMuch) : tooMuch;
      left -= Buffer.byteLength(stringifyJson(messages));
      shown.push({ ...row, ...(left >= 0 ? messages : tooMuch) });
    }
  }
  return shown;
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
function isFoundOpenly(session: ListedSession, search: string | undefined, { redactor }: ToolDeps): boolean {
  if (search === undefined) return true;
  const safe = (text: string | null | undefined) => redactor.redact(text ?? "").text;
  const { name, meta } = session;
  const shown = { ...meta, label: safe(meta.label), displayName: safe(meta.displayName) };
  return namesOf({ ...session, name: safe(name), meta: shown }).includes(search.toLowerCase());
}

/**
 * How many sessions of the asker's own user the policy left out, on all pages of this list. Names are not looked for in
 * them: a number that follows a guess at a name would spell it out.
 */
async function countHidden(
  scope: Scope,
  { text: _text, label: _label, ...query }: SessionQuery,
  reach: SessionReach,
  { store }: ToolDeps,
): Promise<number> {
  if (reach.agentIds === "all") return 0; // nothing is; two counts over all rows would say the same
  const [all, reached] = await Promise.all([
    store.sessions.count(scope, query),
    store.sessions.count(scope, { ...query, reach }),
  ]);
  return Math.min(mostHidden, Math.max(0, all - reached));
}
