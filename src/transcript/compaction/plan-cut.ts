import type { ContextMessage, SessionContext } from "../../core/context.ts";
import { estimateTokens } from "../estimate-tokens.ts";
import { modelMessage } from "../model-message.ts";
import type { CompactionLimits } from "./limits.ts";
import { compactionLimits } from "./limits.ts";

/** Determines which part of a context is summarized and which part is kept verbatim. */
export interface CutPlan {
  readonly firstKeptEntryId: string;
  /** The messages to summarize, oldest first, without the previous summary. */
  readonly toSummarize: readonly ContextMessage[];
  /** `entryIds[i]` is the ID of the entry for `toSummarize[i]`. */
  readonly entryIds: readonly string[];
  readonly previousSummary: string | null;
  /** The compaction entry with the previous summary. */
  readonly previousEntryId: string | null;
  /** An estimate for the whole context, including the previous summary. */
  readonly tokensBefore: number;
  readonly tokensKept: number;
  /** `true` if the kept part starts in the middle of a turn. */
  readonly splitTurn: boolean;
  /** `true` if the byte budget excluded older messages, which must also be summarized. */
  readonly isCut: boolean;
}

/**
 * Why nothing can be cut. `nothing_said` means that the context is empty. `only_summary` means that nothing follows the
 * last compaction. `all_recent` means that everything is recent enough to keep. `one_turn` means that there is only one
 * turn, which cannot be split.
 */
export type NothingToCut = "nothing_said" | "only_summary" | "all_recent" | "one_turn";

interface CutOptions {
  readonly contextWindow: number;
  /** The number of compactions so far in this run. Each additional compaction keeps half as much as the one before. */
  readonly compactions?: number;
}

type Cuttable = Pick<SessionContext, "messages" | "entryIds" | "cut">;

/** Estimates a context message's size in a request. */
export function messageTokens(message: ContextMessage): number {
  const visible = modelMessage(message);
  return visible === null ? 0 : estimateTokens([visible]);
}

/**
 * Plans where to cut a context. The part to summarize starts after the previous summary, at the first entry that the
 * previous compaction kept.
 */
export function planCut(
  context: Cuttable,
  options: CutOptions,
): CutPlan | { readonly nothing: NothingToCut } {
  const { messages, entryIds } = context;
  const isCut = context.cut !== null;
  const first = messages[0];
  const previous = first?.role === "compactionSummary" ? first : null;
  const from = previous === null ? 0 : 1;
  if (messages.length === from) return { nothing: previous === null ? "nothing_said" : "only_summary" };
  const sizes = sumTokensFrom(messages);
  const limits = compactionLimits(options.contextWindow, options.compactions);
  if ((sizes[from] ?? 0) <= limits.keep && !isCut) return { nothing: "all_recent" };
  const body = { messages, from, sizes, limits, isCut };
  const place = chooseCut(body, findCutPlaces(messages, from, isCut));
  const firstKeptEntryId = place === null ? undefined : entryIds[place];
  if (place === null || firstKeptEntryId === undefined) return { nothing: "one_turn" };
  return {
    firstKeptEntryId,
    toSummarize: messages.slice(from, place),
    entryIds: entryIds.slice(from, place),
    previousSummary: previous?.summary ?? null,
    previousEntryId: previous === null ? null : (entryIds[0] ?? null),
    tokensBefore: sizes[0] ?? 0,
    tokensKept: sizes[place] ?? 0,
    splitTurn: isMidTurn(messages, from, place),
    isCut,
  };
}

/**
 * Whether the first kept message's turn started before it. A note or command is not a request. If the kept part starts
 * with one, the result depends on the message before it: `true` for a prompt or an unanswered result.
 */
function isMidTurn(messages: readonly ContextMessage[], from: number, place: number): boolean {
  if (!isUserTurn(messages[place])) return true;
  for (let at = place; isUserTurn(messages[at]); at++) if (messages[at]?.role === "user") return false;
  let before = place - 1;
  while (before >= from && isUserTurn(messages[before]) && messages[before]?.role !== "user") before -= 1;
  const role = before < from ? undefined : messages[before]?.role;
  return role === "user" || role === "toolResult";
}

/** Returns, for each index, the number of tokens in the message at that index and all later ones. */
function sumTokensFrom(messages: readonly ContextMessage[]): Float64Array {
  const sizes = new Float64Array(messages.length + 1);
  for (let index = messages.length - 1; index >= 0; index--) {
    sizes[index] = (sizes[index + 1] ?? 0) + messageTokens(messages[index] as ContextMessage);
  }
  return sizes;
}

interface Body {
  readonly messages: readonly ContextMessage[];
  readonly from: number;
  readonly sizes: Float64Array;
  readonly limits: CompactionLimits;
  readonly isCut: boolean;
}

