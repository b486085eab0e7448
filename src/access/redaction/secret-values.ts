import type { KeyKind } from "./key-names.ts";
import { isMasked } from "./mask.ts";

/** How a value is written down beside its name. */
export type Form =
  /** `NAME=value`, no spaces. */
  | "assigned"
  /** Between quotes. */
  | "quoted"
  /** `name: value` and `name = value`. */
  | "bare"
  /** `--name value`. */
  | "flag";

/** Stands for a value instead of being one: `${X}`, `$X`, `<token>`, `{{ x }}`, `%X%`, `...`, `xxxx`, `****`. */
const standIn =
  /^(?:\$[A-Z_][A-Z0-9_]*$|\$[{(]|[<{[(]|%\w+%$|!ref|x{3,}|\*+$|\.{3}|[-_]+$|your[-_ ]|my[-_ ]|(?:changeme|redacted|example|placeholder|dummy)\b)/i;
/** `process.env.API_KEY`, `config.token`, `self::TOKEN`, `a->b`: where it comes from, in code. */
const reference = /^[A-Za-z_$][\w$]*(?:(?:\.|::|->|\?\.)[A-Za-z_$][\w$]*)+$/;
/** `OPENAI_API_KEY`: the name of a variable. */
const variable = /^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$/;
/** `read-only`, `claude-sonnet-4-5`, `v2`: words with small numbers. */
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

/** Whether the value of such a name is a secret, and not a word about one. */
export function isSecretValue(value: string, kind: KeyKind, form: Form): boolean {
  // What holds a mask was redacted before.
  if (value.length < 4 || isMasked(value) || value.includes("…")) return false;
  if (standIn.test(value) || sessionKey.test(value) || version.test(value)) return false;
  if (kind === "password") return isPassword(value, form);
  if (/\s/.test(value) || value.length < 8 || isPlace(value) || variable.test(value)) return false;
  if (reference.test(value) && form !== "quoted") return false;
  if (isWordy(value) && !isLongWord(value)) return false;
  return looksRandom(value);
}

function isPassword(value: string, form: Form): boolean {
  const lower = value.toLowerCase();
  if (plainWords.has(lower) || (value.length < 6 && /^[\d.]+$/.test(value))) return false;
  if (variable.test(value) || reference.test(value)) return false;
  if (form === "assigned") return !isPlace(value);
  if (form === "quoted") return !/\s/.test(value) && !isPlace(value) && !/^[A-Z]?[a-z]+[.:?!]$/.test(value);
  return value.length >= 6 && /[0-9!@#%^&*+=~]/.test(value) && /[A-Za-z]/.test(value) && !isPlace(value);
}

/** A path or an address; an AWS secret may begin with a slash too. */
function isPlace(value: string): boolean {
  if (!pathOrAddress.test(value)) return false;
  return !(/^\/[A-Za-z0-9+/]{39}$/.test(value) && /[0-9]/.test(value) && /[A-Z]/.test(value));
}

function isWordy(value: string): boolean {
  return value.split(/[-_./:]/).every((part) => wordyPart.test(part));
}

/** Words are not that long without a break. */
function isLongWord(value: string): boolean {
  return value.length >= 24 && /^[A-Za-z0-9]+$/.test(value);
}

/** Letters and digits mixed, or long with capitals inside. */
export function looksRandom(value: string): boolean {
  const hasLetter = /[A-Za-z]/.test(value);
  if (hasLetter && /[0-9]/.test(value)) return true;
  return (
    value.length >= 20 &&
    ((/[a-z]/.test(value) && /[A-Z]/.test(value)) || /^\d+$/.test(value) || /[+/=]/.test(value))
  );
}

/** Whether a part of a token, between `-`, `_` and `.`, is random and so long. */
export function hasRandomPart(text: string, least: number): boolean {
  return text
    .split(/[-_.]/)
    .some((part) => part.length >= least && /[0-9]/.test(part) && /[A-Za-z]/.test(part));
}

/** Names what follows: `Authorization: Bearer …`. */
const scheme = /^(?:bearer|basic|token|bot|apikey|api-key|key|negotiate)[ \t]+/i;

/** The part of the value of such a name that is a secret; `null`: none. */
export function secretIn(value: string, kind: KeyKind, form: Form): Part | null {
  // A rule of its own keeps the lines around a private key.
  if (value.includes("-----BEGIN ")) return null;
  if (kind === "cookie" || kind === "setCookie") return inCookie(value, kind);
  if (kind === "authorization") return inAuthorization(value);
  const to = form === "quoted" ? value.length : value.search(/[.:!?]{0,8}$/);
  return isSecretValue(value.slice(0, to), kind, form) ? { from: 0, to } : null;
}

interface Part {
  readonly from: number;
  readonly to: number;
}

function inAuthorization(value: string): Part | null {
  const from = scheme.exec(value)?.[0].length ?? 0;
  const length = value.slice(from).search(/\s|$/);
  return isSecretValue(value.slice(from, from + length), "secret", "quoted")
    ? { from, to: from + length }
    : null;
}

/** All of a Cookie header but the first name; of Set-Cookie, the value and not its attributes. */
function inCookie(value: string, kind: KeyKind): Part | null {
  const from = /^[\w.!#$%&*+^|~-]{1,128}=/.exec(value)?.[0].length;
  if (from === undefined) return null;
  const to = kind === "setCookie" ? value.search(/;|$/) : value.trimEnd().length;
  return to - from < 6 || value.includes("…") || isMasked(value.slice(from, to)) ? null : { from, to };
}
