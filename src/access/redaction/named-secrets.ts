import type { Match, ScanPage, Span } from "./secret-matches.ts";
import { isMasked, needMore, setIndexOf } from "./secret-matches.ts";
import type { KeyKind } from "./secret-names.ts";
import { keyKind } from "./secret-names.ts";

const longestKey = 64;
const longestSpace = 8;
const longestQuoted = 4096;
const longestBare = 512;
const minPassword = 4;
/** The minimum length of a value. It also applies to headers: a cookie is at least `a=` and six characters. */
const minSecret = 8;

const keySet = setIndexOf("key");
const quotes = "\"'`";

/** Finds the value in `--name value` and `"--name", "value"`. `at` is the first hyphen. */
export function findFlag(page: ScanPage, at: number): Match {
  const { text, isWhole, runs } = page;
  if (at > 0 && !/[\s"'`[(,=]/.test(text[at - 1] ?? "")) return null;
  const end = runs.end(keySet, at + 2, longestKey);
  if (end - at - 2 > longestKey) return null;
  if (end === text.length && !isWhole) return needMore;
  const kind = keyKind(text.slice(at + 2, end));
  if (kind === null) return null;
  if (end + 6 > text.length && !isWhole) return needMore;
  const between = /^(?:["'],[ \t]{0,3}|["']?[ \t]{1,4})/.exec(text.slice(end, end + 6))?.[0];
  if (between === undefined) return null;
  return readValue(page, end + between.length, kind, "flag");
}

/** Finds the value after a name such as `apiKey`. `at` is the separator before the value: `=`, `:`, `:=` or `=>`. */
export function findValue(page: ScanPage, at: number, kind: KeyKind): Match {
  const { text, isWhole } = page;
  let from = at + 1;
  if ((text[at] === ":" && text[from] === "=") || (text[at] === "=" && text[from] === ">")) from++;
  while (from < text.length && from - at < longestSpace && (text[from] === " " || text[from] === "\t"))
    from++;
  if (from >= text.length) return isWhole ? null : needMore;
  const isTight = text[at] === "=" && from === at + 1 && text[at - 1] !== " ";
  return readValue(page, from, kind, isTight ? "assigned" : "bare");
}

function readValue(page: ScanPage, at: number, kind: KeyKind, form: ValueForm): Match {
  const { text, isWhole } = page;
  const isEscaped = text[at] === "\\";
  if (isEscaped && at + 1 === text.length) return isWhole ? null : needMore;
  const quote = text[isEscaped ? at + 1 : at] ?? "";
  if (quote !== "" && quotes.includes(quote)) {
    const from = at + (isEscaped ? 2 : 1);
    const to = endOfQuoted(page, from, isEscaped ? `\\${quote}` : quote);
    return typeof to === "number" ? checkValue(page, { from, to }, kind, "quoted") : to;
  }
  const to = endOfBare(page, at, kind);
  return typeof to === "number" ? checkValue(page, { from: at, to }, kind, form) : to;
}

/** A double quote always ends the value because it might end the surrounding JSON string. */
function endOfQuoted(
  { text, isWhole }: ScanPage,
  from: number,
  close: string,
): number | null | typeof needMore {
  const window = text.slice(from, from + longestQuoted);
  for (let at = 0; at < window.length; at++) {
    const char = window[at];
    if (char === '"' || (char === close[0] && window.startsWith(close, at))) return from + at;
    if (char === "\n") return null;
    if (char === "\\") at++;
  }
  return window.length < longestQuoted && !isWhole ? needMore : null;
}

const endOfWord = /[\s"'`,;&|<>(){}[\]\\]/;
/** A header's value extends to the end of its line. */
const endOfHeader = /[\n\r"'`\\]/;

function endOfBare(
  { text, isWhole }: ScanPage,
  from: number,
  kind: KeyKind,
): number | null | typeof needMore {
  const isHeader = kind === "cookie" || kind === "authorization";
  const most = isHeader ? longestQuoted : longestBare;
  const window = text.slice(from, from + most);
  const end = window.search(isHeader ? endOfHeader : endOfWord);
  if (end >= 0) return from + end;
  if (window.length === most) return null;
  return isWhole ? text.length : needMore;
}

function checkValue({ text }: ScanPage, { from, to }: Span, kind: KeyKind, form: ValueForm): Span | null {
  if (to - from < (kind === "password" ? minPassword : minSecret)) return null;
  if (form !== "quoted" && (text[to] === "(" || text[to] === "[")) return null;
  const inside = findSecretPart(text.slice(from, to), kind, form);
  return inside === null ? null : { from: from + inside.from, to: from + inside.to };
}

/** How a value follows its name: `NAME=value`, in quotes, `name: value` or `name = value`, `--name value`. */
type ValueForm = "assigned" | "quoted" | "bare" | "flag";

/** Placeholders: `${X}`, `$X`, `<token>`, `{{ x }}`, `%X%`, `...`, `xxxx`, `****`. */
const placeholder =
  /^(?:\$[A-Z_][A-Z0-9_]*$|\$[{(]|[<{[(]|%\w+%$|!ref|x{3,}|\*+$|\.{3}|[-_]+$|your[-_ ]|my[-_ ]|(?:changeme|redacted|example|placeholder|dummy)\b)/i;
/** A reference in code: `process.env.API_KEY`, `config.token`, `self::TOKEN`, `a->b`. */
const reference = /^[A-Za-z_$][\w$]*(?:(?:\.|::|->|\?\.)[A-Za-z_$][\w$]*)+$/;
/** The name of a variable: `OPENAI_API_KEY`. */
const variable = /^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$/;
/** Words with small numbers: `read-only`, `claude-sonnet-4-5`, `v2`. */
const wordyPart = /^(?:[a-z]+\d{0,3}|\d{1,3})$/i;
const pathOrAddress = /^(?:\.{0,2}\/|~\/|[A-Za-z]:\\|[a-z][a-z0-9+.-]*:\/\/)/i;
const sessionKey = /^(?:agent|subagent|acp|cron):[^\s]/;
const version = /^[\^~<>=]{0,2}v?\d+(?:\.\d+){1,3}$/;
const plainWords = new Set(
  (
    "required optional string text password passwd secret token hidden missing invalid none null true false undefined " +
    "unknown empty number boolean object array any wrong incorrect expired needed forgotten prompt env default basic bearer"
  ).split(" "),
);

/**
 * Whether the value is a secret rather than a word that describes one. The checks that reject the most values come
 * first.
 */
function isSecretValue(value: string, kind: KeyKind, form: ValueForm): boolean {
  // A value that contains a mask has already been redacted.
  if (value.length < minPassword || isMasked(value) || value.includes("…")) return false;
  if (kind === "password" ? !isPassword(value, form) : !isSecret(value, form)) return false;
  return !placeholder.test(value) && !sessionKey.test(value) && !version.test(value);
}

function isSecret(value: string, form: ValueForm): boolean {
  if (value.length < minSecret || !looksRandom(value)) return false;
  if (/\s/.test(value) || isPlace(value) || variable.test(value)) return false;
  if (reference.test(value) && form !== "quoted") return false;
  return !isWordy(value) || isLongWord(value);
}

function isPassword(value: string, form: ValueForm): boolean {
  if (form === "bare" || form === "flag") {
    if (value.length < 6 || !/[0-9!@#%^&*+=~]/.test(value) || !/[A-Za-z]/.test(value)) return false;
  } else if (form === "quoted" && (/\s/.test(value) || /^[A-Z]?[a-z]+[.:?!]$/.test(value))) return false;
  if (plainWords.has(value.toLowerCase()) || (value.length < 6 && /^[\d.]+$/.test(value))) return false;
  return !variable.test(value) && !reference.test(value) && !isPlace(value);
}

/** Whether the value is a path or URL. An AWS secret can also start with a slash. */
function isPlace(value: string): boolean {
  if (!pathOrAddress.test(value)) return false;
  return !(/^\/[A-Za-z0-9+/]{39}$/.test(value) && /[0-9]/.test(value) && /[A-Z]/.test(value));
}

function isWordy(value: string): boolean {
  return value.split(/[-_./:]/).every((part) => wordyPart.test(part));
}

/** Whether the value is longer than any word without a separator. */
function isLongWord(value: string): boolean {
  return value.length >= 24 && /^[A-Za-z0-9]+$/.test(value);
}

/** Whether the value mixes letters and digits, or is long and mixes uppercase and lowercase. */
function looksRandom(value: string): boolean {
  const hasLetter = /[A-Za-z]/.test(value);
  if (hasLetter && /[0-9]/.test(value)) return true;
  return (
    value.length >= 20 &&
    ((/[a-z]/.test(value) && /[A-Z]/.test(value)) || /^\d+$/.test(value) || /[+/=]/.test(value))
  );
}

/** Whether a token has a part (delimited by `-`, `_` or `.`) that looks random and is at least this long. */
export function hasRandomPart(text: string, least: number): boolean {
  return text
    .split(/[-_.]/)
    .some((part) => part.length >= least && /[0-9]/.test(part) && /[A-Za-z]/.test(part));
}

/** The scheme in `Authorization: Bearer …`. */
const scheme = /^(?:bearer|basic|token|bot|apikey|api-key|key|negotiate)[ \t]+/i;

/** Returns the secret part of a named value, or `null`. */
export function findSecretPart(value: string, kind: KeyKind, form: ValueForm): Span | null {
  // The rule for private keys keeps the lines around a key.
  if (value.includes("-----BEGIN ")) return null;
  if (kind === "cookie" || kind === "setCookie") return findInCookie(value, kind);
  if (kind === "authorization") return findInAuthorization(value);
  const to = form === "quoted" ? value.length : endWithoutMarks(value);
  return isSecretValue(value.slice(0, to), kind, form) ? { from: 0, to } : null;
}

/** Excludes up to eight punctuation marks at the end, which belong to the surrounding sentence. */
function endWithoutMarks(value: string): number {
  let to = value.length;
  while (to > 0 && value.length - to < 8 && ".:!?".includes(value[to - 1] as string)) to--;
  return to;
}

function findInAuthorization(value: string): Span | null {
  const from = scheme.exec(value)?.[0].length ?? 0;
  const length = value.slice(from).search(/\s|$/);
  return isSecretValue(value.slice(from, from + length), "secret", "quoted")
    ? { from, to: from + length }
    : null;
}

/** Finds everything after the first name in a Cookie header. For Set-Cookie, finds the value without its attributes. */
function findInCookie(value: string, kind: KeyKind): Span | null {
  const from = /^[\w.!#$%&*+^|~-]{1,128}=/.exec(value)?.[0].length;
  if (from === undefined) return null;
  const to = kind === "setCookie" ? value.search(/;|$/) : value.trimEnd().length;
  return to - from < 6 || value.includes("…") || isMasked(value.slice(from, to)) ? null : { from, to };
}
