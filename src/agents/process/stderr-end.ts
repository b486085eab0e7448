import { StringDecoder } from "node:string_decoder";
import { endOfText, escapeToLine } from "../../core/text.ts";
import type { ChildEnd } from "./contract.ts";

const keptChars = 8192;
const shownChars = 600;

/** The end of what a process wrote to its stderr. */
export class StderrEnd {
  readonly #decoder = new StringDecoder("utf8");
  #text = "";

  take(chunk: Buffer): void {
    this.#text = endOfText(this.#text + this.#decoder.write(chunk), keptChars);
  }

  get line(): string {
    return escapeToLine(endOfText(this.#text.trim(), shownChars));
  }
}

/** How a process ended and what it said last; blank: it runs, and has said nothing. */
export function accountOf(end: ChildEnd | null, stderr: StderrEnd): string {
  const { line } = stderr;
  return [...(end === null ? [] : [endText(end)]), ...(line === "" ? [] : [`its stderr ends: ${line}`])].join(
    "; ",
  );
}

function endText({ code, signal }: ChildEnd): string {
  return signal === null ? `it ended with code ${code}` : `it was ended by ${signal}`;
}
