import type { Token } from "marked";
import { parsePiece, unescapeEntities } from "./markdown-pieces.ts";
import { isBlank, oneLine } from "./plain-text.ts";

/** Returns the beginning of a message on one line, at most `most` characters long, without Markdown syntax. */
export function previewLine(text: string, most = 200): string {
  return oneLine(withoutMarkup(text.trimStart().slice(0, most * 4)), most);
}

/**
 * Returns a text as it reads when its Markdown is rendered. A delimiter whose partner was cut off is omitted too. A
 * text that consists only of syntax is returned unchanged, so that no preview looks empty.
 */
export function withoutMarkup(text: string): string {
  const tokens = parsePiece(text, {});
  if (tokens === null) return text;
  const shown = joinTexts(tokens, " ");
  return isBlank(shown) ? text : shown;
}

function joinTexts(tokens: readonly Token[], between: string): string {
  return tokens.map(textOf).join(between);
}

function textOf(token: Token): string {
  switch (token.type) {
    case "list":
      return joinTexts(token.items as readonly Token[], " ");
    case "list_item":
    case "blockquote":
      return joinTexts(token.tokens ?? [], " ");
    case "table":
      return [token.header, ...token.rows]
        .flat()
        .map((cell: { readonly tokens: readonly Token[] }) => joinTexts(cell.tokens, ""))
        .join(" ");
    case "code":
      // The lines of previews are joined, so an entire code block can be on the line that opens it.
      return token.text || (token.lang ?? "");
    case "hr":
    case "br":
    case "checkbox":
      return " ";
    default:
      if ("tokens" in token && token.tokens !== undefined) return joinTexts(token.tokens, "");
      if (!("text" in token)) return token.raw;
      return unescapeEntities(token.type === "text" ? withoutCutMarks(token.text) : token.text);
  }
}

/** Underscores stay, because they begin more names than emphasized words. */
function withoutCutMarks(text: string): string {
  return text.replace(/(?<=^|\s)(?:(?:\*\*|~~)(?=\S)|`+)/g, "");
}
