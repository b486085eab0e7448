import { createRequire } from "node:module";
import { constants, homedir } from "node:os";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import type { InspectColor } from "node:util";
import { styleText } from "node:util";
import { SkeinError } from "../../core/errors.ts";
import { stringifyJson } from "../../core/json.ts";
import { escapeToLine, escapeUnprintable } from "../../core/text.ts";

/** Where text comes in from; `typed`: line by line, from a person. */
export interface TerminalInput {
  readonly stream: NodeJS.ReadableStream;
  readonly typed: boolean;
}

/** What a command knows of the outside: where it prints, how wide that is, where the user stands. */
export interface Terminal {
  out(text: string): void;
  err(text: string): void;
  /** Whether what goes to `out`, and to `err`, may be coloured. */
  readonly color: { readonly out: boolean; readonly err: boolean };
  readonly columns: number;
  /** Relative paths are taken from here. */
  readonly cwd: string;
  /** How the user calls us. */
  readonly command: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  now(): number;
  /** Puts a question to the user and waits for a line; empty when there is none. `null`: there is nobody to ask. */
  readonly ask: ((question: string) => Promise<string>) | null;
  /** Whether a line on `err` can be drawn over, for progress. */
  readonly redraws: boolean;
  /** Whether somebody reads `out` as it is written. */
  readonly isWatched: boolean;
  /** What is typed or piped in. */
  input(): TerminalInput;
  /** Told of Ctrl-C, which then does not end the process. Returns a function that ends this. */
  onInterrupt(listener: () => void): () => void;
  /** Left out: the signals of this process. */
  readonly outside?: Outside;
}

/** What asks a gateway to stop or to reload. */
export interface Outside {
  /** `why` is for the log. Called again for every further request. Returns a function that unsubscribes. */
  onStop(stop: (why: string) => void): () => void;
  onReload(reload: () => void): () => void;
  /** Ends the process at once. */
  exit(code: number): void;
  /** How long open runs may go on after a stop request; by default as the gateway decides. */
  readonly graceMs?: number;
}

/** The terminal of this process. Under `npm run skein` the user stands where npm was called, not at the root. */
export function processTerminal(): Terminal {
  const { env, stdout, stderr } = process;
  const fromOurScript = env.npm_lifecycle_event === "skein" && env.npm_package_name === "skein";
  const forced = env.FORCE_COLOR !== undefined && env.FORCE_COLOR !== "" && env.FORCE_COLOR !== "0";
  const colored = (stream: NodeJS.WriteStream) =>
    (env.NO_COLOR ?? "") === "" && (stream.isTTY === true || forced);
  return {
    out: (text) => void stdout.write(text),
    err: (text) => void stderr.write(text),
    color: { out: colored(stdout), err: colored(stderr) },
    columns: stdout.columns || 100,
    cwd: (fromOurScript ? env.INIT_CWD : undefined) ?? process.cwd(),
    command: fromOurScript ? "npm run skein --" : "skein",
    env,
    home: homedir(),
    now: () => Date.now(),
    ask: process.stdin.isTTY === true && stderr.isTTY === true ? askOnTerminal : null,
    redraws: stderr.isTTY === true,
    isWatched: stdout.isTTY === true,
    input: () => ({
      stream: process.stdin,
      typed: process.stdin.isTTY === true && stdout.isTTY === true,
    }),
    onInterrupt,
  };
}

/** The terminal keeps its own line editing, so that Ctrl-C is a signal as ever. */
async function askOnTerminal(question: string): Promise<string> {
  const lines = createInterface({ input: process.stdin, output: process.stderr, terminal: false });
  process.stderr.write(question);
  try {
    for await (const line of lines) return line;
    return "";
  } finally {
    lines.close();
  }
}

export function pathFrom(terminal: Terminal, path: string): string {
  return resolve(terminal.cwd, path);
}

export function paint(
  terminal: Terminal,
  color: InspectColor,
  text: string,
  to: "out" | "err" = "out",
): string {
  return terminal.color[to] ? styleText(color, text, { validateStream: false }) : text;
}

/** One JSON document. Characters that a terminal would obey are escaped, which leaves the document the same. */
export function printJson(terminal: Terminal, value: unknown): void {
  terminal.out(`${escapeUnprintable(stringifyJson(value))}\n`);
}

