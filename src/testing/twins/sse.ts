import { cutText } from "../../core/text.ts";

/** One server-sent event as it goes over the wire. `name` is left out where the provider sends none. */
export function sseEvent(
  data: unknown,
  options: { readonly name?: string; readonly end?: string } = {},
): string {
  const { name, end = "\n" } = options;
  return `${name === undefined ? "" : `event: ${name}${end}`}data: ${JSON.stringify(data)}${end}${end}`;
}

const longest = 16;

/** The text in the pieces that a stream has it in: two or more wherever there are two characters. */
export function inPieces(text: string): readonly string[] {
  const size = Math.max(1, Math.min(longest, Math.ceil(text.length / 2)));
  const pieces: string[] = [];
  for (let at = 0; at < text.length; ) {
    const piece = cutText(text.slice(at, at + size + 1), size) || text.slice(at, at + 2);
    pieces.push(piece);
    at += piece.length;
  }
  return pieces;
}