/** Returns the index of the first kept message, or `null` if there is no valid cut point. */
function chooseCut(body: Body, places: CutPlaces): number | null {
  const { messages, from, limits, isCut } = body;
  const sizeAt = (place: number) => body.sizes[place] ?? 0;
  const turns: number[] = [];
  // A cut at the very start would summarize nothing, unless older messages exist.
  for (let place = isCut ? from : from + 1; place < messages.length; place++) {
    if (places.isTurn(place)) turns.push(place);
  }
  const inner = (behind: number, before: number): number | null => {
    let last: number | null = null;
    for (let place = behind + 1; place < before; place++) {
      if (!places.isInner(place)) continue;
      if (sizeAt(place) <= limits.keep) return place;
      last = place;
    }
    return last;
  };
  const index = turns.findIndex((place) => sizeAt(place) <= limits.keep);
  const lastTurn = turns.at(-1);
  if (index === -1) {
    if (lastTurn !== undefined && sizeAt(lastTurn) <= limits.mostKept)
      return extendToUserRun(body, places, lastTurn);
    return inner(lastTurn ?? from, messages.length) ?? lastTurn ?? null;
  }
  const chosen = turns[index] as number;
  if (sizeAt(chosen) >= limits.keep / 2) return extendToUserRun(body, places, chosen);
  // Too little would be kept, so the previous turn is included as well, either completely or, if it is too large, in
  // part.
  const before = turns[index - 1];
  if (before !== undefined && sizeAt(before) <= limits.mostKept) return before;
  if (sizeAt(before ?? from) <= limits.mostKept) return extendToUserRun(body, places, chosen);
  const within = inner(before ?? from, chosen);
  return within !== null && sizeAt(within) <= limits.keep ? within : extendToUserRun(body, places, chosen);
}

/** Keeps consecutive user messages together, such as a hook's text before a prompt, if that costs little. */
function extendToUserRun(
  { messages, from, sizes, limits, isCut }: Body,
  places: CutPlaces,
  chosen: number,
): number {
  const most = Math.min(limits.mostKept, (sizes[chosen] ?? 0) + limits.keep / 2);
  let place = chosen;
  while (place > from && isUserTurn(messages[place - 1])) {
    place -= 1;
    if (!places.isTurn(place) || (sizes[place] ?? 0) > most) return chosen;
  }
  return place === from && !isCut ? chosen : place;
}

const userRoles: ReadonlySet<string> = new Set(["user", "custom", "bashExecution", "branchSummary"]);

/** Whether the model sees the message as a user message. */
function isUserTurn(message: ContextMessage | undefined): boolean {
  return message !== undefined && userRoles.has(message.role);
}

/** Cut point `i` is before `messages[i]`. */
interface CutPlaces {
  /** Whether a user turn starts here and no call is pending. */
  isTurn(place: number): boolean;
  /**
   * Whether this is a valid cut point inside a turn. The next message must be an answer, and it must follow answered
   * calls or an answer without calls.
   */
  isInner(place: number): boolean;
}

/**
 * Finds the valid cut points. `from` is the start of the conversation. With `isCut`, older messages exist, and a result
 * without a call is assumed to answer a call in one of them.
 */
function findCutPlaces(messages: readonly ContextMessage[], from: number, isCut: boolean): CutPlaces {
  const open = countOpenCalls(messages, from, isCut);
  const isFree = (place: number) => place >= from && open[place] === 0;
  return {
    isTurn: (place) => isFree(place) && isUserTurn(messages[place]),
    isInner: (place) =>
      place > from &&
      isFree(place) &&
      messages[place]?.role === "assistant" &&
      (messages[place - 1]?.role === "toolResult" || messages[place - 1]?.role === "assistant"),
  };
}

/** Counts, for each cut point, the calls before it whose results come after it. */
function countOpenCalls(messages: readonly ContextMessage[], from: number, isCut: boolean): Int32Array {
  const steps = new Int32Array(messages.length + 2);
  const span = (first: number, last: number) => {
    steps[first] = (steps[first] ?? 0) + 1;
    steps[last + 1] = (steps[last + 1] ?? 0) - 1;
  };
  /** For each ID, the last call that has no result so far. */
  const callOf = new Map<string, number>();
  for (let index = from; index < messages.length; index++) {
    const message = messages[index];
    if (message?.role === "assistant") {
      for (const block of message.content) if (block.type === "toolCall") callOf.set(block.id, index);
    } else if (message?.role === "toolResult") {
      const call = callOf.get(message.toolCallId);
      if (call !== undefined) span(call + 1, index);
      else if (isCut) span(from, index);
      callOf.delete(message.toolCallId);
    }
  }
  for (let place = 1; place < steps.length; place++)
    steps[place] = (steps[place] ?? 0) + (steps[place - 1] ?? 0);
  return steps;
}
