import Type from "typebox";
import { AccessActionSchema, AccessSchema } from "../access.ts";
import { AgentListSchema, ModelListSchema } from "../directory.ts";
import { closed, idempotencyKey, oneSession, reader, reference, user } from "../fields.ts";
import { BlobSchema } from "../session-details.ts";
import { method } from "./method.ts";

const longestPiece = 8 * 1024 * 1024;

export const agentsList = method({
  scope: "read",
  about: "Lists the agents, with what each may reach.",
  params: Type.Object(user, closed),
  result: AgentListSchema,
  isIdempotent: true,
});

export const modelsList = method({
  scope: "read",
  about: "Lists the models that can be asked.",
  params: Type.Object({}, closed),
  result: ModelListSchema,
  isIdempotent: true,
});

/** Any session may be taken as the asker: this tells of rules, and gives nothing that they would refuse. */
export const accessExplain = method({
  scope: "read",
  about: "Whether a session may do something with another, with every rule on the way.",
  params: Type.Object(
    { asker: reference, target: reference, action: Type.Optional(AccessActionSchema), ...reader },
    closed,
  ),
  result: AccessSchema,
  isIdempotent: true,
});

/** By a session, because blobs are kept by user and agent; in pieces, because one may be larger than a frame. */
export const blobsGet = method({
  scope: "read",
  about: "A large content by its hash, or a piece of it.",
  params: Type.Object(
    {
      ...oneSession,
      sha256: Type.String({ maxLength: 64, pattern: "^[0-9a-f]{64}$" }),
      offset: Type.Optional(Type.Integer({ minimum: 0, default: 0 })),
      length: Type.Optional(Type.Integer({ minimum: 1, maximum: longestPiece, default: longestPiece })),
    },
    closed,
  ),
  result: BlobSchema,
  isIdempotent: true,
});

/**
 * `rootId`: of what the call set off, for `runs.list`. A refusal of the tool is a result. Without a session: the agent's main one,
 * if it is there. A key that is new will do for session tools; those that set something off make its session.
 */
/** Those that wait for other sessions; what an agent's own tool is doing is work, and is not broken off. */
const waitingTools: readonly unknown[] = ["sessions_send", "sessions_spawn"];

export const toolsInvoke = method({
  scope: "tools",
  about: "Calls a tool exactly as an agent in that session would.",
  isLong: ({ name }) => waitingTools.includes(name),
  params: Type.Object(
    {
      sessionKey: Type.Optional(reference),
      ...reader,
      name: Type.String({ minLength: 1, maxLength: 128 }),
      /** As the tool's own schema says; checked by the tool. */
      arguments: Type.Optional(
        Type.Record(Type.String({ maxLength: 256 }), Type.Unknown(), { maxProperties: 256 }),
      ),
      idempotencyKey: Type.Optional(idempotencyKey),
    },
    closed,
  ),
  result: Type.Object(
    {
      name: Type.String(),
      isError: Type.Boolean(),
      result: Type.Unknown(),
      rootId: Type.Optional(Type.String()),
    },
    closed,
  ),
});
