import type { Entry } from "../core/entries.ts";
import type { SkeinEvent } from "../core/events.ts";
import { present } from "../core/present.ts";
import * as s from "../core/schema.ts";
import { count, few, id, reader, reference, time } from "./fields.ts";
import { method } from "./method.ts";
import { WireEntrySchema } from "./session-details.ts";

/**
 * All events as they are sent over the wire. The frame contains the event's name. `null` fields are omitted. A client
 * receives the events for the sessions that it is allowed to read and the gateway's own events.
 */

/**
 * An event of the gateway itself. It does not belong to a session, so it must not name anything that only some users
 * are allowed to see.
 */
export interface GatewayEvent {
  readonly type: "gateway.reloaded";
  readonly at: number;
  /** The changed sections of the configuration, such as `agents`. */
  readonly settings: readonly string[];
}

export type WireEvent = SkeinEvent | GatewayEvent;
export type WireEventType = WireEvent["type"];

const about = {
  at: time,
  /** Sent only to tokens for all users. */
  userId: s.optional(s.string()),
  sessionKey: s.string(),
  sessionId: s.string(),
  runId: s.optional(s.string()),
};

const text = s.string();
const maybeText = s.optional(s.string());
const texts = s.array(s.string());
const record = s.record(s.unknown());

/** How a field is redacted for non-admins: as one value, or as part of a stream. */
export type FieldRedaction = "whole" | "stream";

export interface EventKind<P extends s.Schema = s.Schema> {
  readonly payload: P;
  /** `true` if the event can be dropped for a slow reader. The reader then receives a `gap`. */
  readonly isLossy?: true;
  readonly redacted: Readonly<Record<string, FieldRedaction>>;
}

interface Treatment {
  readonly redacted?: Readonly<Record<string, FieldRedaction>>;
  readonly isLossy?: true;
}

function kindOf<F extends s.Fields>(fields: F, { redacted = {}, isLossy }: Treatment = {}) {
  const payload = s.closed({ ...about, ...fields });
  return { payload, redacted, ...(isLossy === undefined ? {} : { isLossy }) };
}

const ofOutbox = { outboxId: text, channel: text };
const whole = (...fields: readonly string[]) => ({
  redacted: Object.fromEntries(fields.map((field) => [field, "whole" as const])),
});

const runEvents = {
  "run.queued": kindOf({ lane: text, kind: text, startedBy: maybeText }),
  "run.started": kindOf({
    attempt: count,
    model: maybeText,
    lane: maybeText,
    queuedMs: s.optional(s.number({ minimum: 0 })),
    startedBy: maybeText,
    agentId: maybeText,
  }),
  "run.step": kindOf(
    {
      phase: s.choice(["asked", "answered"]),
      step: count,
      provider: text,
      model: text,
      usage: s.optional(record),
      finishReason: maybeText,
      code: maybeText,
      error: maybeText,
    },
    whole("error"),
  ),
  "run.delta": kindOf(
    { kind: s.choice(["text", "thinking"]), delta: text, step: count, offset: count },
    { redacted: { delta: "stream" }, isLossy: true },
  ),
  "run.tool": kindOf(
    {
      phase: s.choice(["call", "result"]),
      toolCallId: text,
      toolName: text,
      arguments: s.optional(record),
      isError: s.optional(s.boolean()),
      content: s.optional(s.array(s.unknown())),
      durationMs: s.optional(s.number({ minimum: 0 })),
    },
    whole("arguments", "content"),
  ),
  "run.retry": kindOf(
    { attempt: count, delayMs: s.number({ minimum: 0 }), code: text, error: text },
    whole("error"),
  ),
  "run.note": kindOf({ kind: text, note: text }, whole("note")),
  "run.compaction": kindOf(
    {
      phase: s.choice(["started", "done", "not_done"]),
      measure: text,
      note: maybeText,
      entryId: maybeText,
      freedTokens: s.optional(count),
    },
    whole("note"),
  ),
  "run.waiting": kindOf({ for: s.choice(["run", "approval"]), runIds: s.optional(texts) }),
  "run.resumed": kindOf({}),
  "run.steered": kindOf({ mergedInto: text }),
  "run.sleeping": kindOf({ waitingFor: texts, wakeAt: time }),
  "run.ended": kindOf(
    {
      state: s.choice(["ok", "error", "timeout", "aborted", "merged"]),
      code: maybeText,
      error: maybeText,
      lane: maybeText,
      durationMs: s.optional(s.number({ minimum: 0 })),
      mergedInto: maybeText,
    },
    whole("error"),
  ),
  "run.recovered": kindOf({ attempt: count, action: text }),
  "run.child": kindOf({ childSessionKey: text, childRunId: text, state: text }),
} as const;

