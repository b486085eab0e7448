import { bitOf, isIn, placeOf } from "./characters.ts";
import type { Found, Page, Span } from "./found.ts";
import { more } from "./found.ts";
import type { KeyKind } from "./key-names.ts";
import { keyKind } from "./key-names.ts";
import { maskTailAt } from "./mask.ts";
import type { Form } from "./secret-values.ts";
import { secretIn } from "./secret-values.ts";

const longestKey = 64;
const longestSpace = 8;
const longestQuoted = 4096;
const longestBare = 512;
/** How far back a rule looks, with quotes and spaces. */
export const lookBack = longestKey + longestSpace + 8;

const keyBit = bitOf("key");
const keySet = placeOf("key");
const quotes = "\"'`";

/** The value of a name that announces a secret. At the `=` or `:` between them. */
export function findKeyed(page: Page, at: number): Found {
  const name = nameBefore(page, at);
  const kind = name === null ? null : keyKind(name);
  return kind === null ? null : findValue(page, at, kind);
}

/** The value of `--name value`, and of `"--name", "value"`. At the two hyphens. */
export function findFlag(page: Page, at: number): Found {
  const { text, isWhole, runs } = page;
  if (at > 0 && !/[\s"'`[(,=]/.test(text[at - 1] ?? "")) return null;
  const end = runs.end(keySet, at + 2, longestKey);
  if (end - at - 2 > longestKey) return null;
  if (end === text.length && !isWhole) return more;
  const kind = keyKind(text.slice(at + 2, end));
  if (kind === null) return null;
  if (end + 6 > text.length && !isWhole) return more;
  const between = /^(?:["'],[ \t]{0,3}|["']?[ \t]{1,4})/.exec(text.slice(end, end + 6))?.[0];
  if (between === undefined) return null;
  return readValue(page, end + between.length, kind, "flag");
}

/** The name before a separator, between quotes or not; `null` where there is none, or only what a secret left. */
function nameBefore({ text, lastEnd }: Page, at: number): string | null {
  const floor = Math.max(0, lastEnd, at - lookBack);
  let to = at;
  while (to > floor && at - to < longestSpace && text[to - 1] === " ") to--;
  if (to > floor && text[to - 1] === "]") to--;
  if (to > floor && quotes.includes(text[to - 1] ?? "")) to--;
  if (to > floor && text[to - 1] === "\\") to--;
  let from = to;
  while (from > floor && to - from <= longestKey && isIn(keyBit, text.charCodeAt(from - 1))) from--;
  if (to - from > longestKey) return null;
  // `agent:token:main` is a session key, and its parts are no names.
  if (text[at] === ":" && text[from - 1] === ":") return null;
  return text.slice(from + maskTailAt(text, from), to);
}

/** What stands behind the separator: `=`, `:`, `:=`, `=>`. */
function findValue(page: Page, at: number, kind: KeyKind): Found {
  const { text, isWhole } = page;
  let from = at + 1;
  if ((text[at] === ":" && text[from] === "=") || (text[at] === "=" && text[from] === ">")) from++;
  while (from < text.length && from - at < longestSpace && (text[from] === " " || text[from] === "\t"))
    from++;
  if (from >= text.length) return isWhole ? null : more;
  const isTight = text[at] === "=" && from === at + 1 && text[at - 1] !== " ";
  return readValue(page, from, kind, isTight ? "assigned" : "bare");
}

function readValue(page: Page, at: number, kind: KeyKind, form: Form): Found {
  const { text, isWhole } = page;
  const isEscaped = text[at] === "\\";
  if (isEscaped && at + 1 === text.length) return isWhole ? null : more;
  const quote = text[isEscaped ? at + 1 : at] ?? "";
  if (quote !== "" && quotes.includes(quote)) {
    const from = at + (isEscaped ? 2 : 1);
    const to = endOfQuoted(page, from, isEscaped ? `\\${quote}` : quote);
    return typeof to === "number" ? judge(page, { from, to }, kind, "quoted") : to;
  }
  const to = endOfBare(page, at, kind);
  return typeof to === "number" ? judge(page, { from: at, to }, kind, form) : to;
}

/** A double quote ends the others too: it may be the end of the JSON around them. */
function endOfQuoted({ text, isWhole }: Page, from: number, close: string): number | null | typeof more {
  const window = text.slice(from, from + longestQuoted);
  for (let at = 0; at < window.length; at++) {
    if (window.startsWith(close, at)) return from + at;
    const char = window[at];
    if (char === '"') return from + at;
    if (char === "\n") return null;
    if (char === "\\") at++;
  }
  return window.length < longestQuoted && !isWhole ? more : null;
}

const endOfWord = /[\s"'`,;&|<>(){}[\]\\]/;
/** A header goes on to the end of its line. */
const endOfHeader = /[\n\r"'`\\]/;

function endOfBare({ text, isWhole }: Page, from: number, kind: KeyKind): number | null | typeof more {
  const isHeader = kind === "cookie" || kind === "authorization";
  const most = isHeader ? longestQuoted : longestBare;
  const window = text.slice(from, from + most);
  const end = window.search(isHeader ? endOfHeader : endOfWord);
  if (end >= 0) return from + end;
  if (window.length === most) return null;
  return isWhole ? text.length : more;
}

function judge({ text }: Page, { from, to }: Span, kind: KeyKind, form: Form): Span | null {
  if (form !== "quoted" && (text[to] === "(" || text[to] === "[")) return null;
  const inside = secretIn(text.slice(from, to), kind, form);
  return inside === null ? null : { from: from + inside.from, to: from + inside.to };
}
