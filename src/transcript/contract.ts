import type { ContextMessage } from "../core/context.ts";
import type { AssistantMessage, ToolResultMessage, UserMessage } from "../core/messages.ts";

/** What the parts of the transcript pipeline agree on. */

/** The wire formats that we know the rules of. Any other server is taken for `openai-completions`. */
export type Api =
  | "anthropic-messages"
  | "google-generative-ai"
  | "openai-completions"
  | "openai-responses"
  | "mistral-conversations";

/**
 * The three roles that every provider knows, as messages on their way out. They are never changed in place: a step
 * that changes one makes another with `derive`.
 */
export type TranscriptMessage = UserMessage | AssistantMessage | ToolResultMessage;

/** One thing that a step did, for people to read. */
export interface Change {
  /** The function's name, as in `sanitizeImages`. */
  readonly step: string;
  /** The entry that it was done to, where there is one. */
  readonly entryId?: string;
  /** A word with underscores, such as `image_removed`. */
  readonly kind: string;
  /** One sentence. */
  readonly note: string;
}

/** What a step gives back; the very same array when it changed nothing. */
export interface StepResult {
  readonly messages: readonly TranscriptMessage[];
  readonly changes: readonly Change[];
}

/** Which images a model takes; sizes of the image itself, before base64. */
export interface ImageLimits {
  readonly maxSide: number;
  readonly maxBytes: number;
  /** Of a whole request; the oldest give way. */
  readonly maxCount: number;
  readonly maxTotalBytes: number;
  /** Left out: any GIF is taken, animated ones too. */
  readonly gif?: "still" | "none";
}

/** What a provider asks of a transcript. */
export interface TranscriptPolicy {
  readonly provider: string;
  readonly api: Api;
  readonly model: string;
  /** `images-only`: texts stay as they are. */
  readonly sanitizeMode: "full" | "images-only";
  /** `strict`: `[A-Za-z0-9_-]{1,40}`. `strict9`: nine letters or digits. `kept`: up to 64 characters, as they are. */
  readonly toolCallIds: "strict" | "strict9" | "kept";
  /** How calls of the history are sent in a request that offers no tools. */
  readonly callsWithoutTools: "native" | "text";
  readonly repairToolPairing: boolean;
  /** What becomes of a call without a result. */
  readonly missingResults: "synthetic" | "drop";
  /**
   * In which form a model gets its own thinking back: signed (Anthropic), signed in base64 (Google), as reasoning
   * items (Responses), as it is (Mistral), or not at all.
   */
  readonly thinking: "signed" | "base64" | "items" | "plain" | "none";
  readonly foreignThinking: "text" | "drop";
  readonly firstTurn: "user" | "any";
  readonly turns: "anthropic" | "gemini" | "mistral" | "any";
  /** Whether the image of a tool's result may stand in it, or must go out in a user turn behind it. */
  readonly toolResultImages: "inside" | "behind";
  /** `null`: the model sees no images. */
  readonly images: ImageLimits | null;
}

/** The source of images that lie outside the messages, and what makes them smaller. */
export interface ImagePort {
  /** The bytes of a blob; `null`: not there. */
  readonly blob?: (sha256: string) => Promise<Uint8Array | null> | Uint8Array | null;
  /** Makes an image smaller; `null` where it cannot be read, `not_installed` where the package for it is missing. */
  readonly shrink?: (
    image: { readonly bytes: Uint8Array; readonly mimeType: string },
    limits: Pick<ImageLimits, "maxSide" | "maxBytes">,
  ) => Promise<{ readonly bytes: Uint8Array; readonly mimeType: string } | "not_installed" | null>;
}

/** When old tool results make room; in memory only. */
export interface PruningOptions {
  readonly mode: "off" | "cache-ttl";
  readonly ttlMs: number;
  /** When the provider was last asked; `null`: never, as far as we know. */
  readonly lastCallAt: number | null;
  readonly now: number;
  /** Globs over tool names. Without `allow` all may be pruned; `deny` wins. */
  readonly allow?: readonly string[];
  readonly deny?: readonly string[];
  /**
   * What the last request had pruned, by tool call id (`prunedResults` of its messages). It stays pruned, cache warm or
   * cold: to send the whole again would break the warm cache that the pruned request made.
   */
  readonly pruned?: ReadonlyMap<string, "trimmed" | "cleared">;
}

/** What the pipeline may know beside the messages and the policy. */
export interface TranscriptOptions {
  /** `entryIds[i]` is the entry that `messages[i]` comes from, for the changes. */
  readonly entryIds?: readonly string[];
  /** Names of the tools that are offered now. Left out: not known, and the history keeps its calls as calls. */
  readonly tools?: readonly string[];
  /** The model's context window in tokens. Left out: not known, and nothing is cut for it. */
  readonly contextWindow?: number;
  /** User turns to keep. */
  readonly historyLimit?: number;
  readonly images?: ImagePort;
  readonly pruning?: PruningOptions;
  /** The provider rejected what it had sealed: the model's own thinking is sent as if another model had thought it. */
  readonly isSealedThinkingRejected?: boolean;
}

/** What would be sent, and what was done to get there. */
export interface PreparedTranscript {
  readonly messages: readonly TranscriptMessage[];
  readonly changes: readonly Change[];
}

export type { ContextMessage };
