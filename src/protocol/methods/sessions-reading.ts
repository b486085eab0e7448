import * as s from "../../core/schema.ts";
import {
  agentId,
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

const flag = s.optional(s.boolean());
const words = s.string({ minLength: 1, maxLength: 1000 });

export const sessionsList = method({
  scope: "read",
  about: "Lists sessions, the last active first, from the index alone.",
  params: s.closed({
    limit: limit(1000, 100),
    cursor: s.optional(s.string({ minLength: 1, maxLength: 1000 })),
    activeMinutes: s.optional(s.integer({ minimum: 1, maximum: 5_256_000 })),
    includeGlobal: flag,
    includeUnknown: flag,
    spawnedBy: s.optional(reference),
    agentId: s.optional(agentId),
    kinds: s.optional(few(kind, 6)),
    label: s.optional(label),
    search: s.optional(words),
    archived: flag,
    /** Rows with how each began, and for admins where it works. */
    includeDetails: flag,
    ...user,
    ...everyUser,
  }),
  result: SessionListSchema,
  adminOnly: ["allUsers"],
  isIdempotent: true,
});

/** Not in the table of methods that this follows: whoever may restore and purge must be able to see what. */
export const sessionsTrash = method({
  scope: "read",
  about: "Lists what is in the trash, the last removed first.",
  params: s.closed({ agentId: s.optional(agentId), ...user }),
  result: TrashListSchema,
  isIdempotent: true,
});

export const sessionsGet = method({
  scope: "read",
  about: "Everything that is known of a session beside its entries.",
  params: s.closed(oneSession),
  result: SessionDetailsSchema,
  isIdempotent: true,
});

/** `prefix`: a unique beginning of a session id will do, which people type and programs do not. */
export const sessionsResolve = method({
  scope: "read",
  about: "Finds the session that a key, a session id or a label means.",
  params: s.closed(
    {
      key: s.optional(reference),
      sessionId: s.optional(sessionId),
      label: s.optional(label),
      spawnedBy: s.optional(reference),
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
  params: s.closed({
    keys: s.array(reference, { minItems: 1, maxItems: 64 }),
    limit: limit(50, 12),
    maxChars: s.optional(s.integer({ minimum: 20, maximum: 2000, default: 240 })),
    ...reader,
  }),
  result: PreviewsSchema,
  isIdempotent: true,
});

/** In pages, by the order of the log: a tree may be larger than a frame. */
export const sessionsTree = method({
  scope: "read",
  about: "Every entry of a session with its place in the tree, on all branches.",
  params: s.closed({ ...oneSession, limit: limit(10_000, 5000), after: s.optional(id) }),
  result: TreeSchema,
  isIdempotent: true,
});

/** Whole entries, for whoever draws or compares branches; `chat.history` is what people read. */
export const sessionsEntries = method({
  scope: "read",
  about: "A page of a session's entries, along the active branch or in the order of the log.",
  params: s.closed({
    ...oneSession,
    along: s.optional(s.choice(["branch", "all"], { default: "branch" })),
    before: s.optional(id),
    after: s.optional(id),
    limit: limit(1000, 200),
  }),
  result: EntriesSchema,
  isIdempotent: true,
});

/** One table that is grouped as asked, instead of a method for each chart; without `by`, the total alone. */
export const sessionsUsage = method({
  scope: "read",
  about: "What was spent, by day, model and agent.",
  params: s.closed({
    since: s.optional(time),
    until: s.optional(time),
    by: s.optional(s.array(s.choice(["day", "model", "agent"]), { maxItems: 3, uniqueItems: true })),
    /** An IANA name, for where days begin. Left out: the gateway's. */
    timeZone: s.optional(s.string({ minLength: 1, maxLength: 64 })),
    key: s.optional(reference),
    ...reader,
  }),
  result: UsageReportSchema,
  isIdempotent: true,
});

export const sessionsSearch = method({
  scope: "read",
  about: "Full text over whole sessions, tool results too; the best first.",
  params: s.closed({
    query: words,
    key: s.optional(reference),
    role: s.optional(s.string({ minLength: 1, maxLength: 64 })),
    since: s.optional(time),
    until: s.optional(time),
    limit: limit(50, 10),
    ...reader,
  }),
  result: SearchSchema,
  isIdempotent: true,
});

export const sessionsContext = method({
  scope: "read",
  about: "What a model would be sent from where a session stands, and every change on the way.",
  params: s.closed({
    ...oneSession,
    model: s.optional(model),
    /** Of a server that the configuration does not know. Nothing is sent there. */
    baseUrl: s.optional(s.string({ maxLength: 2048, pattern: "^https?://[^\\s/]\\S*$" })),
    wire: flag,
  }),
  result: ContextPayloadSchema,
  isIdempotent: true,
});

/** The text itself, in one answer; what does not fit into a frame is `too_large`. */
export const sessionsExport = method({
  scope: "read",
  about: "A session as JSONL, Markdown or one HTML page.",
  params: s.closed({
    ...oneSession,
    format: s.optional(s.choice(["jsonl", "md", "html"], { default: "jsonl" })),
    /** Of Markdown, every branch instead of the active one. */
    all: flag,
  }),
  result: ExportSchema,
  isIdempotent: true,
});
