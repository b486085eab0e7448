import { escapeUnprintable } from "../../core/text.ts";

/** Text that arrives in pieces, made harmless: lines stay lines, and no control character reaches the terminal. */
export class SafeStream {
  /** The end of a piece that only the next one decides about: half a character, or a carriage return before a newline. */
  #held = "";

  push(piece: string): string {
    const text = this.#held + piece;
    const last = text.charCodeAt(text.length - 1);
    const isOpen = last === 0x0d || (last >= 0xd800 && last <= 0xdbff);
    this.#held = isOpen ? text.slice(-1) : "";
    return safeText(isOpen ? text.slice(0, -1) : text);
  }

  /** What was still held back. */
  end(): string {
    const text = this.#held;
    this.#held = "";
    return safeText(text);
  }
}

/** A text of several lines without control characters. */
export function safeText(text: string): string {
  return escapeUnprintable(text.replaceAll("\r\n", "\n"));
}
