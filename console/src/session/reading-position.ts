/** Where a reader stopped in a transcript: the first visible entry, and how many of its pixels are above the view. */
export interface ReadingPosition {
  readonly id: string;
  readonly offset: number;
}

const positions = new Map<string, ReadingPosition>();

/**
 * Returns where the reader left a page, if the browser has gone back or forward to it. A link to the same page creates
 * another history entry and opens at the end.
 */
export function readPosition(page: string): ReadingPosition | null {
  return positions.get(historyKey(page)) ?? null;
}

/**
 * Stores the position. `null` means the end of the transcript, for which no position is stored, because the end moves.
 */
export function notePosition(page: string, position: ReadingPosition | null): void {
  if (position === null) positions.delete(historyKey(page));
  else positions.set(historyKey(page), position);
}

/**
 * Browsers without the Navigation API do not identify their history entries. In those browsers, pages open at the end.
 */
function historyKey(page: string): string {
  const item = "navigation" in globalThis ? navigation.currentEntry?.key : undefined;
  return `${item ?? crypto.randomUUID()} ${page}`;
}
