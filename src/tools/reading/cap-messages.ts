import { stringifyJson } from "../../core/json.ts";
import type { Steps } from "../../core/slices.ts";
import { atOnce } from "../../core/slices.ts";
import type { CleanedMessage } from "./clean-message.ts";

/** Of the messages as UTF-8 JSON, brackets and commas too. */
export const mostBytes = 80 * 1024;

const tooLarge = { role: "assistant", content: "[sessions_history omitted: message too large]" };

export interface CappedMessages<Entry> {
  /** Oldest first. */
  readonly messages: readonly CleanedMessage["message"][];
  /** The entries that these stand for; of a message that is too large, its own. */
  readonly taken: readonly Entry[];
  readonly totalBytes: number;
  readonly hardCapped: boolean;
  /** How many were left out, a message that is too large among them. */
  readonly dropped: number;
  /** Of the messages that are shown. */
  readonly truncated: boolean;
  readonly redacted: boolean;
}

interface CapOptions {
  readonly forward?: boolean;
  readonly most?: number;
}

/**
 * As many as fit, from the end that the reader asked for; if not even one does, a stand-in for it. What does not fit is not
 * cleaned either.
 */
export function capMessages<Entry>(
  entries: readonly Entry[],
  clean: (entry: Entry) => CleanedMessage,
  options: CapOptions = {},
): CappedMessages<Entry> {
  return atOnce(cappingMessages(entries, clean, options));
}

/** The same message by message, for those that may be long: each is redacted whole before it is cut. */
export function* cappingMessages<Entry>(
  entries: readonly Entry[],
  clean: (entry: Entry) => CleanedMessage,
  { forward = false, most = mostBytes }: CapOptions = {},
): Steps<CappedMessages<Entry>> {
  const kept: CleanedMessage[] = [];
  let totalBytes = 2;
  for (const entry of forward ? entries : entries.toReversed()) {
    const cleaned = clean(entry);
    const bytes = Buffer.byteLength(stringifyJson(cleaned.message)) + (kept.length === 0 ? 0 : 1);
    if (totalBytes + bytes > most) break;
    totalBytes += bytes;
    kept.push(cleaned);
    yield bytes;
  }
  if (kept.length === 0 && entries.length > 0) return standIn(entries, forward);
  const messages = kept.map(({ message }) => message);
  const dropped = entries.length - kept.length;
  return {
    messages: forward ? messages : messages.reverse(),
    taken: forward ? entries.slice(0, kept.length) : entries.slice(dropped),
    totalBytes,
    hardCapped: dropped > 0,
    dropped,
    truncated: kept.some(({ truncated }) => truncated),
    redacted: kept.some(({ redacted }) => redacted),
  };
}

function standIn<Entry>(entries: readonly Entry[], forward: boolean): CappedMessages<Entry> {
  return {
    messages: [tooLarge],
    taken: forward ? entries.slice(0, 1) : entries.slice(-1),
    totalBytes: Buffer.byteLength(JSON.stringify([tooLarge])),
    hardCapped: true,
    dropped: entries.length,
    truncated: false,
    redacted: false,
  };
}
