import type { Redactor } from "../access/redaction/redactor.ts";
import type { ParsedKey } from "../core/keys.ts";
import { parseKey } from "../core/keys.ts";
import { present } from "../core/present.ts";
import * as s from "../core/schema.ts";
import { cutText } from "../core/text.ts";
import { outputs } from "../protocol/tool-results.ts";
import type { App } from "../sessions/app.ts";
import type { Caller } from "../sessions/session-access.ts";
import type { ListedSession } from "../store/contract.ts";
import { channelOf, compareInList } from "../store/list-query.ts";
import type { SessionTool, ToolResult } from "./session-tool.ts";
import { indexingField, readVisibilityFields, scopeOf } from "./visible-scope.ts";

const parameters = s.closed({
  agentId: s.optional(s.string({ description: "Only this agent's sessions. Defaults to your own agent." })),
  limit: s.optional(
    s.integer({ description: "Maximum number of sessions.", minimum: 1, maximum: 200, default: 100 }),
  ),
});

/** Lists the agent's past conversations from the index, including archived sessions. */
export const sessionList: SessionTool = {
  name: "session_list",
  label: "Session List",
  description:
    "List the people and agents that this agent has talked with, newest first, with a summary of each session.",
  parameters,
  output: outputs.sessionList,
  isReadOnly: true,
  isRedacted: true,
  async execute(args, call, app) {
    const { agentId = call.agentId, limit = 100 } = args as s.Static<typeof parameters>;
    const scope = scopeOf(call, agentId);
    const reach = await app.access.reach(call, "list");
    const includeGlobal = app.config.session.scope === "global";
    const queries = [false, true].map((archived) => ({ archived, includeGlobal }));
    const pages = await Promise.all(
      queries.map((query) => app.store.sessions.list(scope, { ...query, reach, limit })),
    );
    const found = pages.flatMap((page) => page.sessions).toSorted(compareInList);
    const sessions = found.slice(0, limit).map((session) => rowOf(session, call, app));
    const behind = Math.max(...pages.map((page) => page.behind));
    const isMore = found.length > limit || pages.some((page) => page.nextCursor !== null);
    const result = present({
      count: sessions.length,
      sessions,
      more: isMore ? true : null,
      indexing: indexingField(call, behind),
      ...(await readVisibilityFields(call, "list", { scope, reach, queries }, app)),
    });
    return { result };
  },
};

function rowOf(session: ListedSession, call: Caller, { access, redactor }: App): ToolResult {
  const { key, sessionId, meta, name, digest, updatedAt } = session;
  const parsed = parseKey(key);
  const summary = name ?? meta.displayName ?? digest.summary;
  const texts = present({
    channel: channelOf(session),
    peer: peerOf(parsed) ?? meta.delivery?.to,
    label: meta.label,
  });
  return present({
    key: access.display(call, key),
    sessionId,
    ...(redactor.redactJson(texts).value as typeof texts),
    summary: summary === null ? null : cutSummary(summary, redactor),
    updatedAt,
  });
}

/** Returns the channel ID of the other side of the conversation. */
function peerOf(key: ParsedKey): string | null {
  if (key.form === "direct") return key.peer;
  return key.form === "group" ? key.groupId : null;
}

const longest = 200;

/**
 * Redacts text for one line in a list. A summary that ends in `…` has already been truncated and can end in an
 * unrecognizable part of a secret, so its last word is dropped.
 */
export function cutSummary(text: string, redactor: Pick<Redactor, "redact">): string {
  const whole = text.endsWith("…") ? `${text.slice(0, -1).replace(/[\x21-\x7e]+$/, "")}…` : text;
  const safe = redactor.redact(whole).text;
  return safe.length <= longest ? safe : `${cutText(safe, longest - 1)}…`;
}
