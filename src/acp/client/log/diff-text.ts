import { capTexts } from "../../../transcript/steps/truncate-tool-results.ts";
import { oneLine } from "./content-text.ts";

const contextLines = 3;
const mostCharacters = 100_000;
const lineBreak = 10;

export interface FileChange {
  readonly path: string;
  /** `null`: the file is new. */
  readonly oldText: string | null;
  readonly newText: string;
}

/**
 * A change of a file to read: the lines that went and those that came, between a few that stayed. No more lines are made of
 * long files than are shown.
 */
export function diffText({ path, oldText, newText }: FileChange): string {
  const before = inLines(oldText ?? "");
  const after = inLines(newText);
  const { start, line } = sameStart(before, after);
  const end = sameEnd(before, after, start);
  const name = oneLine(path);
  if (start === before.length && start === after.length) return `${name}: unchanged`;
  const lines = [
    `${name}: ${oldText === null ? "new file" : `changed at line ${line}`}`,
    ...marked(" ", before.slice(contextFrom(before, start), start)),
    ...marked("-", before.slice(start, before.length - end)),
    ...marked("+", after.slice(start, after.length - end)),
    ...marked(" ", after.slice(after.length - end, contextTo(after, after.length - end))),
  ];
  const [text = ""] = capTexts(
    [lines.join("\n")],
    () => "\n[… the middle of this change is left out …]\n",
    mostCharacters,
  );
  return text;
}

/** Each line with its end, the last one too. */
function inLines(text: string): string {
  return text === "" || text.endsWith("\n") ? text : `${text}\n`;
}

/** Where the first line begins that is not the same, and which one that is. */
function sameStart(before: string, after: string): { readonly start: number; readonly line: number } {
  const shortest = Math.min(before.length, after.length);
  let [start, line] = [0, 1];
  for (let at = 0; at < shortest; at++) {
    const unit = before.charCodeAt(at);
    if (unit !== after.charCodeAt(at)) break;
    if (unit === lineBreak) [start, line] = [at + 1, line + 1];
  }
  return { start, line };
}

/** How much of the end is the same, in whole lines behind `start`. */
function sameEnd(before: string, after: string, start: number): number {
  const most = Math.min(before.length, after.length) - start;
  let end = 0;
  for (let back = 1; back <= most; back++) {
    const [here, there] = [before.length - back, after.length - back];
    if (before.charCodeAt(here) !== after.charCodeAt(there)) break;
    if (beginsLine(before, here, start) && beginsLine(after, there, start)) end = back;
  }
  return end;
}

function beginsLine(text: string, at: number, start: number): boolean {
  return at === start || text.charCodeAt(at - 1) === lineBreak;
}

function contextFrom(text: string, start: number): number {
  let from = start;
  for (let line = 0; line < contextLines && from > 0; line++)
    from = from === 1 ? 0 : text.lastIndexOf("\n", from - 2) + 1;
  return from;
}

function contextTo(text: string, end: number): number {
  let to = end;
  for (let line = 0; line < contextLines && to < text.length; line++) to = text.indexOf("\n", to) + 1;
  return to;
}

function marked(mark: string, lines: string): string[] {
  if (lines === "") return [];
  return seen(lines.slice(0, -1))
    .split("\n")
    .map((line) => `${mark} ${line}`);
}

/** Without what lies too far from both ends to be shown. */
function seen(text: string): string {
  if (text.length <= 2 * mostCharacters) return text;
  return `${text.slice(0, mostCharacters)}\n${text.slice(-mostCharacters)}`;
}
