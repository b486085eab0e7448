import { present } from "../core/present.ts";
import * as s from "../core/schema.ts";
import { cutText, escapeToLine } from "../core/text.ts";
import { outputs } from "../protocol/tool-results.ts";
import type { SessionTool } from "./contract.ts";
import { maskedSearch } from "./reading/masked-search.ts";
import { readTime } from "./reading/read-time.ts";
import { indexingFor, refusalResult, scopeOf, visibilityFields } from "./reading/scope.ts";
import { ToolInputError } from "./tool-input-error.ts";

const time = (description: string) => s.optional(s.union([s.number(), s.string()], { description }));

const parameters = s.closed({
  query: s.string({
    description: "Words to look for, or a question. Entries with all words come first.",
    minLength: 1,
  }),
  sessionKey: s.optional(s.string({ description: "Only in this session." })),
  agentId: s.optional(s.string({ description: "Only in sessions of this agent." })),
  role: s.optional(
    s.choice(["user", "assistant", "toolResult", "bashExecution", "custom", "system", "summary"], {
      description: "Only what this role said.",
    }),
  ),
  since: time("Only from this time on: ISO text, or milliseconds since 1970."),
  until: time("Only up to this time."),
  limit: s.optional(s.integer({ description: "Hits at the most.", minimum: 1, maximum: 50, default: 10 })),
});

export const sessionSearch: SessionTool = {
  name: "session_search",
  label: "Session Search",
  description: "Search the full text of sessions, tool results too.",
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
    if (query.trim() === "") throw new ToolInputError("query is required: the words to look for.", "query");
    const times = { since: timeOf(since, "since"), until: timeOf(until, "until") };
    const scope = scopeOf(call, agentId);
    const found = sessionKey === undefined ? null : await app.access.find(call, sessionKey, "history");
    if (found !== null && "refusal" in found) return { result: refusalResult(found.refusal) };
    if (found !== null && scope.agentId !== undefined && found.session.agentId !== scope.agentId)
      throw new ToolInputError(
        "sessionKey names a session of another agent than agentId. Leave one of them out.",
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
      indexing: indexingFor(call, behind),
      ...(await visibilityFields(call, "history", { scope, reach: within.reach, queries }, app)),
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
    `${name} is no time: "${shown}". Write it as ISO text (2026-03-29 or 2026-03-29T14:40:00Z) or in milliseconds since 1970.`,
    name,
  );
}
