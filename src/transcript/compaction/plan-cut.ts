import type { ContextMessage, SessionContext } from "../../core/context.ts";
import { estimateTokens } from "../estimate-tokens.ts";
import { visibleMessage } from "../visible-message.ts";
import type { CompactionLimits } from "./limits.ts";
import { compactionLimits } from "./limits.ts";

/** Where a context is cut in two: what a summary is to stand in for, and what is kept word for word. */
export interface CutPlan {
  readonly firstKeptEntryId: string;
  /** What a summary has to stand in for beside the previous one, oldest first. */
  readonly toSummarize: readonly ContextMessage[];
  /** `entryIds[i]` is the entry that `toSummarize[i]` comes from. */
  readonly entryIds: readonly string[];
  readonly previousSummary: string | null;
  /** The compaction that the previous summary comes from. */
  readonly previousEntryId: string | null;
  /** An estimate of the whole context, the previous summary included. */
  readonly tokensBefore: number;
  readonly tokensKept: number;
  /** The kept part begins in the middle of a turn. */
  readonly splitTurn: boolean;
  /** More has to be summarized than `toSummarize`: what the byte budget left out before it. */
  readonly isCut: boolean;
}

/**
 * Why there is nothing to cut. `nothing_said`: the context is empty. `only_summary`: nothing since the last compaction.
 * `all_recent`: all of it is to be kept. `one_turn`: one turn, and no place in it.
 */
export type NothingToCut = "nothing_said" | "only_summary" | "all_recent" | "one_turn";

interface CutOptions {
  readonly contextWindow: number;
  /** How many compactions this run has had; each further one keeps half as much. */
  readonly compactions?: number;
}

type Cuttable = Pick<SessionContext, "messages" | "entryIds" | "cut">;

/** An estimate of what a message of the context comes to in a request. */
export function messageTokens(message: ContextMessage): number {
  const visible = visibleMessage(message);
  return visible === null ? 0 : estimateTokens([visible]);
}

/**
 * Decides the cut of a context. What is summarized begins where the context begins, behind the previous summary: at the
 * first entry that the previous compaction kept.
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
 * Whether the turn that the kept part begins in began before it. A note or a command at its head is no ask: then it
 * depends on what stands before, somebody's words or a result that is not answered yet.
 */
function isMidTurn(messages: readonly ContextMessage[], from: number, place: number): boolean {
  if (!isUserTurn(messages[place])) return true;
  for (let at = place; isUserTurn(messages[at]); at++) if (messages[at]?.role === "user") return false;
  let before = place - 1;
  while (before >= from && isUserTurn(messages[before]) && messages[before]?.role !== "user") before -= 1;
  const role = before < from ? undefined : messages[before]?.role;
  return role === "user" || role === "toolResult";
}

/** What all messages from each on come to. */
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

/** The first kept message; `null`: there is no place to cut at. */
function chooseCut(body: Body, places: CutPlaces): number | null {
  const { messages, from, limits, isCut } = body;
  const sizeAt = (place: number) => body.sizes[place] ?? 0;
  const turns: number[] = [];
  // Where nothing stands before it, a cut at the very beginning would summarize nothing.
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
  // Little would be kept: the turn before is taken in, whole if it is not too large, else in part.
  const before = turns[index - 1];
  if (before !== undefined && sizeAt(before) <= limits.mostKept) return before;
  if (sizeAt(before ?? from) <= limits.mostKept) return extendToUserRun(body, places, chosen);
  const within = inner(before ?? from, chosen);
  return within !== null && sizeAt(within) <= limits.keep ? within : extendToUserRun(body, places, chosen);
}

/** What the user said in one go, a hook's words before a prompt among it, is kept together where that costs little. */
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

/** Where a conversation may be cut in two so that each half still makes sense to a provider. */

const userRoles: ReadonlySet<string> = new Set(["user", "custom", "bashExecution", "branchSummary"]);

/** Whether a message begins a turn, or belongs to what begins one: whatever the model sees as the user's. */
function isUserTurn(message: ContextMessage | undefined): boolean {
  return message !== undefined && userRoles.has(message.role);
}

/** Tells of each place between two messages what it is. Place `i` is the one before `messages[i]`. */
interface CutPlaces {
  /** A user turn begins here, and no call is open. */
  isTurn(place: number): boolean;
  /** Inside a turn: the answer goes on behind an answered call group, or behind an answer without calls. */
  isInner(place: number): boolean;
}

/**
 * `from` is where the conversation begins. With `isCut` more of it stands before: a result without a call is then taken
 * to answer one there.
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

/** How many calls are on one side of a place and their results on the other. */
function countOpenCalls(messages: readonly ContextMessage[], from: number, isCut: boolean): Int32Array {
  const steps = new Int32Array(messages.length + 2);
  const span = (first: number, last: number) => {
    steps[first] = (steps[first] ?? 0) + 1;
    steps[last + 1] = (steps[last + 1] ?? 0) - 1;
  };
  /** The last call of an id that has no result yet. */
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
