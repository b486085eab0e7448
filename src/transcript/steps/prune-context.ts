import { matchesGlob } from "../../core/glob.ts";
import type { ToolResultMessage } from "../../core/messages.ts";
import { textOf } from "../../core/messages.ts";
import { cutText, endOfText } from "../../core/text.ts";
import type { Change, PruningOptions, StepResult, TranscriptMessage } from "../contract.ts";
import type { Recorder, StepOptions } from "../derive.ts";
import { derive, isInserted } from "../derive.ts";
import { estimateTokens } from "../estimate-tokens.ts";

const trimAbove = 0.3;
const clearAbove = 0.5;
/** Results are cleared only if that frees at least this many characters. */
const minClearableCharacters = 50_000;
/** Results in the last three assistant turns are never pruned. */
const protectedTurns = 3;

/**
 * Prunes old tool results once the provider's prompt cache is cold. If the request exceeds 30% of the window, long
 * results are trimmed. If it still exceeds 50%, the oldest results are cleared until it fits. Results that the last
 * request pruned stay pruned.
 */
export function pruneContext(
  messages: readonly TranscriptMessage[],
  { pruning, contextWindow, record }: Pick<StepOptions, "pruning" | "contextWindow" | "record">,
): StepResult {
  if (pruning === undefined || pruning.mode === "off" || contextWindow === undefined)
    return { messages, changes: [] };
  const places = prunablePlaces(messages, pruning);
  if (places.length === 0) return { messages, changes: [] };
  const work = new Pruning(messages, record);
  for (const place of places) work.again(place, pruning.pruned);
  if (isCacheCold(messages, pruning)) {
    const over = (share: number) => work.tokens > share * contextWindow;
    if (over(trimAbove)) for (const place of places) work.trim(place);
    const toBeHad = places.reduce((sum, place) => sum + work.lengthAt(place), 0);
    if (toBeHad >= minClearableCharacters)
      for (const place of places) if (over(clearAbove)) work.clear(place);
  }
  return work.result;
}

/**
 * Lists the pruned results in a request so that the next request can keep them pruned.
 *
 * @example
 * ```ts
 * import { prunedResults, type PruningOptions } from "skein";
 * const pruned = prunedResults([]); // the messages of the last request
 * const pruning: PruningOptions = { mode: "cache-ttl", ttlMs: 300_000, lastCallAt: null, now: Date.now(), pruned };
 * ```
 */
export function prunedResults(
  messages: readonly TranscriptMessage[],
): ReadonlyMap<string, "trimmed" | "cleared"> {
  const pruned = new Map<string, "trimmed" | "cleared">();
  for (const message of messages) {
    const how = message.role === "toolResult" ? findPruning(message) : null;
    if (how !== null && message.role === "toolResult") pruned.set(message.toolCallId, how);
  }
  return pruned;
}

/**
 * Whether the prompt cache has expired. If the time of the last call is unknown, the latest answer's time is used. An
 * answer without a time is assumed to be old.
 */
function isCacheCold(
  messages: readonly TranscriptMessage[],
  { lastCallAt, now, ttlMs }: PruningOptions,
): boolean {
  const last = lastCallAt ?? lastAnswerAt(messages);
  return last === null || now - last >= ttlMs;
}

function lastAnswerAt(messages: readonly TranscriptMessage[]): number | null {
  let last: number | null = null;
  for (const { role, timestamp } of messages) {
    if (role === "assistant" && timestamp !== undefined && timestamp > (last ?? 0)) last = timestamp;
  }
  return last;
}

/** Returns the prunable results after the first user message and before the last three assistant turns. */
function prunablePlaces(messages: readonly TranscriptMessage[], pruning: PruningOptions): number[] {
  const from = messages.findIndex(({ role }) => role === "user");
  const to = lastTurnsFrom(messages);
  const known = new Map<string, boolean>();
  const mayPrune = (tool: string) => {
    const may = known.get(tool) ?? isAllowed(tool, pruning);
    known.set(tool, may);
    return may;
  };
  const places: number[] = [];
  for (let place = from; place !== -1 && place < to; place++) {
    const message = messages[place];
    if (message?.role === "toolResult" && mayPrune(message.toolName ?? "")) places.push(place);
  }
  return places;
}

/**
 * Returns the start of the last three assistant turns, or 0 if there are fewer. Consecutive assistant messages are one
 * turn.
 */
function lastTurnsFrom(messages: readonly TranscriptMessage[]): number {
  let turns = 0;
  for (let place = messages.length - 1; place >= 0; place--) {
    if (!isAnswer(messages[place]) || isAnswer(messages[place - 1])) continue;
    if (++turns === protectedTurns) return place;
  }
  return 0;
}

