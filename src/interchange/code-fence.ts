/** The fences of Markdown's blocks of code. */

/** The run that opens a block on this line, if it does. */
export function openingFence(line: string, deepest: number): string | null {
  const [, indent = "", fence = ""] = /^( *)(`{3,}|~{3,})[^`]*$/.exec(line) ?? [];
  return fence === "" || indent.length > deepest ? null : fence;
}

/** The line that ends a block; the number of lines when none does. */
export function endOfFence(lines: readonly string[], open: number, fence: string): number {
  let index = open + 1;
  while (index < lines.length && !endsFence(lines[index] ?? "", fence)) index += 1;
  return index;
}

function endsFence(line: string, fence: string): boolean {
  const [, run = ""] = /^ {0,3}(`+|~+)[ \t]*$/.exec(line) ?? [];
  return run.length >= fence.length && run[0] === fence[0];
}
