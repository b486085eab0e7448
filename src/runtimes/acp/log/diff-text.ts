import { capTexts } from "../../../transcript/cap-texts.ts";
import { oneLine } from "./content-text.ts";

const contextLines = 3;
const mostCharacters = 100_000;

export interface FileChange {
  readonly path: string;
  /** `null`: the file is new. */
  readonly oldText: string | null;
  readonly newText: string;
}

/** A change of a file to read: the lines that went and those that came, between a few that stayed. */
export function diffText({ path, oldText, newText }: FileChange): string {
  const before = linesOf(oldText ?? "");
  const after = linesOf(newText);
  const shortest = Math.min(before.length, after.length);
  let start = 0;
  while (start < shortest && before[start] === after[start]) start++;
  let end = 0;
  while (end < shortest - start && before.at(-1 - end) === after.at(-1 - end)) end++;
  const name = oneLine(path);
  if (start === before.length && start === after.length) return `${name}: unchanged`;
  const from = Math.max(0, start - contextLines);
  const lines = [
    `${name}: ${oldText === null ? "new file" : `changed at line ${start + 1}`}`,
    ...marked(" ", before.slice(from, start)),
    ...marked("-", before.slice(start, before.length - end)),
    ...marked("+", after.slice(start, after.length - end)),
    ...marked(" ", after.slice(after.length - end, after.length - end + contextLines)),
  ];
  const [text = ""] = capTexts(
    [lines.join("\n")],
    () => "\n[… the middle of this change is left out …]\n",
    mostCharacters,
  );
  return text;
}

function linesOf(text: string): readonly string[] {
  if (text === "") return [];
  const lines = text.split("\n");
  return lines.at(-1) === "" ? lines.slice(0, -1) : lines;
}

function marked(mark: string, lines: readonly string[]): string[] {
  return lines.map((line) => `${mark} ${line}`);
}