function isAnswer(message: TranscriptMessage | undefined): boolean {
  return message?.role === "assistant" && !isInserted(message);
}

function isAllowed(tool: string, { allow = [], deny = [] }: PruningOptions): boolean {
  const fits = (globs: readonly string[]) => globs.some((glob) => matchesGlob(glob, tool));
  return (allow.length === 0 || fits(allow)) && !fits(deny);
}

/** Messages that are being pruned, and their estimated tokens. */
class Pruning {
  readonly #given: readonly TranscriptMessage[];
  readonly #messages: TranscriptMessage[];
  readonly #record: Recorder;
  readonly #changes: Change[] = [];
  #tokens: number | null = null;

  constructor(messages: readonly TranscriptMessage[], record: Recorder) {
    this.#given = messages;
    this.#messages = [...messages];
    this.#record = record;
  }

  get tokens(): number {
    this.#tokens ??= estimateTokens(this.#messages);
    return this.#tokens;
  }

  get result(): StepResult {
    const messages = this.#changes.length === 0 ? this.#given : this.#messages;
    return { messages, changes: this.#changes };
  }

  /** Returns the number of characters that clearing would free. */
  lengthAt(place: number): number {
    const message = this.#at(place);
    return isCleared(message) ? 0 : prunableLength(message);
  }

  /** Prunes a result in the same way as in the last request. */
  again(place: number, pruned: PruningOptions["pruned"]): void {
    const how = pruned?.get(this.#at(place).toolCallId);
    if (how === "trimmed") this.trim(place);
    if (how === "cleared") this.clear(place);
  }

  trim(place: number): void {
    const message = this.#at(place);
    const content = trimContent(message);
    if (content === null) return;
    const note = `An old result from ${nameOf(message)} with ${prunableLength(message)} characters is truncated to its head and tail.`;
    this.#put(place, derive(message, { content }), this.#record("result_trimmed", note, message));
  }

  clear(place: number): void {
    const message = this.#at(place);
    const content = clearContent(message);
    if (content === null) return;
    const note = `An old result from ${nameOf(message)} (${prunableLength(message)} characters) is cleared.`;
    this.#put(place, derive(message, { content }), this.#record("result_cleared", note, message));
  }

  #at(place: number): ToolResultMessage {
    return this.#messages[place] as ToolResultMessage;
  }

  #put(place: number, message: ToolResultMessage, change: Change): void {
    if (this.#tokens !== null) this.#tokens += estimateTokens([message]) - estimateTokens([this.#at(place)]);
    this.#messages[place] = message;
    this.#changes.push(change);
  }
}

function nameOf({ toolName }: ToolResultMessage): string {
  return toolName ?? "a tool";
}

const trimmedFrom = 4000;
const headKept = 1500;
const tailKept = 1500;
export const clearedText = "[Old tool result content cleared]";

type Content = ToolResultMessage["content"];

function prunableLength({ content }: ToolResultMessage): number {
  return textOf(content).length;
}

/** Keeps the head and tail of the text and replaces images with a note. Returns `null` if the result is short. */
function trimContent({ content }: ToolResultMessage): Content | null {
  const text = textOf(content);
  if (text.length <= trimmedFrom) return null;
  const gone = text.length - headKept - tailKept;
  const trimmed = `${cutText(text, headKept)}${noteOf(gone)}${endOfText(text, tailKept)}`;
  const images = content.filter((block) => block.type === "image").length;
  const seen = images === 0 ? [] : [{ type: "text" as const, text: imagesText(images) }];
  return [{ type: "text", text: trimmed }, ...seen];
}

/** Returns `null` if nothing would be freed. */
function clearContent({ content }: ToolResultMessage): Content | null {
  const hasOther = content.some((block) => block.type !== "text");
  if (!hasOther && textOf(content).length <= clearedText.length) return null;
  return [{ type: "text", text: clearedText }];
}

/** Returns `null` if the result is complete. */
function findPruning(message: ToolResultMessage): "trimmed" | "cleared" | null {
  if (isCleared(message)) return "cleared";
  const [block] = message.content;
  return block?.type === "text" && notePattern.test(block.text.slice(headKept - 1)) ? "trimmed" : null;
}

function isCleared({ content }: ToolResultMessage): boolean {
  return textOf(content) === clearedText;
}

function noteOf(characters: number): string {
  return `\n[… ${characters} characters of an old tool result left out …]\n`;
}

/** Matches the note after a head of 1,500 characters, or 1,499 if a surrogate pair would have been split. */
const notePattern = /^.?\n\[… \d+ characters of an old tool result left out …\]\n/s;

function imagesText(count: number): string {
  return count === 1
    ? "[an image from an old tool result left out]"
    : `[${count} images from an old tool result left out]`;
}
