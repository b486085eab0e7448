import type { Redactor } from "../access/redaction/redactor.ts";
import type { Entry } from "../core/entries.ts";
import { isRecord } from "../core/is-record.ts";
import { present } from "../core/present.ts";
import * as s from "../core/schema.ts";
import { cutText, escapeToLine } from "../core/text.ts";
import { outputs } from "../protocol/tool-results.ts";
import type { SearchQuery } from "../store/contract.ts";
import { entryText } from "../store/search-text.ts";
import { isBinary } from "./clean-messages.ts";
import type { SessionTool } from "./session-tool.ts";
import { ToolInputError } from "./session-tool.ts";
import { indexingField, readVisibilityFields, scopeOf, toRefusalResult } from "./visible-scope.ts";

const time = (description: string) => s.optional(s.union([s.number(), s.string()], { description }));

const parameters = s.closed({
  query: s.string({
    description: "Words to search for, or a question. Entries that contain all words come first.",
    minLength: 1,
  }),
  sessionKey: s.optional(s.string({ description: "Search only this session." })),
  agentId: s.optional(s.string({ description: "Search only this agent's sessions." })),
  role: s.optional(
    s.choice(["user", "assistant", "toolResult", "bashExecution", "custom", "system", "summary"], {
      description: "Only messages with this role.",
    }),
  ),
  since: time("Only messages since this time, as an ISO 8601 string or in milliseconds since 1970."),
  until: time("Only messages until this time."),
  limit: s.optional(
    s.integer({ description: "Maximum number of results.", minimum: 1, maximum: 50, default: 10 }),
  ),
});

export const sessionSearch: SessionTool = {
  name: "session_search",
  label: "Session Search",
  description: "Search the full text of sessions, including tool results.",
  parameters,
  output: outputs.sessionSearch,
  isReadOnly: true,
  isRedacted: true,
  async execute(args, call, app) {
    const {
      query,
      sessionKey,
      agentId,
      role,
      since,
      until,
      limit = 10,
    } = args as s.Static<typeof parameters>;
    if (query.trim() === "") throw new ToolInputError("query is required: the words to search for.", "query");
    const times = { since: timeOf(since, "since"), until: timeOf(until, "until") };
    const scope = scopeOf(call, agentId);
    const found = sessionKey === undefined ? null : await app.access.find(call, sessionKey, "history");
    if (found !== null && "refusal" in found) return { result: toRefusalResult(found.refusal) };
    if (found !== null && scope.agentId !== undefined && found.session.agentId !== scope.agentId)
      throw new ToolInputError(
        "The session in sessionKey does not belong to the agent in agentId. Omit one of them.",
        "agentId",
      );
    const within =
      found === null
        ? { reach: await app.access.reach(call, "history") }
        : { sessionId: found.session.sessionId };
    const includeGlobal = app.config.session.scope === "global";
    const queries = [false, true].map((archived) => ({ archived, includeGlobal }));
    const asked = { ...maskedSearch(query, app.redactor), ...within, ...present({ role, ...times }), limit };
    const { hits, behind } = await app.store.search.search(scope, asked);
    const result = present({
      count: hits.length,
      hits: hits.map(({ key, sessionId, entryId, role: by, time: at, snippet }) => ({
        key: app.access.display(call, key),
        sessionId,
        entryId,
        role: by,
        time: at,
        snippet,
      })),
      indexing: indexingField(call, behind),
      ...(await readVisibilityFields(call, "history", { scope, reach: within.reach, queries }, app)),
    });
    return { result };
  },
};

function timeOf(value: string | number | undefined, name: string): number | null {
  if (value === undefined) return null;
  const read = readTime(value);
  if (read !== null) return read;
  const shown = escapeToLine(cutText(String(value), 100));
  throw new ToolInputError(
    `${name} is not a valid time: "${shown}". Use an ISO 8601 string (2026-03-29 or 2026-03-29T14:40:00Z) or milliseconds since 1970.`,
    name,
  );
}

/**
 * Returns a search that masks secrets for its reader. An entry's full text is masked before the snippet is extracted,
 * because a snippet could contain only half of a secret.
 */
export function maskedSearch(query: string, redactor: Redactor): Pick<SearchQuery, "text" | "shownText"> {
  return {
    text: withoutSecrets(query, redactor),
    shownText: (entry) => {
      // Redacted first by field name and then as joined text.
      const found = entryText(redactor.redactJson(withTexts(entry)).value as Entry);
      return found === null ? null : redactor.redact(found.text).text;
    },
  };
}

/** Drops words that are part of a secret, because a match would confirm a guess. */
function withoutSecrets(query: string, redactor: Redactor): string {
  const { text, count } = redactor.redact(query);
  if (count === 0) return query;
  const shown = new Set(text.split(/\s+/));
  return query
    .split(/\s+/)
    .filter((word) => shown.has(word))
    .join(" ");
}

/** Returns the entry without image data and tool details, which are not searchable and can be large. */
function withTexts(entry: Entry): object {
  if (entry.type !== "message") return { ...entry, details: null };
  const { content } = entry.message as { readonly content?: unknown };
  const blocks = Array.isArray(content)
    ? content.map((block) => (isRecord(block) && isBinary(block) ? { ...block, data: "" } : block))
    : content;
  return { ...entry, message: { ...entry.message, content: blocks ?? null, details: null } };
}

const iso = /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(Z|[+-]\d{2}:?\d{2})?)?$/i;

/**
 * Parses milliseconds since 1970 or an ISO 8601 string, which is in UTC unless it names a zone. Returns `null` for
 * anything else.
 */
export function readTime(value: string | number): number | null {
  if (typeof value === "number") return Number.isFinite(value) ? Math.floor(value) : null;
  const [whole, zone] = iso.exec(value.trim()) ?? [];
  if (whole === undefined) return null;
  const text = whole.length > 10 && zone === undefined ? `${whole}Z` : whole;
  const time = Date.parse(text.replace(" ", "T"));
  return Number.isNaN(time) ? null : time;
}
