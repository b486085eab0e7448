import { createRequire } from "node:module";
import { constants, homedir } from "node:os";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import type { InspectColor } from "node:util";
import { styleText } from "node:util";
import { SkeinError } from "../../core/errors.ts";
import { stringifyJson } from "../../core/json.ts";
import { escapeToLine, escapeUnprintable } from "../../core/text.ts";

export interface TerminalInput {
  readonly stream: NodeJS.ReadableStream;
  readonly typed: boolean;
}

/** The process's terminal and environment, as used by commands. */
export interface Terminal {
  out(text: string): void;
  err(text: string): void;
  readonly color: { readonly out: boolean; readonly err: boolean };
  readonly columns: number;
  /** The directory that relative paths are resolved against. */
  readonly cwd: string;
  /** The program name used in suggested commands. */
  readonly command: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  now(): number;
  /** Asks the user and reads a line, or returns `null` if there is no interactive user. */
  readonly ask: ((question: string) => Promise<string>) | null;
  /** Whether a line on `err` can be redrawn, for progress bars. */
  readonly redraws: boolean;
  /** Whether `out` is a terminal. */
  readonly isWatched: boolean;
  input(): TerminalInput;
  /** Handles Ctrl-C instead of exiting. Returns a function that unsubscribes. */
  onInterrupt(listener: () => void): () => void;
  /** If absent, this process's signals are used. */
  readonly signals?: ProcessSignals;
}

/** Where requests to stop or reload a gateway come from. */
export interface ProcessSignals {
  /** Calls `stop` on every request, with a reason for the log. Returns a function that unsubscribes. */
  onStop(stop: (why: string) => void): () => void;
  onReload(reload: () => void): () => void;
  /** Exits immediately. */
  exit(code: number): void;
  /** How long unfinished runs can continue after a stop request. If absent, the gateway's default applies. */
  readonly graceMs?: number;
}

/** Returns this process's terminal. Under `npm run skein`, paths are relative to the directory npm was called in. */
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

/** Leaves line editing to the terminal so that Ctrl-C still sends a signal. */
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

/** Prints one JSON document. Control characters are escaped, which does not change its value. */
export function printJson(terminal: Terminal, value: unknown): void {
  terminal.out(`${escapeUnprintable(stringifyJson(value))}\n`);
}

/** Created on first use, because its tables take longer to load than the rest of the output code. */
let segmenter: Intl.Segmenter | null = null;

/** Escapes control characters, joins lines and truncates the text to this many columns. */
export function oneLine(text: string, columns: number): string {
  const line = escapeUnprintable(text).replace(/\s+/g, " ").trim();
  const plain = /^[ -~]*$/.test(line.slice(0, columns + 1));
  if (plain)
    return line.length <= columns ? line : `${line.slice(0, Math.max(0, columns - 1))}…`.slice(0, columns);
  if (line.length <= columns && widthOf(line) <= columns) return line;
  let width = 1;
  let kept = "";
  segmenter ??= new Intl.Segmenter();
  for (const { segment } of segmenter.segment(line.slice(0, 8 * columns))) {
    width += widthOf(segment);
    if (width > columns) break;
    kept += segment;
  }
  return columns < 1 ? "" : `${kept}…`;
}

/** Like `oneLine`, but without truncating, for text that is copied. */
export function wholeLine(text: string): string {
  return oneLine(text, Number.POSITIVE_INFINITY);
}

/** Prints a dimmed line, such as a hint. */
export function printNote(terminal: Terminal, text: string): void {
  terminal.out(`${paint(terminal, "dim", wholeLine(text))}\n`);
}

export function pad(text: string, columns: number): string {
  return text + " ".repeat(Math.max(0, columns - widthOf(text)));
}

/** Formats a line with one string aligned left and one aligned right. */
export function spread(terminal: Terminal, left: string, right: string): string {
  const gap = terminal.columns - widthOf(left) - widthOf(right);
  return `${left}${" ".repeat(Math.max(1, gap))}${right}`;
}

type Measure = typeof import("string-width")["default"];

/** Loaded on first use because its tables take longer to load than the rest of the output code. */
const requireModule = createRequire(import.meta.url);

let measure: Measure | null = null;

/** Returns the number of terminal columns that a string takes up, ignoring color codes. */
export function widthOf(text: string): number {
  if (/^[ -~]*$/.test(text)) return text.length;
  measure ??= (requireModule("string-width") as typeof import("string-width")).default;
  return measure(text);
}

const ending = ["SIGINT", "SIGTERM", "SIGQUIT", "SIGABRT"] as const;
const listeners: (() => void)[] = [];
const stoppers: ((signal: string) => void)[] = [];

/** Turns signals into a normal exit so that exit handlers run and locks are released. */
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

/** Handles Ctrl-C and SIGTERM instead of exiting. */
export function onStopRequest(stopper: (signal: string) => void): () => void {
  stoppers.push(stopper);
  return () => void stoppers.splice(stoppers.lastIndexOf(stopper), 1);
}

/** Handles Ctrl-C instead of exiting. Returns a function that unsubscribes. */
function onInterrupt(listener: () => void): () => void {
  listeners.push(listener);
  return () => {
    const at = listeners.lastIndexOf(listener);
    if (at !== -1) listeners.splice(at, 1);
  };
}

/** Asks before an action that cannot be undone. Throws unless the user or `--yes` confirms it. */
export async function confirm(
  { terminal, options }: { readonly terminal: Terminal; readonly options: { readonly yes?: boolean } },
  question: string,
): Promise<void> {
  if (options.yes === true) return;
  if (terminal.ask === null) {
    throw new SkeinError("invalid_arguments", {
      problem: "This cannot be undone, and there is no terminal on which to confirm it",
      advice: "Add --yes to confirm",
    });
  }
  const answer = await terminal.ask(`${escapeToLine(question)} [y/N] `);
  if (/^y(es)?$/i.test(answer.trim())) return;
  throw new SkeinError("invalid_arguments", {
    problem: "Nothing was changed, because you did not confirm",
    advice: "Run the command again and answer y, or add --yes",
  });
}