const otherEvents = {
  "entry.appended": kindOf({ entry: WireEntrySchema }, whole("entry")),
  "session.created": kindOf({}),
  "session.updated": kindOf({ isRedacted: s.optional(s.literal(true)) }),
  "session.reset": kindOf({ freshSessionId: text }),
  "session.archived": kindOf({}),
  "session.deleted": kindOf({}),
  "session.restored": kindOf({}),
  "outbox.queued": kindOf(ofOutbox),
  "outbox.delivered": kindOf(ofOutbox),
  "outbox.retry": kindOf({ ...ofOutbox, nextAt: time, error: text }, whole("error")),
  "outbox.dead": kindOf({ ...ofOutbox, error: text }, whole("error")),
  "outbox.dropped": kindOf(ofOutbox),
  "approval.requested": kindOf(
    { approvalId: text, toolCallId: text, toolName: text, arguments: record, expiresAt: time },
    whole("arguments"),
  ),
  "approval.resolved": kindOf({
    approvalId: text,
    answer: s.choice(["approved", "denied", "expired"]),
    by: maybeText,
  }),
} as const;

const gatewayEvents = {
  "gateway.reloaded": { payload: s.closed({ at: time, settings: texts }), redacted: {} },
} as const;

/** The type is exhaustive, so adding an event without a row is a compile error. */
export const eventTable = { ...runEvents, ...otherEvents, ...gatewayEvents } satisfies Record<
  WireEventType,
  EventKind
>;

export const eventNames = Object.keys(eventTable) as WireEventType[];

/** The patterns that a subscription accepts: an event's name, or all events of a kind such as `run.*`. */
export const eventPatterns = [
  ...[...new Set(eventNames.map((name) => `${name.split(".")[0]}.*`))],
  ...eventNames,
] as const;

export type EventPayload<T extends WireEventType> = s.Static<(typeof eventTable)[T]["payload"]>;

/** The client that receives an event, with the redaction that applies to non-admins. */
export interface EventReader {
  readonly isAdmin: boolean;
  readonly allUsers: boolean;
  redact(value: unknown): unknown;
  /** Returns the part of a streamed chunk that can already be shown, and its offset in the redacted stream. */
  redactDelta(event: SkeinEvent<"run.delta">): Pick<SkeinEvent<"run.delta">, "delta" | "offset">;
}

/** Returns an event's payload in the form that one reader is allowed to see. */
export function eventPayload(event: WireEvent, reader: EventReader): Readonly<Record<string, unknown>> {
  const { type, ...fields } = event;
  const payload: Record<string, unknown> = present(reader.allUsers ? fields : { ...fields, userId: null });
  if (event.type === "entry.appended") payload.entry = entryLine(event.entry);
  if (reader.isAdmin) return payload;
  for (const field of Object.keys(eventTable[type].redacted)) {
    if (payload[field] !== undefined) payload[field] = reader.redact(payload[field]);
  }
  if (event.type === "run.delta") Object.assign(payload, reader.redactDelta(event));
  return payload;
}

/** Returns an entry as it appears in the session file. An invalid entry is returned unchanged. */
export function entryLine(entry: Entry): object {
  return entry.type === "opaque" ? entry.original : entry;
}

/** Whether a subscription to these patterns includes an event. An empty list matches all events. */
export function isWanted(name: WireEventType, patterns: readonly string[] | undefined): boolean {
  if (patterns === undefined || patterns.length === 0) return true;
  return patterns.includes(name) || patterns.includes(`${name.split(".")[0]}.*`);
}

/** The filters for subscriptions and for `/events`. */
export const eventFilter = {
  /**
   * Only events from these sessions. By default, events from all sessions that the token can see and from the gateway
   * itself.
   */
  keys: s.optional(few(reference, 100)),
  /** Only events that match these patterns. */
  events: s.optional(few(s.choice([...eventPatterns]), 64)),
  ...reader,
};

/** With `after`, events since that position are replayed first, preceded by a `gap` if some are no longer available. */
export const sessionsSubscribe = method({
  scope: "read",
  about: "Subscribes this socket to events, starting now or at a given position.",
  params: s.closed({ ...eventFilter, after: s.optional(count) }),
  result: s.closed({
    subscriptionId: s.string(),
    /** The last event before the subscription. */
    seq: count,
    /** The canonical keys of the requested sessions. */
    keys: s.optional(s.array(s.string())),
  }),
  isSocketOnly: true,
});

export const sessionsUnsubscribe = method({
  scope: "read",
  about: "Cancels one of this socket's subscriptions.",
  params: s.closed({ subscriptionId: id }),
  result: s.closed({ subscriptionId: s.string(), wasOpen: s.boolean() }),
  isIdempotent: true,
  isSocketOnly: true,
});
