import * as s from "../../core/schema.ts";
import { AccessActionSchema, AccessSchema } from "../access.ts";
import { AgentListSchema, ModelListSchema } from "../directory.ts";
import { idempotencyKey, oneSession, reader, reference, user } from "../fields.ts";
import { BlobSchema } from "../session-details.ts";
import { method } from "./method.ts";

const longestPiece = 8 * 1024 * 1024;

export const agentsList = method({
  scope: "read",
  about: "Lists the agents, with what each may reach.",
  params: s.closed(user),
  result: AgentListSchema,
  isIdempotent: true,
});

export const modelsList = method({
  scope: "read",
  about: "Lists the models that can be asked.",
  params: s.closed({}),
  result: ModelListSchema,
  isIdempotent: true,
});

/** Any session may be taken as the asker: this tells of rules, and gives nothing that they would refuse. */
export const accessExplain = method({
  scope: "read",
  about: "Whether a session may do something with another, with every rule on the way.",
  params: s.closed({
    asker: reference,
    target: reference,
    action: s.optional(AccessActionSchema),
    ...reader,
  }),
  result: AccessSchema,
  isIdempotent: true,
});

/** By a session, because blobs are kept by user and agent; in pieces, because one may be larger than a frame. */
export const blobsGet = method({
  scope: "read",
  about: "A large content by its hash, or a piece of it.",
  params: s.closed({
    ...oneSession,
    sha256: s.string({ maxLength: 64, pattern: "^[0-9a-f]{64}$" }),
    offset: s.optional(s.integer({ minimum: 0, default: 0 })),
    length: s.optional(s.integer({ minimum: 1, maximum: longestPiece, default: longestPiece })),
  }),
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
  params: s.closed({
    sessionKey: s.optional(reference),
    ...reader,
    name: s.string({ minLength: 1, maxLength: 128 }),
    /** As the tool's own schema says; checked by the tool. */
    arguments: s.optional(s.record(s.unknown(), { maxProperties: 256 })),
    idempotencyKey: s.optional(idempotencyKey),
  }),
  result: s.closed({
    name: s.string(),
    isError: s.boolean(),
    result: s.unknown(),
    rootId: s.optional(s.string()),
  }),
});
