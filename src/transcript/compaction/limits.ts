/** How a compaction divides a context window, in tokens unless stated otherwise. */

/** Reserved for the answer. A compaction is due when the context exceeds the rest of the window. */
const maxReserve = 20_000;
const reserveShare = 0.25;
/** The maximum number of recent tokens that are kept verbatim. */
const maxRecent = 20_000;
const recentShare = 0.4;
/** The share of the reserve that a summary can use. */
const summaryShare = 0.8;
/** The share of the window that the quoted pending request can take up in a summary. */
const requestShare = 0.05;

/** A smaller window cannot hold both the instructions and a conversation. */
export const minContextWindow = 2000;

/** Longer text is rejected as a summary. */
export const maxSummaryCharacters = 16_000;

/** If a run needs more compactions than this, compaction cannot solve its problem. */
export const maxCompactions = 3;

export interface CompactionLimits {
  readonly reserve: number;
  /** A compaction is due above this many tokens. */
  readonly threshold: number;
  /** Approximately how many tokens of recent conversation are kept. */
  readonly keep: number;
  /** A last turn of up to this size is kept whole. A larger one is split. */
  readonly mostKept: number;
  readonly summaryTokens: number;
  readonly requestTokens: number;
}

/** Returns the limits for a compaction. Each additional compaction in a run keeps half as much as the previous one. */
export function compactionLimits(contextWindow: number, compactions = 0): CompactionLimits {
  const window = Math.max(0, contextWindow);
  const halved = 2 ** Math.max(0, compactions);
  const reserve = Math.floor(Math.min(maxReserve, window * reserveShare));
  const threshold = window - reserve;
  const keep = Math.floor(Math.min(maxRecent, window * recentShare) / halved);
  const mostKept = Math.max(keep, Math.floor(threshold / 2 / halved));
  const summaryTokens = Math.floor(reserve * summaryShare);
  const requestTokens = Math.floor(window * requestShare);
  return { reserve, threshold, keep, mostKept, summaryTokens, requestTokens };
}

export interface ContextSize {
  /**
   * The size of the next request: the last count that the provider has reported since the last compaction, adjusted by
   * the estimated difference between the two requests. Without such a count, all of it is an estimate.
   */
  readonly tokens: number;
  readonly contextWindow: number;
  /** The entry at which the byte budget ran out. Older entries can only be summarized. */
  readonly cut?: string | null;
}

export function shouldCompact({ tokens, contextWindow, cut = null }: ContextSize): boolean {
  return cut !== null || tokens > compactionLimits(contextWindow).threshold;
}

/**
 * Returns the maximum total size, in bytes, of the entries that a context is built from. Older entries are read in
 * pages.
 */
export function byteBudgetFor(contextWindow: number): number | undefined {
  return Number.isFinite(contextWindow) && contextWindow > 0 ? Math.ceil(8 * contextWindow) : undefined;
}
