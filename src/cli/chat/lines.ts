import type { Interface } from "node:readline/promises";
import { createInterface } from "node:readline/promises";
import type { TerminalInput } from "../output/terminal.ts";

export interface LineHandlers {
  line(text: string): void;
  interrupt(): void;
  /** There is no more. */
  end(): void;
}

const prompt = "› ";

/** What is typed or piped in, a line at a time, with a prompt where a person types. */
export class Lines {
  readonly #interface: Interface;
  readonly #isTyped: boolean;
  #isPrompting = false;

  constructor({ stream, typed }: TerminalInput, handlers: LineHandlers) {
    this.#isTyped = typed;
    this.#interface = createInterface({
      input: stream,
      ...(typed ? { output: process.stdout } : {}),
      terminal: typed,
      prompt,
      crlfDelay: Number.POSITIVE_INFINITY,
    });
    this.#interface.on("line", (text) => {
      this.#isPrompting = false;
      handlers.line(text);
    });
    // In the terminal's raw mode Ctrl-C is a key and no signal.
    this.#interface.on("SIGINT", () => handlers.interrupt());
    this.#interface.on("close", () => handlers.end());
  }

  /** Asks for the next line; what was typed of it already stays. */
  prompt(): void {
    if (!this.#isTyped || this.#isPrompting) return;
    this.#isPrompting = true;
    this.#interface.prompt(true);
  }

  /** Takes the prompt away before something else is printed. */
  makeRoom(write: (text: string) => void): void {
    if (!this.#isPrompting) return;
    this.#isPrompting = false;
    write("\r\u001b[J");
  }

  close(): void {
    this.#interface.close();
  }
}
