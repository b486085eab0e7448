import type { Match, ScanPage, Span } from "./secret-matches.ts";
import { isInSet, isMasked, maskTailLength, needMore, setBitOf, setIndexOf } from "./secret-matches.ts";

const longestKey = 64;
const longestSpace = 8;
const longestQuoted = 4096;
const longestBare = 512;
/** How far back a rule looks, including quotes and spaces. */
export const maxLookBack = longestKey + longestSpace + 8;

const keyBit = setBitOf("key");
const keySet = setIndexOf("key");
const quotes = "\"'`";

/** Finds the value for a name such as `apiKey`. `at` is the `=` or `:` between them. */
export function findKeyed(page: ScanPage, at: number): Match {
  const name = readNameBefore(page, at);
  const kind = name === null ? null : keyKind(name);
  return kind === null ? null : findValue(page, at, kind);
}

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

/** Reads the name before a separator, with or without quotes. Returns `null` if there is none. */
function readNameBefore({ text, lastEnd }: ScanPage, at: number): string | null {
  const floor = Math.max(0, lastEnd, at - maxLookBack);
  let to = at;
  while (to > floor && at - to < longestSpace && text[to - 1] === " ") to--;
  if (to > floor && text[to - 1] === "]") to--;
  if (to > floor && quotes.includes(text[to - 1] ?? "")) to--;
  if (to > floor && text[to - 1] === "\\") to--;
  let from = to;
  while (from > floor && to - from <= longestKey && isInSet(keyBit, text.charCodeAt(from - 1))) from--;
  if (to - from > longestKey) return null;
  // `agent:token:main` is a session key, and its parts are not names.
  if (text[at] === ":" && text[from - 1] === ":") return null;
  return text.slice(from + maskTailLength(text, from), to);
}

/** Skips the separator: `=`, `:`, `:=` or `=>`. */
function findValue(page: ScanPage, at: number, kind: KeyKind): Match {
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
    if (window.startsWith(close, at)) return from + at;
    const char = window[at];
    if (char === '"') return from + at;
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
  if (form !== "quoted" && (text[to] === "(" || text[to] === "[")) return null;
  const inside = findSecretPart(text.slice(from, to), kind, form);
  return inside === null ? null : { from: from + inside.from, to: from + inside.to };
}

/** The kind of name, which determines how closely a value must resemble a secret to be treated as one. */
type KeyKind = "password" | "secret" | "authorization" | "cookie" | "setCookie";

const toSet = (words: string) => new Set(words.split(" "));

const passwords = toSet(
  "password passwd pwd passphrase pass passcode userpassword dbpassword rootpassword secretkeybase",
);
const secrets = toSet(
  "secret token apikey accesskey secretkey privatekey authkey authtoken accesstoken refreshtoken idtoken " +
    "sessiontoken clientsecret appsecret accountkey sharedaccesskey credential credentials apitoken pat sig " +
    "signature bearer secretaccesskey securitytoken subscriptionkey signingkey encryptionkey masterkey webhooksecret",
);
/** Words before "key" that make it a secret, unlike in `sessionKey` and `primaryKey`. */
const secretKeys = toSet(
  "api access secret private auth account signing encryption master subscription service storage shared client " +
    "app admin license webhook deploy write live functions host",
);
/** Words before "key" that make it an identifier, even in capitals: `SESSION_KEY`, `CACHE_KEY`. */
const openKeys = toSet(
  "session public primary foreign partition sort cache hash object row shard group index lookup idempotency " +
    "publishable routing map dedupe unique dict",
);
/** Words next to "token" that make it something other than a secret. */
const openTokens = toSet(
  "page next continuation sync cursor max min num total stop eos bos pad unk special input output per cached",
);
/** The endings of all these words. Most names can be rejected by their ending alone. */
const endings = new Set(
  [...passwords, ...secrets, "cookie", "authorization", "auth", "key", "base"].map((word) => word.slice(-3)),
);

/**
 * Returns the kind of secret that a name such as `OPENAI_API_KEY`, `--db-password` or `X-Auth-Token` indicates, or
 * `null` if it indicates none.
 */
export function keyKind(name: string): KeyKind | null {
  if (!endings.has(name.slice(-3).toLowerCase())) return null;
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== "");
  const last = words.at(-1) ?? "";
  const before = words.at(-2) ?? "";
  if (last === "cookie") return before === "set" ? "setCookie" : "cookie";
  if (last === "authorization" || (last === "auth" && before === "proxy")) return "authorization";
  if (last === "auth" && (words.length === 1 || before === "")) return "secret";
  // `DB_PASS` is the name of a secret, but "on the first pass" is not.
  if (passwords.has(last)) return last === "pass" && words.length > 3 ? null : "password";
  if (last === "token" && openTokens.has(before)) return null;
  if (last === "key") return isSecretKey(name, before) ? "secret" : null;
  if (last === "base" && before === "key") return "secret";
  return secrets.has(last) ? "secret" : null;
}

function isSecretKey(name: string, before: string): boolean {
  if (secretKeys.has(before)) return true;
  return before !== "" && /^[A-Z0-9_]+$/.test(name) && !openKeys.has(before);
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
const plainWords = toSet(
  "required optional string text password passwd secret token hidden missing invalid none null true false undefined " +
    "unknown empty number boolean object array any wrong incorrect expired needed forgotten prompt env default basic bearer",
);

/** Whether the value is a secret rather than a word that describes one. */
function isSecretValue(value: string, kind: KeyKind, form: ValueForm): boolean {
  // A value that contains a mask has already been redacted.
  if (value.length < 4 || isMasked(value) || value.includes("…")) return false;
  if (placeholder.test(value) || sessionKey.test(value) || version.test(value)) return false;
  if (kind === "password") return isPassword(value, form);
  if (/\s/.test(value) || value.length < 8 || isPlace(value) || variable.test(value)) return false;
  if (reference.test(value) && form !== "quoted") return false;
  if (isWordy(value) && !isLongWord(value)) return false;
  return looksRandom(value);
}

function isPassword(value: string, form: ValueForm): boolean {
  const lower = value.toLowerCase();
  if (plainWords.has(lower) || (value.length < 6 && /^[\d.]+$/.test(value))) return false;
  if (variable.test(value) || reference.test(value)) return false;
  if (form === "assigned") return !isPlace(value);
  if (form === "quoted") return !/\s/.test(value) && !isPlace(value) && !/^[A-Z]?[a-z]+[.:?!]$/.test(value);
  return value.length >= 6 && /[0-9!@#%^&*+=~]/.test(value) && /[A-Za-z]/.test(value) && !isPlace(value);
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
  const to = form === "quoted" ? value.length : value.search(/[.:!?]{0,8}$/);
  return isSecretValue(value.slice(0, to), kind, form) ? { from: 0, to } : null;
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
