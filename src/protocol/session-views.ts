import * as s from "../core/schema.ts";
import { id, limit, model, oneSession } from "./fields.ts";
import { method } from "./method.ts";

/** The payloads that session commands print with `--json`. The gateway methods with the same names also return them. */

export const DiagnosticSchema = s.closed({
  code: s.string(),
  note: s.string(),
  line: s.optional(s.integer()),
  entryId: s.optional(s.string()),
});

export const sessionHead = {
  /** Absent for a single file without a key. */
  sessionKey: s.optional(s.string()),
  sessionId: s.string(),
  leafId: s.nullable(s.string()),
};

/**
 * The last entry of the branch that was read, to pass as `leafId` for the next page. Set only if the branch is not the
 * active one.
 */
export const branchLeafId = s.optional(s.string());

/**
 * `sessions.tree`, `sessions tree`. A flat list in file order because a tree can be deeper than JSON parsers allow.
 */
export const TreeSchema = s.closed({
  ...sessionHead,
  name: s.optional(s.string()),
  tipId: s.nullable(s.string()),
  entries: s.array(
    s.closed({
      id: s.string(),
      parentId: s.nullable(s.string()),
      type: s.string(),
      role: s.optional(s.string()),
      /** The kind of a message's provenance, such as `inter_session`. */
      provenanceKind: s.optional(s.string()),
      stopReason: s.optional(s.string()),
      timestamp: s.string(),
      /** `true` if the entry is on the branch that ends in the tip. */
      active: s.boolean(),
      /** `true` for labels, names and internal entries, which are not part of the conversation. */
      bookkeeping: s.boolean(),
      label: s.optional(s.string()),
      /** One line of at most 200 characters. */
      preview: s.string(),
    }),
  ),
  /** The cursor for the next page, if the request had a limit. */
  nextAfter: s.optional(s.string()),
  diagnostics: s.optional(s.array(DiagnosticSchema)),
});
export type TreePayload = s.Static<typeof TreeSchema>;
export type TreeRow = TreePayload["entries"][number];

const tokens = s.number({ minimum: 0 });

/** The estimated tokens in each part of a request. */
export const TokensSchema = s.closed({
  system: tokens,
  tools: tokens,
  /** Absent if the request has no summary. */
  summary: s.optional(tokens),
  user: tokens,
  assistant: tokens,
  thinking: tokens,
  toolCalls: tokens,
  toolResults: tokens,
  images: tokens,
  total: tokens,
  /** The model's context window. */
  window: s.optional(tokens),
});

/** One change made to the messages to satisfy the provider. */
export const ChangeSchema = s.closed({
  step: s.string(),
  entryId: s.optional(s.string()),
  kind: s.string(),
  note: s.string(),
  /** The message's position in the request. Absent if the message was omitted. */
  messageIndex: s.optional(s.integer()),
  /** The message before the change, starting shortly before the first difference and limited to 4,000 characters. */
  before: s.optional(s.string()),
  /**
   * The message after the change. Absent if the message was omitted. `before` and `after` are both absent if the text
   * did not change.
   */
  after: s.optional(s.string()),
});

/** `sessions.context`, `context`: the request that would be sent to a model. Unknown values are absent. */
export const ContextPayloadSchema = s.closed({
  request: s.closed({
    provider: s.optional(s.string()),
    api: s.optional(s.string()),
    model: s.optional(s.string()),
    thinkingLevel: s.string(),
    system: s.optional(s.string()),
    messages: s.array(s.object({ role: s.string() })),
    tools: s.optional(s.array(s.object({ name: s.string() }))),
    /** MCP servers whose tools a run would also offer. The servers are not started just to list their tools. */
    toolsUnlisted: s.optional(s.array(s.string())),
  }),
  /** One part per message. The parts' tokens, `tokens.system` and `tokens.tools` add up to `tokens.total`. */
  parts: s.array(
    s.closed({
      messageIndex: s.integer(),
      /** The entries that the message was built from. Empty if the message was inserted. */
      entryIds: s.array(s.string()),
      tokens,
    }),
  ),
  tokens: TokensSchema,
  changes: s.array(ChangeSchema),
  diagnostics: s.array(DiagnosticSchema),
  /** The body of the request to the provider, if the caller asked for it. */
  wire: s.optional(s.unknown()),
});
export type ContextPayload = Frozen<s.Static<typeof ContextPayloadSchema>>;

/** Payloads are read-only because they are only printed. */
type Frozen<T> = T extends readonly (infer Item)[]
  ? readonly Frozen<Item>[]
  : T extends object
    ? { readonly [Field in keyof T]: Frozen<T[Field]> }
    : T;

/** `sessions repair`. */
export const RepairSchema = s.object({
  file: s.string(),
  damaged: s.array(s.object({ line: s.integer(), reason: s.string() })),
  headerRebuilt: s.boolean(),
  bridged: s.array(s.string()),
  kept: s.integer(),
  backup: s.nullable(s.string()),
});
export type RepairPayload = Readonly<Omit<s.Static<typeof RepairSchema>, "damaged" | "bridged">> & {
  readonly damaged: readonly { readonly line: number; readonly reason: string }[];
  readonly bridged: readonly string[];
};

/** The payload of any call or command that fails. */
export const RefusalSchema = s.object({
  status: s.literal("error"),
  code: s.string(),
  error: s.string(),
});
export type RefusalPayload = s.Static<typeof RefusalSchema>;

/** Returned in pages, in log order, because a tree can be larger than a frame. */
export const sessionsTree = method({
  scope: "read",
  about: "Returns all entries of a session, on all branches, with their positions in the tree.",
  params: s.closed({ ...oneSession, limit: limit(10_000, 5000), after: s.optional(id) }),
  result: TreeSchema,
  isIdempotent: true,
});

export const sessionsContext = method({
  scope: "read",
  about:
    "Returns the request that a model would receive next, or the request that led to a given answer, with every change made to build it.",
  params: s.closed({
    ...oneSession,
    /**
     * An answer on any branch. If set, returns the request that led to this answer, by default for the model that
     * answered. If absent, returns the next request.
     */
    entryId: s.optional(id),
    model: s.optional(model),
    /** The URL of a server that is not configured. Nothing is sent to it. */
    baseUrl: s.optional(s.string({ maxLength: 2048, pattern: "^https?://[^\\s/]\\S*$" })),
    wire: s.optional(s.boolean()),
  }),
  result: ContextPayloadSchema,
  isIdempotent: true,
});
