import * as s from "../core/schema.ts";
import { oneSession } from "./fields.ts";
import { method } from "./method.ts";
import { RunStateSchema } from "./runs.ts";
import { KindSchema, StatusSchema } from "./session-list.ts";

/** A session's family: the sessions connected to it by spawns, forks or messages, and when each of them was active. */

const optionalText = s.optional(s.string());
const optionalTime = s.optional(s.integer());

/**
 * `sessions.family`. A new member is announced by `session.created` (children and forks) or by `run.queued` with
 * `startedBy` (messages to other sessions). Other changes are announced by `session.updated`, `session.deleted` and
 * `run.ended`.
 */
export const FamilySchema = s.closed({
  /** The session that all members except partners descend from. */
  rootKey: s.string(),
  /** The root comes first. The others are sorted by creation time. Archived sessions are included. */
  nodes: s.array(
    s.closed({
      key: s.string(),
      sessionId: s.string(),
      agentId: s.string(),
      kind: KindSchema,
      label: optionalText,
      displayName: optionalText,
      /** The session that spawned this one, if the parent is in the family. */
      parentKey: optionalText,
      /** The session that this one was forked from, if the source is in the family. */
      forkOf: optionalText,
      /** `true` if the session exchanged messages with a member, but was neither spawned nor forked in this family. */
      isPartner: s.optional(s.boolean()),
      createdAt: s.integer(),
      updatedAt: s.integer(),
      status: s.optional(StatusSchema),
    }),
  ),
  /**
   * The runs of all sessions, oldest first. A partner's runs are included only if they belong to a message to or from
   * a member, or are waiting.
   */
  spans: s.array(
    s.closed({
      runId: s.string(),
      key: s.string(),
      state: RunStateSchema,
      createdAt: s.integer(),
      startedAt: optionalTime,
      endedAt: optionalTime,
      preview: s.string(),
    }),
  ),
  /** Messages, spawns and forks from one session to another, oldest first. */
  edges: s.array(
    s.closed({
      kind: s.choice(["spawn", "send", "reply", "announce", "fork"]),
      fromKey: s.string(),
      /** The message with the tool call, the last entry of the answer, or the entry that was forked from. */
      fromEntryId: optionalText,
      toKey: s.string(),
      /** The entry in the target session. Absent until it has been written. */
      toEntryId: optionalText,
      /** The run that the message started. If a tool call was waiting for the message, the run that sent it. */
      runId: optionalText,
      at: s.integer(),
      preview: s.string(),
    }),
  ),
  /**
   * `true` if the response contains only the most recently active part of a larger family, or if the index is not up to
   * date.
   */
  truncated: s.boolean(),
});
export type FamilyPayload = s.Static<typeof FamilySchema>;
export type FamilyEdge = FamilyPayload["edges"][number];

export const sessionsFamily = method({
  scope: "read",
  about: "Returns a session's family: its members, their runs, and the messages between them.",
  params: s.closed(oneSession),
  result: FamilySchema,
  isIdempotent: true,
});
