/** Where a reader stopped in a transcript: the first visible entry, and how many of its pixels are above the view. */
export interface ReadingPosition {
  readonly id: string;
  readonly offset: number;
}

const positions = new Map<string, ReadingPosition>();

/**
 * Returns where the reader left a page, if the browser has gone back or forward to it. A link to the same page is another
 * item of the browser's history and opens at the end.
 */
export function readPosition(page: string): ReadingPosition | null {
  return positions.get(historyKey(page)) ?? null;
}

/** `null` means the end of the transcript, which is not a position, because the end moves on. */
export function notePosition(page: string, position: ReadingPosition | null): void {
  if (position === null) positions.delete(historyKey(page));
  else positions.set(historyKey(page), position);
}

/** Browsers without the Navigation API do not name the items of their history. There, pages open at their end. */
function historyKey(page: string): string {
  const item = "navigation" in globalThis ? navigation.currentEntry?.key : undefined;
  return `${item ?? crypto.randomUUID()} ${page}`;
}
