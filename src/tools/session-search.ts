import { readTime } from "../core/clock.ts";
import { present } from "../core/present.ts";
import * as s from "../core/schema.ts";
import { cutText, escapeToLine } from "../core/text.ts";
import { outputs } from "../protocol/tool-results.ts";
import { maskedSearch } from "../sessions/masked-search.ts";
import { findHits } from "../sessions/search-sessions.ts";
import type { SessionTool } from "./session-tool.ts";
import { ToolInputError } from "./session-tool.ts";
import { indexingField, readVisibilityFields, scopeOf, toRefusalResult } from "./visible-scope.ts";

const time = (description: string) => s.optional(s.union([s.number(), s.string()], { description }));

const parameters = s.closed({
  query: s.string({
    description:
      'Words to search for, or a question in a sentence. Entries that contain all words come first. "Quoted words" must occur exactly; -word must not occur.',
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
  until: time("Only messages up to this time."),
  bySession: s.optional(s.boolean({ description: "Return only the best match in each session." })),
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
      bySession,
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
    const asked = {
      ...maskedSearch(query, app.redactor),
      ...within,
      ...present({ role, ...times, bySession }),
      limit,
    };
    const { hits, behind } = await findHits(app, scope, asked);
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
