import { present } from "../core/present.ts";
import * as s from "../core/schema.ts";
import { Slices } from "../core/slices.ts";
import { outputs } from "../protocol/tool-results.ts";
import type { Run } from "../runs/contract.ts";
import type { App } from "../sessions/app.ts";
import { readHistoryRange } from "../sessions/history-range.ts";
import { capMessages, capMessagesInSteps, cleanMessage, createEntryReader } from "./clean-messages.ts";
import type { SessionTool, ToolResult } from "./session-tool.ts";
import { scopeOf, toRefusalResult } from "./visible-scope.ts";

const parameters = s.closed({
  sessionKey: s.string({
    description:
      'The key, session ID or label of the session, as shown by sessions_list; "current" is your own session.',
    minLength: 1,
  }),
  limit: s.optional(
    s.integer({ description: "Maximum number of messages.", minimum: 1, maximum: 1000, default: 200 }),
  ),
  includeTools: s.optional(
    s.boolean({ description: "Include tool calls and their results.", default: false }),
  ),
  before: s.optional(
    s.string({ description: "An entry ID (nextBefore). Returns the newest messages before it." }),
  ),
  after: s.optional(
    s.string({ description: "An entry ID (nextAfter). Returns the oldest messages after it." }),
  ),
});

/** The limit for pending input, in addition to the messages. */
const maxPendingBytes = 16 * 1024;

export const sessionsHistory: SessionTool = {
  name: "sessions_history",
  label: "Session History",
  description: "Fetch message history for a session.",
  parameters,
  output: outputs.sessionsHistory,
  isReadOnly: true,
  isRedacted: true,
  async execute(args, call, app) {
    const { sessionKey, limit = 200, includeTools = false, ...place } = args as s.Static<typeof parameters>;
    const found = await app.access.find(call, sessionKey, "history");
    if ("refusal" in found) return { result: toRefusalResult(found.refusal) };
    const { session } = found;
    // Read first, so that input written during the call appears twice instead of not at all.
    const pending = await app.runs.pending(session.uid);
    const reading = createEntryReader(app.redactor, includeTools);
    const { before, after } = place;
    const range = { limit, ...present({ before, after }) };
    const slice = await readHistoryRange(
      app.store.sessions,
      scopeOf(call),
      session.sessionId,
      range,
      reading.isWanted,
    );
    const { messages, taken, ...figures } = await new Slices(call.signal).run(
      capMessagesInSteps(slice.entries, reading.clean, { forward: after !== undefined }),
    );
    const [first, last] = [taken[0]?.id, taken.at(-1)?.id];
    const upTo = after === undefined ? undefined : before;
    const result = present({
      sessionKey: app.access.display(call, session.key),
      messages,
      ...figures,
      nextBefore: first !== undefined && (await slice.hasBefore(first)) ? first : null,
      nextAfter: last !== undefined && (await slice.hasAfter(last, upTo)) ? last : null,
      ...pendingOf(pending, app),
    });
    return { result };
  },
};

/** Returns pending input that is not in the conversation yet, oldest first. */
function pendingOf(runs: readonly Run[], { redactor }: App): ToolResult {
  if (runs.length === 0) return {};
  const clean = ({ runId, message, createdAt, state }: Run) => {
    const { role } = message;
    const content = "content" in message ? message.content : "";
    const fields = { runId, role, content, timestamp: createdAt, state };
    return cleanMessage(fields, { redactor, includeTools: true });
  };
  const { messages, taken, dropped } = capMessages(runs, clean, { forward: true, maxBytes: maxPendingBytes });
  const isReplaced = dropped === runs.length;
  return {
    pending: isReplaced ? taken.map(({ runId, state }) => ({ runId, ...messages[0], state })) : messages,
    ...(dropped === 0 ? {} : { pendingDropped: dropped }),
  };
}
