import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { SkeinError } from "../core/errors.ts";
import type { Content } from "../core/messages.ts";
import { present } from "../core/present.ts";
import { redactedText } from "../core/tombstone.ts";
import type { AcceptRequest, InputKind, QueueMode, RequestDigests, Run, RunOptions } from "./contract.ts";

/** A request whose idempotency key has already been used. Omitted fields are not compared. */
export interface RepeatedRequest {
  /** If the run has digests too, only the digests are compared. */
  readonly digests?: RequestDigests;
  readonly content?: Content;
  readonly sessionKey?: string;
  readonly options?: RunOptions;
  readonly queueMode?: QueueMode;
  readonly isNote?: boolean;
}

type KnownRequest = Pick<Run, "runId" | "kind" | "session" | "message" | "options" | "queueMode">;

/** Delivery target and origin are not compared, because they depend on the entry point rather than the request. */
const comparedOptions = [
  "model",
  "thinking",
  "runTimeoutSeconds",
  "system",
  "extraSystemPrompt",
  "outputSchema",
  "tools",
] as const;

const digestLength = 32;

/**
 * Computes one digest per parameter of a normalized request, so that a conflict can name the parameter that differs.
 */
export function digestRequest(parameters: Readonly<Record<string, unknown>>): RequestDigests {
  const digests = Object.entries(present(parameters)).map(([name, value]) => {
    const digest = createHash("sha256").update(JSON.stringify(value)).digest("hex");
    return [name, digest.slice(0, digestLength)];
  });
  return Object.fromEntries(digests) as RequestDigests;
}

/** Throws `idempotency_conflict` if the request differs from the run's. A run with redacted input always matches. */
export function checkSameRequest(known: KnownRequest, repeated: RepeatedRequest): void {
  const conflict = findConflict(known, repeated);
  if (conflict !== null) throw conflict;
}

/**
 * Like `checkSameRequest`, but for input. Messages between sessions without digests are generated and are always
 * treated as equal.
 */
export function checkRepeatedInput(
  known: KnownRequest,
  {
    kind,
    message,
    queueMode,
    options = {},
  }: Pick<AcceptRequest, "kind" | "message" | "queueMode" | "options">,
  sessionKey: string,
): void {
  const { requestDigests: digests } = options;
  if (!("content" in message) || (digests === undefined && !isFromOutside(kind))) return;
  const content = message.content as Content;
  // A channel's route might have changed, and its messages have no options.
  const isClient = isFromOutside(kind) && kind !== "channel";
  const rest = isClient ? { sessionKey, options, isNote: kind === "note", ...present({ queueMode }) } : {};
  checkSameRequest(known, { content, ...rest, ...present({ digests }) });
}

function isFromOutside(kind: InputKind): boolean {
  return kind === "user" || kind === "channel" || kind === "cron" || kind === "note";
}

/** Returns the `idempotency_conflict` that {@link checkSameRequest} throws, or `null` if the requests are equal. */
export function findConflict(known: KnownRequest, repeated: RepeatedRequest): SkeinError | null {
  const stored = known.options.requestDigests;
  const { digests } = repeated;
  const difference =
    stored === undefined || digests === undefined
      ? differenceBetween(known, repeated)
      : differenceInDigests(stored, digests);
  return difference === null
    ? null
    : new SkeinError("idempotency_conflict", { runId: known.runId, difference });
}

function differenceInDigests(stored: RequestDigests, given: RequestDigests): string | null {
  const names = Object.keys({ ...stored, ...given });
  const different = names.filter((name) => stored[name] !== given[name]);
  return different.length === 0 ? null : `a request that differs in ${different.join(", ")}`;
}

function differenceBetween(known: KnownRequest, repeated: RepeatedRequest): string | null {
  const stored = "content" in known.message ? known.message.content : null;
  if (stored === null || isRedacted(stored)) return null;
  const isEdited = known.options.editedAt !== undefined;
  if (repeated.content !== undefined && !isEdited && !isSameContent(stored, repeated.content))
    return "a different message";
  if (repeated.sessionKey !== undefined && repeated.sessionKey !== known.session.key)
    return `a different session (${known.session.key})`;
  const isNote = known.kind === "note";
  if (repeated.isNote !== undefined && repeated.isNote !== isNote)
    return isNote ? "a note" : "a message rather than a note";
  if (repeated.queueMode !== undefined && repeated.queueMode !== known.queueMode)
    return "a different queueMode";
  const given = repeated.options;
  const option =
    given === undefined ? undefined : comparedOptions.find((name) => differs(name, known.options, given));
  return option === undefined ? null : `a different ${option}`;
}

function differs(name: (typeof comparedOptions)[number], stored: RunOptions, given: RunOptions): boolean {
  return stored[name] !== redactedText && !isDeepStrictEqual(stored[name], given[name]);
}

type Blocks = Exclude<Extract<Run["message"], { content: unknown }>["content"], string>;
type Block = Blocks[number];

function isRedacted(content: string | Blocks): boolean {
  return blocksOf(content).some((block) => block.type === "text" && block.text === redactedText);
}

/** Large text and images are stored as blobs and compared by hash. */
function isSameContent(stored: string | Blocks, given: Content): boolean {
  const [one, other] = [blocksOf(stored), blocksOf(given)];
  return one.length === other.length && one.every((block, index) => isSameBlock(block, other[index]));
}

function blocksOf(content: string | Blocks): readonly Block[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

function isSameBlock(stored: Block, given: Block | undefined): boolean {
  if (given === undefined) return false;
  const hash = blobHash(stored);
  if (hash !== null && hash !== blobHash(given)) return hash === contentHash(given);
  if (stored.type === "text" && given.type === "text") return stored.text === given.text;
  return isDeepStrictEqual(stored, given);
}

function blobHash(block: Block): string | null {
  const { skein } = block as { readonly skein?: { readonly blob?: { readonly sha256?: unknown } } };
  const hash = skein?.blob?.sha256;
  return typeof hash === "string" ? hash : null;
}

function contentHash(block: Block): string | null {
  const hash = createHash("sha256");
  if (block.type === "text") return hash.update(block.text).digest("hex");
  return block.type === "image" ? hash.update(block.data, "base64").digest("hex") : null;
}