const segmenter = new Intl.Segmenter();

/** One harmless line of at most so many columns. */
export function oneLine(text: string, columns: number): string {
  const line = escapeUnprintable(text).replace(/\s+/g, " ").trim();
  const plain = /^[ -~]*$/.test(line.slice(0, columns + 1));
  if (plain)
    return line.length <= columns ? line : `${line.slice(0, Math.max(0, columns - 1))}…`.slice(0, columns);
  if (line.length <= columns && widthOf(line) <= columns) return line;
  let width = 1;
  let kept = "";
  for (const { segment } of segmenter.segment(line.slice(0, 8 * columns))) {
    width += widthOf(segment);
    if (width > columns) break;
    kept += segment;
  }
  return columns < 1 ? "" : `${kept}…`;
}

/** One harmless line, all of it: for what is to be copied. */
export function wholeLine(text: string): string {
  return oneLine(text, Number.POSITIVE_INFINITY);
}

/** A line about what was printed, such as how to go on. */
export function printNote(terminal: Terminal, text: string): void {
  terminal.out(`${paint(terminal, "dim", wholeLine(text))}\n`);
}

/** Fills up to a width in columns. */
export function pad(text: string, columns: number): string {
  return text + " ".repeat(Math.max(0, columns - widthOf(text)));
}

/** A text at the left and one at the right end of a line, which may have colours. */
export function spread(terminal: Terminal, left: string, right: string): string {
  const gap = terminal.columns - widthOf(left) - widthOf(right);
  return `${left}${" ".repeat(Math.max(1, gap))}${right}`;
}

type Measure = typeof import("string-width")["default"];

/** Its tables of characters take longer to load than the rest of what prints: loaded with the first text that needs them. */
const requireModule = createRequire(import.meta.url);

let measure: Measure | null = null;

/** The columns that a text takes on a terminal, which may have colours. */
export function widthOf(text: string): number {
  if (/^[ -~]*$/.test(text)) return text.length;
  measure ??= (requireModule("string-width") as typeof import("string-width")).default;
  return measure(text);
}

const ending = ["SIGINT", "SIGTERM", "SIGQUIT", "SIGABRT"] as const;
const listeners: (() => void)[] = [];
const stoppers: ((signal: string) => void)[] = [];

/** Makes a signal an exit like any other, so that what is to be done at the end is done: locks are given back. */
export function exitOnSignals(): void {
  for (const signal of ending) {
    process.on(signal, () => {
      const isAsked = signal === "SIGINT" || signal === "SIGTERM";
      const stopper = isAsked ? stoppers.at(-1) : undefined;
      const listener = signal === "SIGINT" ? listeners.at(-1) : undefined;
      if (stopper !== undefined) stopper(signal);
      else if (listener !== undefined) listener();
      else process.exit(128 + constants.signals[signal]);
    });
  }
}

/** Tells somebody that the process is asked to stop, by Ctrl-C or SIGTERM, instead of ending it. */
export function onStopRequest(stopper: (signal: string) => void): () => void {
  stoppers.push(stopper);
  return () => void stoppers.splice(stoppers.lastIndexOf(stopper), 1);
}

/** Tells somebody of Ctrl-C instead of ending the process by it. Returns a function that ends this. */
function onInterrupt(listener: () => void): () => void {
  listeners.push(listener);
  return () => {
    const at = listeners.lastIndexOf(listener);
    if (at !== -1) listeners.splice(at, 1);
  };
}

/** Asks before something is done for good. Goes on only with a yes: from the user, or as `--yes`. */
export async function confirm(
  terminal: Terminal,
  question: string,
  options: { readonly yes?: boolean },
): Promise<void> {
  if (options.yes === true) return;
  if (terminal.ask === null) {
    throw new SkeinError("invalid_arguments", {
      problem: "This is done for good, and there is nobody to ask",
      advice: "Add --yes to do it without asking",
    });
  }
  const answer = await terminal.ask(`${escapeToLine(question)} [y/N] `);
  if (/^y(es)?$/i.test(answer.trim())) return;
  throw new SkeinError("invalid_arguments", {
    problem: "Nothing was changed: the answer was not yes",
    advice: "Run it again and answer y, or add --yes",
  });
}
