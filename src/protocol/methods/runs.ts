import * as s from "../../core/schema.ts";
import { everyUser, few, id, limit, reader, reference, sentence, user } from "../fields.ts";
import {
  AbortedSchema,
  ApprovalListSchema,
  ApprovalSchema,
  OutboxListSchema,
  OutboxRowSchema,
  ReleasedSchema,
  RetriedSchema,
  RunListSchema,
  RunSchema,
  RunStateSchema,
} from "../runs.ts";
import { method } from "./method.ts";

const outboxState = s.choice(["queued", "delivered", "dead", "dropped"]);

/** `rootId`: one request and all that it set off, for whoever waits until that has ended. */
export const runsList = method({
  scope: "read",
  about: "Lists runs, the last accepted first, and the approvals that are open.",
  params: s.closed({
    states: s.optional(few(RunStateSchema, 9)),
    sessionKey: s.optional(reference),
    rootId: s.optional(id),
    startedBy: s.optional(id),
    /** `true`: only lost runs whose input waits for `runs.retry`. */
    lost: s.optional(s.boolean({ default: false })),
    /** `true`: only queued runs that wait for an app. */
    waitsForApp: s.optional(s.boolean({ default: false })),
    limit: limit(500, 50),
    before: s.optional(s.integer({ minimum: 0 })),
    ...reader,
    ...everyUser,
  }),
  result: RunListSchema,
  adminOnly: ["allUsers"],
  isIdempotent: true,
});

export const runsGet = method({
  scope: "read",
  about: "One run, and every approval that it asked for.",
  params: s.closed({ runId: id, ...user }),
  result: RunSchema,
  isIdempotent: true,
});

export const runsAbort = method({
  scope: "write",
  about: "Ends a run; its owner may be yet to hear of it.",
  params: s.closed({ runId: id, reason: s.optional(sentence), ...user }),
  result: AbortedSchema,
  isIdempotent: true,
});

/** The same run again gives the same retry. */
export const runsRetry = method({
  scope: "write",
  about: "Queues the input of a lost run again.",
  params: s.closed({ runId: id, ...user }),
  result: RetriedSchema,
  isIdempotent: true,
});

export const runsRelease = method({
  scope: "admin",
  about: "Lets any process that has the agent run what waits for an app.",
  params: s.closed({ runId: id, ...user }),
  result: ReleasedSchema,
  isIdempotent: true,
});

/** `open: false`: those that were answered too. Newest first. */
export const approvalsList = method({
  scope: "read",
  about: "Lists tool calls that wait for an approval.",
  params: s.closed({
    runId: s.optional(id),
    sessionKey: s.optional(reference),
    open: s.optional(s.boolean({ default: true })),
    limit: limit(500, 100),
    ...reader,
    ...everyUser,
  }),
  result: ApprovalListSchema,
  adminOnly: ["allUsers"],
  isIdempotent: true,
});

export const approvalsResolve = method({
  scope: "write",
  about: "Lets a tool call happen, or does not. The first answer stands.",
  params: s.closed({ approvalId: id, answer: s.choice(["approved", "denied"]), ...user }),
  result: ApprovalSchema,
  isIdempotent: true,
});

/** `outboxId`: this one alone, or none. */
export const outboxList = method({
  scope: "read",
  about: "Lists messages on their way to channels, the last first.",
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
  about: "Sends a message that was given up once more.",
  params: s.closed({ outboxId: id, ...user }),
  result: OutboxRowSchema,
});

export const outboxDrop = method({
  scope: "write",
  about: "Gives a message up.",
  params: s.closed({ outboxId: id, ...user }),
  result: OutboxRowSchema,
  isIdempotent: true,
  isDestructive: true,
});
