/** How much of a context window a compaction concerns itself with, all in tokens unless it says otherwise. */

/** Room that stays free for the answer; beyond it a compaction is due. */
const maxReserve = 20_000;
const reserveShare = 0.25;
/** What is kept word for word. */
const maxRecent = 20_000;
const recentShare = 0.4;
/** Of the reserve, what a summary may take. */
const summaryShare = 0.8;
/** Of the window, what the request under way may take in a summary. */
const requestShare = 0.05;

/** In a smaller window there is no room for our own instructions to a summarizer, and for a conversation. */
export const minContextWindow = 2000;

/** A longer summary is no summary. */
export const maxSummaryCharacters = 16_000;

/** A run that needs more than this has a problem that compaction does not solve. */
export const maxCompactions = 3;

export interface CompactionLimits {
  readonly reserve: number;
  /** Above it a compaction is due. */
  readonly threshold: number;
  /** About so much of what was said last is kept. */
  readonly keep: number;
  /** A last turn up to this size is kept whole, a larger one is cut inside. */
  readonly mostKept: number;
  readonly summaryTokens: number;
  readonly requestTokens: number;
}

/** The limits of a window; each further compaction of one run keeps half of what the one before kept. */
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
  /** What the next request comes to: counted since the last compaction where it was, else estimated. */
  readonly tokens: number;
  readonly contextWindow: number;
  /** Where a byte budget ended, as the context has it: what is older can only be had as a summary. */
  readonly cut?: string | null;
}

/** Whether a compaction is due before the next request. */
export function shouldCompact({ tokens, contextWindow, cut = null }: ContextSize): boolean {
  return cut !== null || tokens > compactionLimits(contextWindow).threshold;
}

/** How many bytes of entries a context is read from at the most; what is older is read by pages. */
export function byteBudgetFor(contextWindow: number): number | undefined {
  return Number.isFinite(contextWindow) && contextWindow > 0 ? Math.ceil(8 * contextWindow) : undefined;
}
