import type { SkeinEvent, SkeinEventType } from "../core/events.ts";

export type LogLevel = "trace" | "debug" | "info" | "warn" | "error";

interface Line<T extends SkeinEventType> {
  readonly level: LogLevel | ((event: SkeinEvent<T>) => LogLevel);
  readonly text: string;
  /** What the line says beside whose it is: names and figures, never what was said or what a tool was given. */
  readonly fields?: (event: SkeinEvent<T>) => Readonly<Record<string, unknown>>;
}

/** What is logged, and how loud; `null`: never. A new event has to have its row here. */
export const logTable: { readonly [T in SkeinEventType]: Line<T> | null } = {
  "run.queued": {
    level: "debug",
    text: "run queued",
    fields: ({ lane, kind, startedBy }) => ({ lane, kind, startedBy }),
  },
  "run.started": {
    level: "info",
    text: "run started",
    fields: ({ attempt, model, startedBy }) => ({ attempt, model, startedBy }),
  },
  "run.step": {
    level: "debug",
    text: "model step",
    fields: ({ phase, step, provider, model, usage, finishReason, code }) => ({
      ...{ phase, step, provider, model, finishReason, code },
      tokens: usage && { input: usage.input, output: usage.output },
    }),
  },
  "run.delta": null,
  "run.tool": {
    level: "debug",
    text: "tool",
    fields: ({ phase, toolName, toolCallId, isError, durationMs }) => ({
      ...{ phase, toolName, toolCallId, isError, durationMs },
    }),
  },
  "run.retry": {
    level: "info",
    text: "model is asked again",
    fields: ({ attempt, delayMs, code, error }) => ({ attempt, delayMs, error: { code, message: error } }),
  },
  "run.note": {
    level: ({ kind }) => (kind === "image_to_blob" ? "debug" : "warn"),
    text: "message changed",
    fields: ({ kind, note }) => ({ kind, note }),
  },
  "run.compaction": {
    level: ({ phase }) => (phase === "not_done" ? "warn" : phase === "done" ? "info" : "debug"),
    text: "compaction",
    fields: ({ phase, measure, note, entryId, freedTokens }) => ({
      phase,
      measure,
      note,
      entryId,
      freedTokens,
    }),
  },
  "run.waiting": {
    level: "debug",
    text: "run waits",
    fields: (event) => ({ for: event.for, runIds: event.runIds }),
  },
  "run.resumed": { level: "debug", text: "run has waited, and goes on" },
  "run.steered": {
    level: "debug",
    text: "input went into a running turn",
    fields: ({ mergedInto }) => ({ mergedInto }),
  },
  "run.sleeping": {
    level: "debug",
    text: "run sleeps",
    fields: ({ waitingFor, wakeAt }) => ({ waitingFor, wakeAt }),
  },
  "run.ended": {
    level: ({ state }) => (state === "error" || state === "timeout" ? "warn" : "info"),
    text: "run ended",
    fields: ({ state, code, error, mergedInto }) => ({
      ...{ state, mergedInto },
      error: code === null && error === null ? undefined : { code, message: error },
    }),
  },
  "run.recovered": {
    level: "warn",
    text: "run taken up whose owner was lost",
    fields: ({ attempt, action }) => ({ attempt, action }),
  },
  "run.child": {
    level: "debug",
    text: "child run",
    fields: ({ childSessionKey, childRunId, state }) => ({ childSessionKey, childRunId, state }),
  },
  "entry.appended": {
    level: "trace",
    text: "entry appended",
    fields: ({ entry }) => ({ entryId: entry.id, entryType: entry.type }),
  },
  "session.created": { level: "info", text: "session created" },
  "session.updated": { level: "debug", text: "session updated" },
  "session.reset": {
    level: "info",
    text: "session reset",
    fields: ({ freshSessionId }) => ({ freshSessionId }),
  },
  "session.archived": { level: "info", text: "session archived" },
  "session.deleted": { level: "info", text: "session deleted" },
  "session.restored": { level: "info", text: "session restored" },
  "outbox.queued": {
    level: "debug",
    text: "message to a channel queued",
    fields: ({ outboxId, channel }) => ({ outboxId, channel }),
  },
  "outbox.delivered": {
    level: "info",
    text: "message delivered to a channel",
    fields: ({ outboxId, channel }) => ({ outboxId, channel }),
  },
  "outbox.retry": {
    level: "warn",
    text: "message to a channel not delivered, tried again",
    fields: ({ outboxId, channel, nextAt, error }) => ({
      ...{ outboxId, channel, nextAt },
      error: { message: error },
    }),
  },
  "outbox.dead": {
    level: "error",
    text: "message to a channel given up",
    fields: ({ outboxId, channel, error }) => ({ outboxId, channel, error: { message: error } }),
  },
  "approval.requested": {
    level: "info",
    text: "approval asked for",
    fields: ({ approvalId, toolCallId, toolName, expiresAt }) => ({
      ...{ approvalId, toolCallId, toolName, expiresAt },
    }),
  },
  "approval.resolved": {
    level: "info",
    text: "approval answered",
    fields: ({ approvalId, answer, by }) => ({ approvalId, answer, by }),
  },
};

/** The level of an event's line; `null`: it has none. */
export function levelOf(event: SkeinEvent): LogLevel | null {
  const line = lineOf(event.type);
  return line === null ? null : typeof line.level === "function" ? line.level(event) : line.level;
}

export function textAndFields(event: SkeinEvent): { text: string; fields: Record<string, unknown> } {
  const line = lineOf(event.type);
  return { text: line?.text ?? event.type, fields: { ...line?.fields?.(event) } };
}

/** A row is only ever given events of its own type. */
function lineOf(type: SkeinEventType): Line<SkeinEventType> | null {
  return logTable[type] as Line<SkeinEventType> | null;
}
