/** A longer run of backticks or tildes is treated as text, because it would leave no room for the code itself. */
const fence = /^ {0,3}(`{3,64}(?!`)|~{3,64}(?!~))(.*)$/;

/**
 * Splits Markdown into parts of at most `maxChars`, at a blank line, a line break or a space if there is one in the second
 * half of a part. A code block that is split continues as a code block.
 */
export function splitText(text: string, maxChars: number): readonly string[] {
  const parts: string[] = [];
  let longestMark = 0;
  for (const line of text.split("\n"))
    longestMark = Math.max(longestMark, fence.exec(line)?.[1]?.length ?? 0);
  let rest = text.trim();
  while (rest.length > maxChars) {
    const end = cutAt(rest, maxChars - longestMark - 1);
    const part = rest.slice(0, end).trimEnd();
    const open = openFence(part);
    parts.push(open === null ? part : `${part}\n${open.mark}`);
    const next = rest.slice(end);
    rest = open === null ? next.trimStart() : `${open.line}\n${next.replace(/^\n+/, "")}`;
  }
  return [...parts, rest];
}

function cutAt(text: string, most: number): number {
  const least = Math.floor(most / 2);
  for (const at of ["\n\n", "\n", " "]) {
    const found = text.lastIndexOf(at, most);
    if (found > least) return found;
  }
  // Half of a surrogate pair would be sent as a replacement character.
  return /[\ud800-\udbff]/.test(text.charAt(most - 1)) ? most - 1 : most;
}

/** Returns the code block that is still open at the end of the text, or `null`. */
function openFence(text: string): { readonly line: string; readonly mark: string } | null {
  let open: { readonly line: string; readonly mark: string } | null = null;
  for (const line of text.split("\n")) {
    const [, mark, info = ""] = fence.exec(line) ?? [];
    if (mark === undefined) continue;
    if (open === null) open = { line: line.slice(0, 80), mark };
    else if (mark.startsWith(open.mark) && info.trim() === "") open = null;
  }
  return open;
}
