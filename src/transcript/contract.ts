import type { ContextMessage } from "../core/context.ts";
import type { AssistantMessage, ToolResultMessage, UserMessage } from "../core/messages.ts";

/** The wire formats with specific rules. All other servers are treated like `openai-completions`. */
export type Api =
  | "anthropic-messages"
  | "google-generative-ai"
  | "openai-completions"
  | "openai-responses"
  | "mistral-conversations";

/**
 * A message with one of the three roles that every provider supports. Steps never change a message in place. They
 * create a new one with `derive`.
 */
export type TranscriptMessage = UserMessage | AssistantMessage | ToolResultMessage;

/** A human-readable record of one change that a step made. */
export interface Change {
  /** The function name of the step, such as `sanitizeImages`. */
  readonly step: string;
  readonly entryId?: string;
  /** For example `image_removed`. */
  readonly kind: string;
  /** One sentence. */
  readonly note: string;
  /** In an X-ray, the message's position in the request. Absent if the message was omitted. */
  readonly messageIndex?: number;
  /**
   * In an X-ray, the message before the change, starting shortly before the first difference and limited to 4,000
   * characters.
   */
  readonly before?: string;
  /**
   * In an X-ray, the message after the change. Absent if the message was omitted. `before` and `after` are both absent
   * if the text did not change.
   */
  readonly after?: string;
}

/** `messages` is the same array if nothing changed. */
export interface StepResult {
  readonly messages: readonly TranscriptMessage[];
  readonly changes: readonly Change[];
}

/** The images that a model accepts. Sizes are those of the raw image, before base64 encoding. */
export interface ImageLimits {
  readonly maxSide: number;
  readonly maxBytes: number;
  /** The limit per request. If there are more images, the oldest are dropped. */
  readonly maxCount: number;
  readonly maxTotalBytes: number;
  /** If absent, any GIF is accepted, including an animated one. */
  readonly gif?: "still" | "none";
}

/** A provider's requirements for a transcript. */
export interface TranscriptPolicy {
  readonly provider: string;
  readonly api: Api;
  readonly model: string;
  /** With `images-only`, text is not changed. */
  readonly sanitizeMode: "full" | "images-only";
  /**
   * `strict` is `[A-Za-z0-9_-]{1,40}`. `strict9` is nine letters or digits. `kept` is up to 64 characters, unchanged.
   */
  readonly toolCallIds: "strict" | "strict9" | "kept";
  /** How earlier calls are sent in a request that offers no tools. */
  readonly callsWithoutTools: "native" | "text";
  readonly repairToolPairing: boolean;
  /** Whether a call without a result gets a synthetic one or is dropped. */
  readonly missingResults: "synthetic" | "drop";
  /**
   * How a model's own thinking is sent back: signed (Anthropic), signed in base64 (Google), as reasoning items
   * (Responses), unchanged (Mistral), or not at all.
   */
  readonly thinking: "signed" | "base64" | "items" | "plain" | "none";
  readonly foreignThinking: "text" | "drop";
  readonly firstTurn: "user" | "any";
  readonly turns: "anthropic" | "gemini" | "mistral" | "any";
  /** Whether images in a tool result stay in it or follow in a user turn. */
  readonly toolResultImages: "inside" | "behind";
  /** `null` if the model does not accept images. */
  readonly images: ImageLimits | null;
}

/** Loads images that are stored outside the messages, and shrinks images. */
export interface ImagePort {
  /** Returns `null` if the blob is missing. */
  readonly blob?: (sha256: string) => Promise<Uint8Array | null> | Uint8Array | null;
  /** Returns `null` if the image cannot be read, or `not_installed` if the required package is missing. */
  readonly shrink?: (
    image: { readonly bytes: Uint8Array; readonly mimeType: string },
    limits: Pick<ImageLimits, "maxSide" | "maxBytes">,
  ) => Promise<{ readonly bytes: Uint8Array; readonly mimeType: string } | "not_installed" | null>;
}

/** Determines when old tool results are pruned from a request. The session keeps them. */
export interface PruningOptions {
  readonly mode: "off" | "cache-ttl";
  readonly ttlMs: number;
  /** The time of the last provider call, or `null` if unknown. */
  readonly lastCallAt: number | null;
  readonly now: number;
  /** Glob patterns for tool names. If `allow` is absent, every tool can be pruned. `deny` takes precedence. */
  readonly allow?: readonly string[];
  readonly deny?: readonly string[];
  /**
   * The results that the last request pruned, by tool call ID (from `prunedResults`). They stay pruned because sending
   * the whole result again would invalidate the cache that the pruned request created.
   */
  readonly pruned?: ReadonlyMap<string, "trimmed" | "cleared">;
}

/** Inputs to the steps other than the messages and the policy. */
export interface TranscriptOptions {
  /** `entryIds[i]` is the ID of the entry for `messages[i]`. Used in change records. */
  readonly entryIds?: readonly string[];
  /** The names of the tools that are currently offered. If absent, earlier calls are sent as calls. */
  readonly tools?: readonly string[];
  /** The model's context window in tokens. If absent, nothing is truncated to fit it. */
  readonly contextWindow?: number;
  /** The number of user turns to keep. */
  readonly historyLimit?: number;
  readonly images?: ImagePort;
  readonly pruning?: PruningOptions;
  /**
   * `true` if the provider rejected a thinking signature. The model's own thinking is then treated like another
   * model's.
   */
  readonly isSealedThinkingRejected?: boolean;
}

/** The messages to send, and every change that led to them. */
export interface PreparedTranscript {
  readonly messages: readonly TranscriptMessage[];
  readonly changes: readonly Change[];
}

export type { ContextMessage };
