import Type from "typebox";
import {
  agentId,
  closed,
  everyUser,
  exactlyOne,
  few,
  id,
  kind,
  label,
  limit,
  model,
  oneSession,
  reader,
  reference,
  sessionId,
  time,
  user,
} from "../fields.ts";
import { ExportSchema } from "../interchange.ts";
import {
  EntriesSchema,
  PreviewsSchema,
  ResolvedSchema,
  SessionDetailsSchema,
  UsageReportSchema,
} from "../session-details.ts";
import { SearchSchema, SessionListSchema, TrashListSchema } from "../session-list.ts";
import { ContextPayloadSchema, TreeSchema } from "../session-payloads.ts";
import { method } from "./method.ts";

const flag = Type.Optional(Type.Boolean());
const words = Type.String({ minLength: 1, maxLength: 1000 });

export const sessionsList = method({
  scope: "read",
  about: "Lists sessions, the last active first, from the index alone.",
  params: Type.Object(
    {
      limit: limit(1000, 100),
      cursor: Type.Optional(Type.String({ minLength: 1, maxLength: 1000 })),
      activeMinutes: Type.Optional(Type.Integer({ minimum: 1, maximum: 5_256_000 })),
      includeGlobal: flag,
      includeUnknown: flag,
      spawnedBy: Type.Optional(reference),
      agentId: Type.Optional(agentId),
      kinds: Type.Optional(few(kind, 6)),
      label: Type.Optional(label),
      search: Type.Optional(words),
      archived: flag,
      /** Rows with how each began, and for admins where it works. */
      includeDetails: flag,
      ...user,
      ...everyUser,
    },
    closed,
  ),
  result: SessionListSchema,
  adminOnly: ["allUsers"],
  isIdempotent: true,
});

/** Not in the table of methods that this follows: whoever may restore and purge must be able to see what. */
export const sessionsTrash = method({
  scope: "read",
  about: "Lists what is in the trash, the last removed first.",
  params: Type.Object({ agentId: Type.Optional(agentId), ...user }, closed),
  result: TrashListSchema,
  isIdempotent: true,
});

export const sessionsGet = method({
  scope: "read",
  about: "Everything that is known of a session beside its entries.",
  params: Type.Object(oneSession, closed),
  result: SessionDetailsSchema,
  isIdempotent: true,
});

/** `prefix`: a unique beginning of a session id will do, which people type and programs do not. */
export const sessionsResolve = method({
  scope: "read",
  about: "Finds the session that a key, a session id or a label means.",
  params: Type.Object(
    {
      key: Type.Optional(reference),
      sessionId: Type.Optional(sessionId),
      label: Type.Optional(label),
      spawnedBy: Type.Optional(reference),
      prefix: flag,
      ...reader,
    },
    exactlyOne("key", "sessionId", "label"),
  ),
  result: ResolvedSchema,
  isIdempotent: true,
});

/** The last texts of many sessions at once, for lists: tool messages left out, each text one line. */
export const sessionsPreview = method({
  scope: "read",
  about: "The last messages of several sessions, in short.",
  params: Type.Object(
    {
      keys: Type.Array(reference, { minItems: 1, maxItems: 64 }),
      limit: limit(50, 12),
      maxChars: Type.Optional(Type.Integer({ minimum: 20, maximum: 2000, default: 240 })),
      ...reader,
    },
    closed,
  ),
  result: PreviewsSchema,
  isIdempotent: true,
});

/** In pages, by the order of the log: a tree may be larger than a frame. */
export const sessionsTree = method({
  scope: "read",
  about: "Every entry of a session with its place in the tree, on all branches.",
  params: Type.Object({ ...oneSession, limit: limit(10_000, 5000), after: Type.Optional(id) }, closed),
  result: TreeSchema,
  isIdempotent: true,
});

/** Whole entries, for whoever draws or compares branches; `chat.history` is what people read. */
export const sessionsEntries = method({
  scope: "read",
  about: "A page of a session's entries, along the active branch or in the order of the log.",
  params: Type.Object(
    {
      ...oneSession,
      along: Type.Optional(Type.Enum(["branch", "all"], { default: "branch" })),
      before: Type.Optional(id),
      after: Type.Optional(id),
      limit: limit(1000, 200),
    },
    closed,
  ),
  result: EntriesSchema,
  isIdempotent: true,
});

/** One table that is grouped as asked, instead of a method for each chart; without `by`, the total alone. */
export const sessionsUsage = method({
  scope: "read",
  about: "What was spent, by day, model and agent.",
  params: Type.Object(
    {
      since: Type.Optional(time),
      until: Type.Optional(time),
      by: Type.Optional(Type.Array(Type.Enum(["day", "model", "agent"]), { maxItems: 3, uniqueItems: true })),
      /** An IANA name, for where days begin. Left out: the gateway's. */
      timeZone: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })),
      key: Type.Optional(reference),
      ...reader,
    },
    closed,
  ),
  result: UsageReportSchema,
  isIdempotent: true,
});

export const sessionsSearch = method({
  scope: "read",
  about: "Full text over whole sessions, tool results too; the best first.",
  params: Type.Object(
    {
      query: words,
      key: Type.Optional(reference),
      role: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })),
      since: Type.Optional(time),
      until: Type.Optional(time),
      limit: limit(50, 10),
      ...reader,
    },
    closed,
  ),
  result: SearchSchema,
  isIdempotent: true,
});

export const sessionsContext = method({
  scope: "read",
  about: "What a model would be sent from where a session stands, and every change on the way.",
  params: Type.Object(
    {
      ...oneSession,
      model: Type.Optional(model),
      /** Of a server that the configuration does not know. Nothing is sent there. */
      baseUrl: Type.Optional(Type.String({ maxLength: 2048, pattern: "^https?://[^\\s/]\\S*$" })),
      wire: flag,
    },
    closed,
  ),
  result: ContextPayloadSchema,
  isIdempotent: true,
});

/** The text itself, in one answer; what does not fit into a frame is `too_large`. */
export const sessionsExport = method({
  scope: "read",
  about: "A session as JSONL, Markdown or one HTML page.",
  params: Type.Object(
    {
      ...oneSession,
      format: Type.Optional(Type.Enum(["jsonl", "md", "html"], { default: "jsonl" })),
      /** Of Markdown, every branch instead of the active one. */
      all: flag,
    },
    closed,
  ),
  result: ExportSchema,
  isIdempotent: true,
});
