import type { Token, Tokens } from "marked";
import { getDefaults, Lexer, Tokenizer } from "marked";
import { hiddenCount } from "./plain-text.ts";

/**
 * A part of a Markdown text that is parsed separately. Parsing can take quadratic time, so every piece is short, and
 * only the last piece of a growing text is parsed again.
 */
export interface MarkdownPiece {
  /** The start position. Texts grow only at the end, so the position identifies a piece. */
  readonly at: number;
  readonly text: string;
  readonly lineCount: number;
  /** About how many elements are mounted for the cells, list items and inline marks. */
  readonly elementCount: number;
  /** Set for a fenced block or a table that is too wide; neither is parsed. */
  readonly code: { readonly language: string; readonly text: string; readonly isClosed: boolean } | null;
}

const maxPieceChars = 10_000;
const maxPieceLines = 200;
const maxPieceElements = 500;
/** Wider tables are shown verbatim. */
const maxColumns = 100;
/** How many characters of a line are examined to determine which block the line begins. */
const lineStart = 1000;

const listItem = /^(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)/;
const openingFence = /^(?<indent> {0,3})(?<fence>`{3,}(?=[^`]*$)|~{3,})(?<info>.*)$/;
const tableRule = /^[ \t>]*[|:-][-: \t|]*\n?$/;
/** An item, quote, heading, rule, line break, link or checkbox. */
const elementMarks = /(?:[-+*]|\d[.)])\s|>|\[|https?:|www\.|^ {0,3}(?:#|--)| {2}\n/g;

/** Returns about how many elements a line produces, not counting the cells of a table. */
function countElements(line: string): number {
  // Emphasis and code spans begin and end with a delimiter.
  const delimiters = line.match(/[*_~`]/g)?.length ?? 0;
  return (line.match(elementMarks)?.length ?? 0) + Math.floor(delimiters / 2);
}

/** Splits a text at blank lines that end a block, around fenced code, and in blocks that are too long. */
export function splitMarkdown(given: string): readonly MarkdownPiece[] {
  const text = given.includes("\r") ? given.replace(/\r\n?/g, "\n") : given;
  const pieces: MarkdownPiece[] = [];
  let [from, lineCount, elementCount, prefix] = [0, 0, 0, ""];
  let [hasList, isAfterBlank, lineBefore] = [false, false, ""];
  // Every table row is shown with as many cells as the header row, even if its source has fewer.
  let [columnCount, tableHead, headElements, isTooWide] = [0, "", 0, false];
  const cut = (to: number, nextPrefix = "") => {
    const part = text.slice(from, to).trimEnd();
    const code = isTooWide ? { language: "", text: part, isClosed: true } : null;
    if (part !== "") pieces.push({ at: from, text: prefix + part, lineCount, elementCount, code });
    [from, lineCount, prefix, hasList, isTooWide] = [to, 0, nextPrefix, false, false];
    if (nextPrefix === "") [columnCount, tableHead] = [0, ""];
    elementCount = nextPrefix === "" ? 0 : headElements;
  };
  for (let at = 0; at < text.length; ) {
    const end = endOfLine(text, at);
    const line = text.slice(at, Math.min(end, at + lineStart)).trimEnd();
    const opening = openingFence.exec(line)?.groups;
    if (opening !== undefined && (opening.indent === "" || !hasList)) {
      cut(at);
      const piece = readFence(text, at, end, opening);
      pieces.push(piece);
      at += piece.text.length;
      from = at;
      isAfterBlank = false;
      continue;
    }
    const isItem = listItem.test(line);
    const whole = text.slice(at, end);
    const added = countElements(whole);
    if (line !== "" && isAfterBlank && !/^[ \t]/.test(line) && !(hasList && isItem)) cut(at);
    else if (
      at > from &&
      (end - from > maxPieceChars ||
        lineCount >= maxPieceLines ||
        elementCount + columnCount + added > maxPieceElements)
    )
      cut(at, line.includes("|") ? tableHead : "");
    if (line === "") [columnCount, tableHead] = [0, ""];
    elementCount += columnCount + added;
    if (columnCount === 0 && lineCount > 0 && lineBefore.includes("|") && tableRule.test(whole)) {
      columnCount = whole.match(/-+/g)?.length ?? 0;
      elementCount += columnCount;
      tableHead = lineBefore + whole;
      headElements = columnCount + countElements(tableHead);
      if (columnCount > maxColumns) [columnCount, tableHead, isTooWide] = [0, "", true];
    }
    hasList ||= isItem;
    isAfterBlank = line === "";
    lineBefore = whole;
    lineCount += 1;
    at = end;
  }
  cut(text.length);
  return pieces;
}

/** Returns where the next line begins. */
function endOfLine(text: string, at: number): number {
  const found = text.indexOf("\n", at);
  return found < 0 ? text.length : found + 1;
}

function readFence(
  text: string,
  at: number,
  bodyAt: number,
  { indent = "", fence = "", info = "" }: Readonly<Record<string, string>>,
): MarkdownPiece {
  const closing = new RegExp(`^ {0,3}\\${fence[0]}{${fence.length},}[ \\t]*$`);
  let [end, lineCount, isClosed] = [bodyAt, 1, false];
  let bodyEnd = end;
  while (end < text.length && !isClosed) {
    bodyEnd = end;
    end = endOfLine(text, end);
    lineCount += 1;
    isClosed = closing.test(text.slice(bodyEnd, Math.min(end, bodyEnd + lineStart)).trimEnd());
  }
  const body = text.slice(bodyAt, isClosed ? bodyEnd : end).replace(/\n$/, "");
  const code = indent === "" ? body : body.replace(new RegExp(`^ {1,${indent.length}}`, "gm"), "");
  return {
    at,
    text: text.slice(at, end),
    lineCount,
    elementCount: 0,
    code: { language: info.trim(), text: code, isClosed },
  };
}

/** Returns the cost of showing a piece, in characters. A folded text mounts about 2,000 elements. */
function costOf({ text, lineCount, elementCount, code }: MarkdownPiece): number {
  // A code block has a header and a button. Only the ends of a long block are mounted.
  return code === null
    ? text.length + lineCount * 30 + elementCount * 60
    : 500 + Math.min(text.length, 50_000);
}

const headCost = 120_000;
const tailCost = 30_000;

/**
 * Returns the pieces of a long text to show and how much is hidden between them. Each step shows four times as much.
 */
export function foldPieces(
  pieces: readonly MarkdownPiece[],
  step: number,
): {
  readonly head: readonly MarkdownPiece[];
  readonly hidden: string | null;
  readonly tail: readonly MarkdownPiece[];
} {
  const next = (index: number) => costOf(pieces[index] as MarkdownPiece);
  // The last piece is always shown, because that is where an answer grows.
  let [from, to] = [0, Math.max(0, pieces.length - 1)];
  for (let left = tailCost; to > 0 && left >= next(to - 1); left -= next(to)) to -= 1;
  for (let left = headCost * 4 ** step; from < to && left > 0; from += 1) left -= next(from);
  if (from >= to) return { head: pieces, hidden: null, tail: [] };
  const between = pieces.slice(from, to);
  const lines = between.reduce((sum, { lineCount }) => sum + lineCount, 0);
  const chars = between.reduce((sum, { text }) => sum + text.length, 0);
  return { head: pieces.slice(0, from), hidden: hiddenCount(lines, chars), tail: pieces.slice(to) };
}

/** Link targets, keyed by label. */
export type LinkTargets = Readonly<Record<string, string>>;

const maxDefinitions = 1000;
const labelOf = (text: string) => text.toLowerCase().replace(/\s+/g, " ");

/** Returns the targets defined anywhere in a text. The first definition of a label takes precedence. */
export function findLinkTargets(text: string): LinkTargets {
  const targets: Record<string, string> = Object.create(null);
  if (!text.includes("]:")) return targets;
  let count = 0;
  for (const [, label = "", href = ""] of text.matchAll(
    /^ {0,3}\[([^\][\n]{1,200})\]:[ \t]*<?([^\s<>]{1,2000})/gm,
  )) {
    targets[labelOf(label)] ??= href;
    if (++count === maxDefinitions) break;
  }
  return targets;
}

/** Returns the targets that a piece can use. */
export function targetsOf(piece: string, targets: LinkTargets): LinkTargets {
  const used: Record<string, string> = {};
  for (const [, label = ""] of piece.matchAll(/\[([^\][\n]{1,200})\]/g)) {
    const href = targets[labelOf(label)];
    if (href !== undefined) used[labelOf(label)] = href;
  }
  return used;
}

/** Thirty nested quotes or lists that begin on one line. */
const tooDeep = /^(?:[ \t]*(?:>|(?:[-*+]|\d{1,9}[.)])[ \t])){30}/m;
/** A piece longer than this is a single line that cannot be split. */
const longestParagraph = 20_000;
/** The largest product of characters and delimiters. The search for a delimiter's partner can reach the text's end. */
const maxInlineWork = 1_000_000;

/**
 * Recognizes a URL as a link only if it begins with a scheme or `www.`. Recognizing others requires looking ahead from
 * every word.
 */
const inlineRules = {
  ...Lexer.rules.inline.gfm,
  text: /^(?:`+|~+|[^`~])(?:(?=[`~])|(?= {2,}\n)|[\s\S]*?(?:(?=[\\<![`*~_]|https?:\/\/|(?<![^\s*_~(])www\.|$)|[^ ](?= {2,}\n)))/,
  url: /^(https?:\/\/|www\.)[^\s<]{1,2000}/,
};

/** Returns a piece's tokens, or `null` if it is too long or too deeply nested to be parsed. */
export function parsePiece(text: string, targets: LinkTargets): readonly Token[] | null {
  if (text.length > longestParagraph || tooDeep.test(text)) return null;
  const tokenizer = new PieceTokenizer();
  const lexer = new Lexer({ ...getDefaults(), tokenizer });
  tokenizer.rules = { ...tokenizer.rules, inline: inlineRules };
  for (const [label, href] of Object.entries(targets)) lexer.tokens.links[label] = { href, title: null };
  const tokens = lexer.blockTokens(text);
  for (const { src, tokens: inside } of lexer.inlineQueue) {
    lexer.state.inRawBlock = false;
    if (inlineWork(src) <= maxInlineWork) lexer.inlineTokens(src, inside);
    else inside.push({ type: "text", raw: src, text: src });
  }
  return tokens.filter(({ type }) => type !== "space");
}

class PieceTokenizer extends Tokenizer {
  /**
   * If a row has more cells than the table has columns, the last column shows the extra cells. Marked would drop them.
   */
  override table(source: string): Tokens.Table | undefined {
    const table = super.table(source);
    const lines = table?.raw.split("\n").slice(2) ?? [];
    table?.rows.forEach((cells, row) => {
      const surplus = surplusCells(lines[row] ?? "", cells.length);
      if (surplus !== "") this.lexer.inline(` ${surplus}`, cells.at(-1)?.tokens);
    });
    return table;
  }
}

function surplusCells(row: string, columnCount: number): string {
  let left = columnCount + (row.trimStart().startsWith("|") ? 1 : 0);
  for (const { 0: sign, index } of row.matchAll(/\\.|\|/g)) {
    if (sign === "|") left -= 1;
    if (left === 0) return row.slice(index).trimEnd().replace(/\|$/, "").trimEnd();
  }
  return "";
}

function inlineWork(paragraph: string): number {
  return paragraph.length * (1 + (paragraph.match(/[*_~`[<]/g)?.length ?? 0));
}

const entities: Record<string, string> = {
  "&amp;": "&",
  "&lt;": "<",
  "&gt;": ">",
  "&quot;": '"',
  "&#39;": "'",
};

export function unescapeEntities(text: string): string {
  return text.replace(/&(?:amp|lt|gt|quot|#39);/g, (entity) => entities[entity] ?? entity);
}

/** Returns the displayed text of inline tokens. */
export function shownText(tokens: readonly Token[]): string {
  return tokens
    .map((token) =>
      "tokens" in token && token.tokens !== undefined
        ? shownText(token.tokens)
        : unescapeEntities("text" in token ? token.text : token.raw),
    )
    .join("");
}

/** Returns the host of a link whose text is an address on another host, so that the text cannot deceive the reader. */
export function hiddenHost(href: string, text: string): string | null {
  const shown = /(?:https?:\/\/|www\.)[^\s/?#@:]+/i.exec(text)?.[0];
  if (shown === undefined) return null;
  const host = hostOf(href);
  return hostOf(/^http/i.test(shown) ? shown : `https://${shown}`) === host ? null : host;
}

function hostOf(href: string): string {
  return (URL.canParse(href) && new URL(href).hostname.replace(/^www\./, "")) || href;
}
