import { endOfFence, openingFence } from "./code-fence.ts";

/** Text from outside inside HTML: escaped first, so that only what is written here is ever markup. */

const escapes: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

export function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (char) => escapes[char] ?? char);
}

/** Words in a line, without line breaks and not too many. */
export function shortText(text: string, longest: number): string {
  const line = text
    .slice(0, longest * 8)
    .replaceAll(/\s+/g, " ")
    .trim();
  const units = [...line.slice(0, longest * 2)];
  return units.length > longest ? `${units.slice(0, longest - 1).join("")}…` : units.join("");
}

/**
 * The little of Markdown that makes answers readable: paragraphs, headings, code, bold. Everything else is text. A block
 * of code that is never ended goes to the end.
 */
export function* proseHtml(text: string): Generator<string> {
  const lines = text.split("\n");
  let paragraph: string[] = [];
  for (let index = 0; index < lines.length; index++) {
    const line = lines[index] ?? "";
    const fence = openingFence(line, 3);
    const heading = /^#{1,6} +(.*)$/.exec(line)?.[1];
    if (line.trim() !== "" && fence === null && heading === undefined) {
      paragraph.push(line);
      continue;
    }
    yield paragraphHtml(paragraph);
    paragraph = [];
    if (heading !== undefined) yield `<p class="heading">${inlineHtml(heading)}</p>\n`;
    if (fence === null) continue;
    const end = endOfFence(lines, index, fence);
    yield `<pre><code>${escapeHtml(lines.slice(index + 1, end).join("\n"))}</code></pre>\n`;
    index = end;
  }
  yield paragraphHtml(paragraph);
}

function paragraphHtml(lines: readonly string[]): string {
  return lines.length === 0 ? "" : `<p>${inlineHtml(lines.join("\n"))}</p>\n`;
}

function inlineHtml(text: string): string {
  return escapeHtml(text)
    .split(/(`[^`\n]+`)/)
    .map((piece) =>
      piece.length > 2 && piece.startsWith("`")
        ? `<code>${piece.slice(1, -1)}</code>`
        : piece.replaceAll(/\*\*([^*\n]+)\*\*/g, "<strong>$1</strong>"),
    )
    .join("");
}
