import { stringifyJson } from "../../core/json.ts";
import { readKey } from "../../core/keys.ts";
import type { TurnEvent } from "../../sessions/turn-handle.ts";
import { SafeStream } from "./format.ts";
import type { Terminal } from "./terminal.ts";
import { oneLine, paint } from "./terminal.ts";

interface PrinterOptions {
  /** The stream on which tools, children and notes are printed, or `null` if they are not printed. */
  readonly notes: "out" | "err" | null;
  /** `true` to print answers on `err`, dimmed, with a marker before each line. */
  readonly asides?: boolean;
  /** Whether answers are streamed. */
  readonly text: boolean;
  readonly thinking: boolean;
  /** Called before anything is printed so that a prompt can be cleared. */
  before?(): void;
}

const longestLine = 160;
const longestNote = 5000;

/** Prints the events in turns. Answers are printed as they arrive, and every other event as one line. */
export class TurnPrinter {
  readonly #terminal: Terminal;
  readonly #options: PrinterOptions;
  #stream = new SafeStream();
  #kind: "text" | "thinking" | null = null;
  #isLineOpen = false;
  readonly #printedOnce = new Set<string>();

  constructor(terminal: Terminal, options: PrinterOptions) {
    this.#terminal = terminal;
    this.#options = options;
  }

  show(event: TurnEvent): void {
    if (event.type === "text" || event.type === "thinking") this.#delta(event.type, event.delta);
    else {
      const note = noteFor(event);
      const columns = Math.min(longestLine, this.#terminal.columns) - 2;
      if (note !== null)
        this.note(note.isName === true ? note.text : oneLine(note.text, columns), note.sign, note.once);
    }
  }

  /** Prints a whole answer that was not streamed. */
  answer(text: string): void {
    this.endLine();
    this.#write("out", new SafeStream().push(text.endsWith("\n") ? text : `${text}\n`));
  }

  note(text: string, sign = "·", once?: string): void {
    const { notes } = this.#options;
    if (notes === null || (once !== undefined && this.#printedOnce.has(once))) return;
    if (once !== undefined) this.#printedOnce.add(once);
    this.endLine();
    const line = oneLine(`${sign} ${text}`, longestNote);
    this.#write(notes, `${paint(this.#terminal, "dim", line, notes)}\n`);
  }

  lines(text: string): void {
    this.endLine();
    this.#write("out", text);
  }

  endLine(): void {
    const rest = this.#stream.end();
    if (rest !== "") this.#piece(rest);
    if (this.#isLineOpen) this.#write(this.#to, "\n");
    this.#isLineOpen = false;
    this.#kind = null;
  }

  #delta(kind: "text" | "thinking", delta: string): void {
    const isWanted = kind === "text" ? this.#options.text : this.#options.thinking;
    if (!isWanted || delta === "") return;
    if (this.#kind !== kind) this.endLine();
    this.#kind = kind;
    const text = this.#stream.push(delta);
    if (text !== "") this.#piece(text);
  }

  get #to(): "out" | "err" {
    return this.#options.asides === true ? "err" : "out";
  }

  #piece(text: string): void {
    const isAside = this.#options.asides === true;
    const shown = isAside ? markLines(text, this.#isLineOpen) : text;
    const isDim = isAside || this.#kind === "thinking";
    this.#write(this.#to, isDim ? paint(this.#terminal, "dim", shown, this.#to) : shown);
    this.#isLineOpen = !text.endsWith("\n");
  }

  #write(to: "out" | "err", text: string): void {
    this.#options.before?.();
    this.#terminal[to](text);
  }
}

function markLines(text: string, isLineOpen: boolean): string {
  return (isLineOpen ? text : `│ ${text}`).replace(/\n(?=.|\n)/gs, "\n│ ");
}

interface Told {
  readonly text: string;
  readonly sign?: string;
  /** `true` if the text is a name that commands accept, in which case it is not truncated. */
  readonly isName?: true;
  /** If set, the line is printed once per value. */
  readonly once?: string;
}

function noteFor(event: TurnEvent): Told | null {
  switch (event.type) {
    case "tool_call":
      return { sign: "→", text: `${event.name} ${stringifyJson(event.args)}` };
    case "tool_result":
      return { sign: event.isError ? "✗" : "←", text: `${event.name}: ${textIn(event.content)}` };
    case "child": {
      const { childRunId, childSessionKey, state } = event;
      const text = `${shortKey(childSessionKey)}: ${state}`;
      return { sign: "↳", text, isName: true, once: `${childRunId} ${state}` };
    }
    case "retry":
      return {
        text: `retrying in ${Math.ceil(event.delayMs / 1000)} s and discarding the text so far: ${event.error}`,
      };
    case "compaction":
      return {
        text: `freeing context (${event.measure}): ${event.phase.replace("_", " ")}${event.note === undefined ? "" : `, ${event.note}`}`,
      };
    case "approval":
      return event.answer === null ? null : { text: `${event.answer}` };
    default:
      return null;
  }
}

function textIn(content: readonly unknown[]): string {
  const texts = content.map((block) => {
    const { type, text } = block as { readonly type?: unknown; readonly text?: unknown };
    return typeof text === "string" ? text : `[${String(type)}]`;
  });
  return texts.join(" ");
}

/** Returns a sub-agent's short key, as its parent would write it. */
export function shortKey(key: string): string {
  const parsed = readKey(key);
  return "problem" in parsed || parsed.form !== "subagent" ? key : `subagent:${parsed.spawnId}`;
}
