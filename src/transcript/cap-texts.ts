import { cutText, endOfText } from "../core/text.ts";

/** A tool result may hold so many characters, over all its text blocks. */
export const mostResultCharacters = 400_000;
/** What each block keeps at least. */
const leastPerBlock = 2000;

/**
 * Cuts texts so that together they hold at most `most` characters: each in proportion to its length, but at least
 * 2,000, its head and its tail kept and a note between them; where not even the note has room, the head alone. The same
 * array when they fit.
 */
export function capTexts(
  texts: readonly string[],
  noteOf: (index: number) => string,
  most = mostResultCharacters,
): readonly string[] {
  const total = texts.reduce((sum, text) => sum + text.length, 0);
  if (total <= most) return texts;
  const shares = shareOut(
    texts.map((text) => text.length),
    most,
  );
  return texts.map((text, index) => capText(text, noteOf(index), shares[index] ?? leastPerBlock));
}

/** Short texts keep all of theirs; the others share what is left in proportion. */
function shareOut(lengths: readonly number[], most: number): number[] {
  const least = Math.min(leastPerBlock, Math.floor(most / lengths.length));
  const small = lengths.map((length) => length <= least);
  const left =
    most - lengths.reduce((sum, length, index) => sum + (small[index] === true ? length : least), 0);
  const large = lengths.reduce((sum, length, index) => sum + (small[index] === true ? 0 : length - least), 0);
  return lengths.map((length, index) =>
    small[index] === true ? length : least + Math.floor((left * (length - least)) / Math.max(1, large)),
  );
}

function capText(text: string, note: string, longest: number): string {
  if (text.length <= longest) return text;
  const room = longest - note.length;
  if (room < 2) return cutText(text, longest);
  const head = cutText(text, Math.ceil(room * 0.7));
  return `${head}${note}${endOfText(text, room - head.length)}`;
}
