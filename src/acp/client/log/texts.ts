import type { TextBlock, ThinkingBlock } from "../../../core/messages.ts";
import { cutText, endOfText } from "../../../core/text.ts";

export type TextKind = "text" | "thinking";

interface Piece {
  readonly kind: TextKind;
  readonly messageId: string | null;
  text: string;
}

/**
 * Words of an agent as they come: chunks of one kind and message are one block. Of very many the head and the tail are
 * kept, and a note between them; a million chunks take a million steps, and no more room than was allowed for.
 */
export class Texts {
  readonly #head: Piece[] = [];
  #headLeft: number;
  #tail: Piece[] = [];
  #tailLength = 0;
  readonly #tailMost: number;
  #leftOut = 0;

  constructor(most: number) {
    this.#tailMost = Math.ceil(most * 0.3);
    this.#headLeft = most - this.#tailMost;
  }

  get isEmpty(): boolean {
    return this.#head.length === 0 && this.#tail.length === 0;
  }

  get length(): number {
    return lengthOf(this.#head) + Math.min(this.#tailLength, this.#tailMost);
  }

  add(kind: TextKind, messageId: string | null, text: string): void {
    const first = cutText(text, this.#headLeft);
    append(this.#head, kind, messageId, first);
    const rest = first.length === text.length ? "" : text.slice(first.length);
    this.#headLeft = rest === "" ? this.#headLeft - first.length : 0;
    append(this.#tail, kind, messageId, rest);
    this.#tailLength += rest.length;
    // Not at every chunk: each time costs as much as the tail is long.
    if (this.#tailLength > 2 * this.#tailMost) this.#trim();
  }

  blocks(): (TextBlock | ThinkingBlock)[] {
    return this.#pieces().map(({ kind, text }) =>
      kind === "text" ? { type: "text", text } : { type: "thinking", thinking: text },
    );
  }

  /** Without the thoughts; what several messages said on lines of their own. */
  toString(): string {
    return this.#pieces()
      .filter(({ kind }) => kind === "text")
      .map(({ text }) => text)
      .join("\n");
  }

  #pieces(): readonly Piece[] {
    if (this.#tailLength > this.#tailMost) this.#trim();
    const pieces = this.#head.map((piece) => ({ ...piece }));
    const note = this.#leftOut === 0 ? "" : `\n[… ${this.#leftOut} characters left out …]\n`;
    for (const [index, { kind, messageId, text }] of this.#tail.entries())
      append(pieces, kind, messageId, index === 0 ? `${note}${text}` : text);
    return pieces;
  }

  #trim(): void {
    let [at, excess] = [0, this.#tailLength - this.#tailMost];
    while (excess >= (this.#tail[at]?.text.length ?? Number.POSITIVE_INFINITY)) {
      excess -= this.#tail[at]?.text.length ?? 0;
      at++;
    }
    this.#tail = this.#tail.slice(at);
    const [first] = this.#tail;
    if (first !== undefined) first.text = endOfText(first.text, first.text.length - excess);
    const length = lengthOf(this.#tail);
    this.#leftOut += this.#tailLength - length;
    this.#tailLength = length;
  }
}

function append(pieces: Piece[], kind: TextKind, messageId: string | null, text: string): void {
  if (text === "") return;
  const last = pieces.at(-1);
  if (last?.kind === kind && last.messageId === messageId) last.text += text;
  else pieces.push({ kind, messageId, text });
}

function lengthOf(pieces: readonly Piece[]): number {
  return pieces.reduce((sum, { text }) => sum + text.length, 0);
}
