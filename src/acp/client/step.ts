import type { AssistantBlock, TextBlock, ThinkingBlock } from "../../core/messages.ts";
import { cutText, endOfText } from "../../core/text.ts";
import { AgentCall, maxArgumentChars } from "./tool-call.ts";

/** The limit for the text of one step. After each call, at least `minCharsAfterCall` characters remain available. */
const maxStepChars = 400_000;
const minCharsAfterCall = 20_000;
/** The limit for the arguments of all calls combined. Each call can always use `minArgumentChars` characters. */
const maxAllArgumentChars = 400_000;
const minArgumentChars = 2000;
/**
 * The maximum number of calls in one step. It is far below one thousand, because the guard searches only the last
 * thousand entries for the call that a result belongs to.
 */
export const maxStepCalls = 100;

/**
 * One assistant message, with text and calls in order. A step accepts nothing more once one of its calls has ended.
 * Text after the last call belongs to the next step.
 */
export class Step {
  readonly #parts: (TextBuffer | AgentCall)[] = [];
  #text: TextBuffer;
  #charsLeft = maxStepChars;
  #callCount = 0;
  /** Calls whose results can be written, in the order in which they ended. */
  readonly #ended: AgentCall[] = [];
  #answeredCount = 0;
  isClosed = false;
  isWritten = false;

  constructor(text = new TextBuffer(maxStepChars)) {
    this.#text = text;
  }

  get isFull(): boolean {
    return this.#callCount === maxStepCalls;
  }

  get isAnswered(): boolean {
    return this.#answeredCount === this.#callCount;
  }

  addText(kind: TextKind, messageId: string | null, text: string): void {
    this.#text.add(kind, messageId, text);
  }

  addCall(call: AgentCall): void {
    this.#charsLeft = Math.max(minCharsAfterCall, this.#charsLeft - this.#text.length);
    this.#parts.push(this.#text, call);
    this.#text = new TextBuffer(this.#charsLeft);
    this.#callCount++;
  }

  openCalls(): readonly AgentCall[] {
    return this.#parts.filter((part) => part instanceof AgentCall && part.result === null) as AgentCall[];
  }

  endCall(call: AgentCall): void {
    this.#ended.push(call);
  }

  /** Returns the next step, which starts with the text after this step's last call. */
  close(): Step {
    this.isClosed = true;
    return new Step(this.#text);
  }

  /** Returns the content of the assistant message, without the text after its last call. */
  write(): AssistantBlock[] {
    this.isWritten = true;
    let left = maxAllArgumentChars;
    return this.#parts.flatMap((part): AssistantBlock[] => {
      if (part instanceof TextBuffer) return part.blocks();
      const block = part.write(Math.max(minArgumentChars, Math.min(left, maxArgumentChars)));
      left -= JSON.stringify(block.arguments).length;
      return [block];
    });
  }

  /** Returns the text after the last call. */
  textBlocks(): AssistantBlock[] {
    return this.#text.blocks();
  }

  /** Returns the calls whose results must be written now. Each call is returned only once. */
  takeEnded(): readonly AgentCall[] {
    const ended = this.#ended.splice(0);
    this.#answeredCount += ended.length;
    return ended;
  }
}

export type TextKind = "text" | "thinking";

interface Piece {
  readonly kind: TextKind;
  readonly messageId: string | null;
  text: string;
}

/**
 * Joins text chunks of the same kind and message into blocks. If the text exceeds `maxChars`, only its beginning and
 * end are kept, with a note between them. Adding a chunk takes amortized constant time, and memory stays within the
 * limit.
 */
export class TextBuffer {
  readonly #head: Piece[] = [];
  #headLeft: number;
  #tail: Piece[] = [];
  #tailLength = 0;
  readonly #maxTail: number;
  #leftOut = 0;

  constructor(maxChars: number) {
    this.#maxTail = Math.ceil(maxChars * 0.3);
    this.#headLeft = maxChars - this.#maxTail;
  }

  get isEmpty(): boolean {
    return this.#head.length === 0 && this.#tail.length === 0;
  }

  get length(): number {
    return totalLength(this.#head) + Math.min(this.#tailLength, this.#maxTail);
  }

  add(kind: TextKind, messageId: string | null, text: string): void {
    const first = cutText(text, this.#headLeft);
    append(this.#head, kind, messageId, first);
    const rest = text.slice(first.length);
    this.#headLeft = rest === "" ? this.#headLeft - first.length : 0;
    append(this.#tail, kind, messageId, rest);
    this.#tailLength += rest.length;
    // Trimming takes time proportional to the tail, so it is not done for every chunk.
    if (this.#tailLength > 2 * this.#maxTail) this.#trim();
  }

  blocks(): (TextBlock | ThinkingBlock)[] {
    return this.#pieces().map(({ kind, text }) =>
      kind === "text" ? { type: "text", text } : { type: "thinking", thinking: text },
    );
  }

  /** Returns the text without thinking, with a line break between messages. */
  toString(): string {
    const texts = this.#pieces().filter(({ kind }) => kind === "text");
    return texts.map(({ text }) => text).join("\n");
  }

  #pieces(): readonly Piece[] {
    if (this.#tailLength > this.#maxTail) this.#trim();
    const pieces = this.#head.map((piece) => ({ ...piece }));
    const note = this.#leftOut === 0 ? "" : `\n[… ${this.#leftOut} characters omitted …]\n`;
    for (const [index, { kind, messageId, text }] of this.#tail.entries())
      append(pieces, kind, messageId, index === 0 ? `${note}${text}` : text);
    return pieces;
  }

  #trim(): void {
    let [index, excess] = [0, this.#tailLength - this.#maxTail];
    for (const { text } of this.#tail) {
      if (excess < text.length) break;
      excess -= text.length;
      index++;
    }
    this.#tail = this.#tail.slice(index);
    const [first] = this.#tail;
    if (first !== undefined) first.text = endOfText(first.text, first.text.length - excess);
    const length = totalLength(this.#tail);
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

function totalLength(pieces: readonly Piece[]): number {
  return pieces.reduce((sum, { text }) => sum + text.length, 0);
}
