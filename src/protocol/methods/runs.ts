import Type from "typebox";
import { closed, everyUser, few, id, limit, reader, reference, sentence, user } from "../fields.ts";
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

const outboxState = Type.Enum(["queued", "delivered", "dead", "dropped"]);

/** `rootId`: one request and all that it set off, for whoever waits until that has ended. */
export const runsList = method({
  scope: "read",
  about: "Lists runs, the last accepted first, and the approvals that are open.",
  params: Type.Object(
    {
      states: Type.Optional(few(RunStateSchema, 9)),
      sessionKey: Type.Optional(reference),
      rootId: Type.Optional(id),
      startedBy: Type.Optional(id),
      /** `true`: only lost runs whose input waits for `runs.retry`. */
      lost: Type.Optional(Type.Boolean({ default: false })),
      /** `true`: only queued runs that wait for an app. */
      waitsForApp: Type.Optional(Type.Boolean({ default: false })),
      limit: limit(500, 50),
      before: Type.Optional(Type.Integer({ minimum: 0 })),
      ...reader,
      ...everyUser,
    },
    closed,
  ),
  result: RunListSchema,
  adminOnly: ["allUsers"],
  isIdempotent: true,
});

export const runsGet = method({
  scope: "read",
  about: "One run, and every approval that it asked for.",
  params: Type.Object({ runId: id, ...user }, closed),
  result: RunSchema,
  isIdempotent: true,
});

export const runsAbort = method({
  scope: "write",
  about: "Ends a run; its owner may be yet to hear of it.",
  params: Type.Object({ runId: id, reason: Type.Optional(sentence), ...user }, closed),
  result: AbortedSchema,
  isIdempotent: true,
});

/** The same run again gives the same retry. */
export const runsRetry = method({
  scope: "write",
  about: "Queues the input of a lost run again.",
  params: Type.Object({ runId: id, ...user }, closed),
  result: RetriedSchema,
  isIdempotent: true,
});

export const runsRelease = method({
  scope: "admin",
  about: "Lets any process that has the agent run what waits for an app.",
  params: Type.Object({ runId: id, ...user }, closed),
  result: ReleasedSchema,
  isIdempotent: true,
});

/** `open: false`: those that were answered too. Newest first. */
export const approvalsList = method({
  scope: "read",
  about: "Lists tool calls that wait for an approval.",
  params: Type.Object(
    {
      runId: Type.Optional(id),
      sessionKey: Type.Optional(reference),
      open: Type.Optional(Type.Boolean({ default: true })),
      limit: limit(500, 100),
      ...reader,
      ...everyUser,
    },
    closed,
  ),
  result: ApprovalListSchema,
  adminOnly: ["allUsers"],
  isIdempotent: true,
});

export const approvalsResolve = method({
  scope: "write",
  about: "Lets a tool call happen, or does not. The first answer stands.",
  params: Type.Object({ approvalId: id, answer: Type.Enum(["approved", "denied"]), ...user }, closed),
  result: ApprovalSchema,
  isIdempotent: true,
});

/** `outboxId`: this one alone, or none. */
export const outboxList = method({
  scope: "read",
  about: "Lists messages on their way to channels, the last first.",
  params: Type.Object(
    {
      outboxId: Type.Optional(id),
      states: Type.Optional(few(outboxState, 4)),
      limit: limit(1000, 100),
      ...user,
      ...everyUser,
    },
    closed,
  ),
  result: OutboxListSchema,
  adminOnly: ["allUsers"],
  isIdempotent: true,
});

export const outboxRetry = method({
  scope: "write",
  about: "Sends a message that was given up once more.",
  params: Type.Object({ outboxId: id, ...user }, closed),
  result: OutboxRowSchema,
});

export const outboxDrop = method({
  scope: "write",
  about: "Gives a message up.",
  params: Type.Object({ outboxId: id, ...user }, closed),
  result: OutboxRowSchema,
  isIdempotent: true,
  isDestructive: true,
});
