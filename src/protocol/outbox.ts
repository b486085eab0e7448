import * as s from "../core/schema.ts";
import { everyUser, few, id, limit, user } from "./fields.ts";
import { method } from "./method.ts";
import { optionalText, optionalTime, runSession } from "./runs.ts";

/** The destination of a message on a channel. */
export const OutboxTargetSchema = s.closed({
  channel: s.string(),
  to: optionalText,
  accountId: optionalText,
  threadId: optionalText,
});

/** A message to a channel. `outbox.retry` and `outbox.drop` return the changed message. */
export const OutboxRowSchema = s.closed({
  outboxId: s.string(),
  ...runSession,
  runId: optionalText,
  target: OutboxTargetSchema,
  text: s.string(),
  state: s.choice(["queued", "delivered", "dead", "dropped"]),
  attempts: s.integer(),
  createdAt: s.integer(),
  /** The time of the next delivery attempt. */
  nextAt: optionalTime,
  endedAt: optionalTime,
  lastError: optionalText,
  receipt: s.optional(s.unknown()),
  /** The app that provides the channel. */
  app: optionalText,
  /** `true` if the message is waiting for a process that provides its channel. */
  waitsForChannel: s.optional(s.boolean()),
});
export type OutboxRowPayload = s.Static<typeof OutboxRowSchema>;

/** `outbox.list`: newest first. */
export const OutboxListSchema = s.closed({ count: s.integer(), messages: s.array(OutboxRowSchema) });
export type OutboxListPayload = s.Static<typeof OutboxListSchema>;

const outboxState = s.choice(["queued", "delivered", "dead", "dropped"]);

/** With `outboxId`, returns only that message. */
export const outboxList = method({
  scope: "read",
  about: "Lists outgoing messages to channels, newest first.",
  params: s.closed({
    outboxId: s.optional(id),
    states: s.optional(few(outboxState, 4)),
    limit: limit(1000, 100),
    ...user,
    ...everyUser,
  }),
  result: OutboxListSchema,
  adminOnly: ["allUsers"],
  isIdempotent: true,
});

export const outboxRetry = method({
  scope: "write",
  about: "Retries delivery of a dead message.",
  params: s.closed({ outboxId: id, ...user }),
  result: OutboxRowSchema,
});

export const outboxDrop = method({
  scope: "write",
  about: "Discards a message without delivering it.",
  params: s.closed({ outboxId: id, ...user }),
  result: OutboxRowSchema,
  isIdempotent: true,
  isDestructive: true,
});
