import type { ContextMessage } from "../../core/context.ts";
import type { SectionId } from "./check-summary.ts";
import type { CompactionMode } from "./chunks.ts";
import { chunkTokens, splitChunks, splitChunksBackwards } from "./chunks.ts";
import { conversationText } from "./conversation-text.ts";
import { compactionLimits, minContextWindow } from "./limits.ts";
import type { Asks } from "./pending-request.ts";
import {
  addEarlierAsks,
  appendRequest,
  findPendingRequest,
  noAsks,
  removeRequest,
} from "./pending-request.ts";
import type { CutPlan } from "./plan-cut.ts";
import { messageTokens } from "./plan-cut.ts";
import type { PromptParts } from "./prompts.ts";
import type { PieceSummary, Summarize, SummaryFailure } from "./summarize-piece.ts";
import { summarizePiece } from "./summarize-piece.ts";
import type { TouchedFiles } from "./touched-files.ts";
import { collectFiles, mergeFiles, noFiles } from "./touched-files.ts";

export interface SummaryOptions {
  readonly summarize: Summarize;
  /** `safeguard` uses smaller chunks, checks each answer, and requests it again if something is missing. */
  readonly mode: CompactionMode;
  readonly contextWindow: number;
  /** In safeguard mode, the share of the window that one request can fill. Defaults to half. */
  readonly maxHistoryShare?: number;
  readonly instructions?: string;
  readonly signal?: AbortSignal;
  /** The files listed by the previous compaction. */
  readonly files?: TouchedFiles;
  /** The messages before a plan with `isCut`, in pages, newest page first. */
  readonly older?: AsyncIterable<readonly ContextMessage[]>;
}

/** Estimated tokens for all requests to the summarizer. */
export interface SummaryUsage {
  readonly requests: number;
  readonly input: number;
  readonly output: number;
}

export interface Summary {
  readonly text: string;
  /** The number of pieces that the range was split into. */
  readonly chunks: number;
  readonly retried: boolean;
  /** Sections that are still missing. */
  readonly missing: readonly SectionId[];
  readonly files: TouchedFiles;
  readonly usage: SummaryUsage;
  /** The number of tokens in messages that were read from `older`. */
  readonly olderTokens: number;
}

/** Summarizes the planned range, or returns the reason for the failure. Rejects only if `older` rejects. */
export async function makeSummary(plan: CutPlan, options: SummaryOptions): Promise<Summary | SummaryFailure> {
  const gathered = new SummaryRange(plan, options);
  // The summary does not have to mention an older request, because the first pieces do not contain it.
  const latest = gathered.asks.said?.text ?? null;
  let notes: PieceSummary | null = null;
  let chunks = 0;
  let retried = false;
  // The remaining pieces, in order. If a piece does not fit, it is split, and so are all the pieces after it.
  let { contextWindow } = options;
  const pieces = gathered.pieces();
  let waiting: Piece[] = [];
  for (;;) {
    if (waiting.length === 0) {
      const { done, value } = await pieces.next();
      if (done === true) break;
      waiting = splitPiece(value, { ...options, contextWindow });
    }
    const piece = waiting[0] as Piece;
    const made = await summarizePiece(
      {
        conversation: piece.texts.join("\n\n"),
        summary: notes?.text ?? piece.before,
        order: piece.order,
        splitTurn: piece.isEnd && plan.splitTurn,
        files: gathered.files,
        ...(options.instructions === undefined ? {} : { instructions: options.instructions }),
      },
      { ...options, contextWindow, ask: piece.isEnd || plan.isCut ? latest : null, spent: gathered.spent },
    );
    if ("failure" in made) {
      if (made.failure !== "overflow" || contextWindow / 2 < minContextWindow) return made;
      contextWindow = Math.floor(contextWindow / 2);
      waiting = waiting.flatMap((each) => splitPiece(each, { ...options, contextWindow }));
      continue;
    }
    waiting = waiting.slice(1);
    notes = made;
    chunks += 1;
    retried ||= made.retried;
  }
  if (notes === null)
    return { failure: "nothing_said", note: "the range contains nothing that a model sees" };
  const { requestTokens } = compactionLimits(contextWindow);
  const text = appendRequest(notes.text, findPendingRequest(plan, gathered.asks), requestTokens);
  const { files, usage, olderTokens } = gathered;
  return { text, chunks, retried, missing: notes.missing, files, usage, olderTokens };
}

interface Piece {
  readonly texts: readonly string[];
  readonly order: PromptParts["order"];
  /** `true` if the piece contains the end of the range. */
  readonly isEnd: boolean;
  /** The summary that the first piece updates. */
  readonly before: string | null;
}

/** Splits a piece into smaller ones that fit the window, in processing order. */
function splitPiece(piece: Piece, options: SummaryOptions): Piece[] {
  const { contextWindow, mode, maxHistoryShare } = options;
  const chunks = [...splitChunks(piece.texts, chunkTokens(contextWindow, mode, maxHistoryShare))];
  const last = chunks.at(-1);
  const pieces = chunks.map((texts) => ({ ...piece, texts, isEnd: piece.isEnd && texts === last }));
  return piece.order === "older" ? pieces.toReversed() : pieces;
}

/** Reads the range in pieces and collects files, requests and usage. */
class SummaryRange {
  readonly #plan: CutPlan;
  readonly #options: SummaryOptions;
  files: TouchedFiles;
  asks: Asks;
  usage: SummaryUsage = { requests: 0, input: 0, output: 0 };
  olderTokens = 0;

  constructor(plan: CutPlan, options: SummaryOptions) {
    this.#plan = plan;
    this.#options = options;
    this.files = mergeFiles(options.files ?? noFiles, collectFiles(plan.toSummarize));
    this.asks = addEarlierAsks(noAsks, plan.toSummarize);
  }

  readonly spent = (input: number, output: number): void => {
    const { usage } = this;
    this.usage = { requests: usage.requests + 1, input: usage.input + input, output: usage.output + output };
  };

  /**
   * Yields the oldest piece first, and each piece updates the notes. With `isCut`, the newest piece comes first,
   * because older messages are read only as needed. The previous summary is then the oldest text.
   */
  async *pieces(): AsyncGenerator<Piece> {
    const { isCut, previousSummary, toSummarize } = this.#plan;
    const { contextWindow, mode, maxHistoryShare } = this.#options;
    const most = chunkTokens(contextWindow, mode, maxHistoryShare);
    if (isCut) {
      let isEnd = true;
      for await (const texts of splitChunksBackwards(this.#pages(), most)) {
        yield { texts, order: "older", isEnd, before: null };
        isEnd = false;
      }
      return;
    }
    const before = previousSummary === null ? null : removeRequest(previousSummary);
    const pieces = [...splitChunks(textsOf(toSummarize), most)];
    for (const texts of pieces) yield { texts, order: "newer", isEnd: texts === pieces.at(-1), before };
  }

  async *#pages(): AsyncGenerator<readonly string[]> {
    const { toSummarize, previousSummary } = this.#plan;
    yield textsOf(toSummarize);
    for await (const messages of this.#options.older ?? []) {
      this.files = mergeFiles(collectFiles(messages), this.files);
      this.asks = addEarlierAsks(this.asks, messages);
      this.olderTokens += messages.reduce((sum, message) => sum + messageTokens(message), 0);
      yield textsOf(messages);
    }
    if (previousSummary === null) return;
    yield textsOf([{ role: "compactionSummary", summary: removeRequest(previousSummary), timestamp: 0 }]);
  }
}

function textsOf(messages: readonly ContextMessage[]): string[] {
  return messages.map(conversationText).filter((text) => text !== null);
}
