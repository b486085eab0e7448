/** Lines of a text with their ends, from `first` (1 is the first) on, at most `most`. */
export function linesOf(text: string, first: number, most: number): string {
  let from = 0;
  for (let line = 1; line < first && from < text.length; line++) from = endOfLine(text, from);
  let to = from;
  for (let line = 0; line < most && to < text.length; line++) to = endOfLine(text, to);
  return text.slice(from, to);
}

function endOfLine(text: string, from: number): number {
  const end = text.indexOf("\n", from);
  return end === -1 ? text.length : end + 1;
}
