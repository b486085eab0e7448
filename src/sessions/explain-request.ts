import type { SessionContext } from "../core/context.ts";
import { isRecord } from "../core/is-record.ts";
import { stringifyJson } from "../core/json.ts";
import type { Steps } from "../core/slices.ts";
import type { Change, ContextMessage, TranscriptMessage } from "../transcript/contract.ts";
import { EntryIds, sourcesOf, traceOf } from "../transcript/derive.ts";
import { messageTokens } from "../transcript/estimate-tokens.ts";
import { modelMessage } from "../transcript/model-message.ts";

/** One message in a request. The tokens of all messages, the system prompt and the tools add up to the total. */
export interface RequestPart {
  readonly messageIndex: number;
  /**
   * The entries that the message was built from, oldest first. Empty for a message that an adaptation step inserted.
   */
  readonly entryIds: readonly string[];
  readonly tokens: number;
}

/** Returns the text as the reader is allowed to see it. Applied before truncation. */
export type ViewText = (text: string) => string;

/** The maximum length of the text shown before and after a change. */
const longestText = 4000;
/** The number of characters shown before the first difference. */
const leadLength = 200;
/** Readers who receive masked text see only the changes near the beginning of a text, because masking is slow. */
const longestMasked = 64 * 1024;
/** An armored private key is the longest secret. */
const longestSecret = 16_384;
/** The limit for all text in one X-ray. Changes beyond it are shown without text. */
const mostCharacters = 2 * 1024 * 1024;

interface PreparedRequest {
  readonly context: Pick<SessionContext, "messages" | "entryIds">;
  readonly messages: readonly TranscriptMessage[];
  readonly changes: readonly Change[];
}

/** Returns each message's entries and tokens, and the changes with the text before and after each one. */
export function* explainRequest(
  { context, messages, changes }: PreparedRequest,
  viewText?: ViewText,
): Steps<{ readonly parts: RequestPart[]; readonly changes: Change[] }> {
  const entryIds = new EntryIds(context.messages, context.entryIds);
  const parts: RequestPart[] = [];
  for (const [messageIndex, message] of messages.entries()) {
    const tokens = messageTokens(message);
    parts.push({ messageIndex, entryIds: entryIds.allOf(message), tokens });
    yield tokens;
  }
  const places = new PlacesBySource();
  const explained: Change[] = [];
  let characters = 0;
  for (const change of changes) {
    const trace = traceOf(change);
    if (trace === null) {
      explained.push(change);
      continue;
    }
    const messageIndex = places.of(trace.before, messages);
    const place = messageIndex === -1 ? {} : { messageIndex };
    const texts = characters < mostCharacters ? textsOf(trace, places, viewText) : {};
    characters += (texts.before?.length ?? 0) + (texts.after?.length ?? 0);
    explained.push({ ...change, ...place, ...texts });
    yield 4 * ((texts.before?.length ?? 0) + (texts.after?.length ?? 0));
  }
  return { parts, changes: explained };
}

type Texts = Pick<Change, "before" | "after">;

/** Returns no texts if they are equal. The change is then in an ID or in a field that no model sees. */
function textsOf(
  { before, after }: NonNullable<ReturnType<typeof traceOf>>,
  places: PlacesBySource,
  viewText: ViewText | undefined,
): Texts {
  const index = places.of(before, after);
  const next = after[index];
  const [old, fresh] = [shownText(before, viewText), next === undefined ? null : shownText(next, viewText)];
  if (old === fresh) return {};
  const from = Math.max(0, firstDifference(old, fresh ?? "") - leadLength);
  return { before: cutAt(old, from), ...(fresh === null ? {} : { after: cutAt(fresh, from) }) };
}

function shownText(message: ContextMessage | TranscriptMessage, viewText: ViewText | undefined): string {
  const text = messageText(message);
  if (viewText === undefined) return text;
  if (text.length <= longestMasked) return viewText(text);
  // The end might be the first half of a secret, which would go unrecognized.
  return viewText(text.slice(0, longestMasked)).slice(0, -longestSecret);
}

function firstDifference(one: string, other: string): number {
  let at = 0;
  while (at < one.length && one.charCodeAt(at) === other.charCodeAt(at)) at++;
  return at;
}

function cutAt(text: string, from: number): string {
  const part = text.slice(from, from + longestText - 2).toWellFormed();
  return `${from > 0 ? "…" : ""}${part}${from + part.length < text.length ? "…" : ""}`;
}

/**
 * Returns a message's text. Messages before the first step might be damaged, so their content is not assumed to be
 * valid.
 */
function messageText(message: ContextMessage | TranscriptMessage): string {
  const content: unknown = "content" in message ? message.content : modelMessage(message)?.content;
  if (typeof content === "string") return content;
  return Array.isArray(content) ? content.map(blockText).join("\n") : stringifyJson(content ?? message);
}

function blockText(block: unknown): string {
  if (!isRecord(block)) return stringifyJson(block ?? null);
  const { type, text, thinking, name, id, mimeType, data } = block;
  if (type === "text" && typeof text === "string") return text;
  if (type === "thinking" && typeof thinking === "string") return `[thinking] ${thinking}`;
  if (type === "toolCall") return `${name} ${stringifyJson(block.arguments ?? {})} (${id})`;
  if (type === "image" && typeof data === "string")
    return `[${mimeType}, ${Math.floor((data.length * 3) / 4)} bytes]`;
  return stringifyJson(block);
}

/**
 * Finds the message that a later step derived from a message. Builds one index per array, because many changes share a
 * step.
 */
class PlacesBySource {
  readonly #byArray = new Map<readonly TranscriptMessage[], Map<object, number>>();

  /** Returns -1 if the message was omitted. */
  of(message: ContextMessage | TranscriptMessage, messages: readonly TranscriptMessage[]): number {
    const places = this.#byArray.get(messages) ?? indexBySource(messages);
    this.#byArray.set(messages, places);
    for (const source of sourcesOf(message)) {
      const place = places.get(source);
      if (place !== undefined) return place;
    }
    return -1;
  }
}

function indexBySource(messages: readonly TranscriptMessage[]): Map<object, number> {
  return new Map(
    messages.flatMap((message, index) => sourcesOf(message).map((source) => [source, index] as const)),
  );
}
