import { AnchorFinder } from "./anchors.ts";
import { findToken } from "./find-token.ts";
import { findFlag, findValue, hasRandomPart } from "./named-secrets.ts";
import type { Match, ScanPage, Span } from "./secret-matches.ts";
import {
  CharacterRuns,
  isBoundary,
  isInSet,
  isMasked,
  mask,
  minPartialMask,
  needMore,
  setBitOf,
  setIndexOf,
  tailLength,
} from "./secret-matches.ts";
import type { KeyKind } from "./secret-names.ts";

interface ScanResult {
  readonly text: string;
  readonly count: number;
  /** Text from here on has not been decided yet. */
  readonly heldFrom: number;
  readonly lastEnd: number;
}

/** `lastEnd` is where the last secret ended, or -1 if there was none. */
interface ScanStart {
  readonly text: string;
  readonly from: number;
  readonly lastEnd: number;
  readonly isWhole: boolean;
}

/**
 * Masks secrets in one pass from left to right. Each decision depends on a bounded window and on the end of the last
 * secret, not on how the text was split, so streams give the same result.
 */
export function scan({ text, from, lastEnd, isWhole }: ScanStart): ScanResult {
  const page: ScanPage = { text, isWhole, runs: new CharacterRuns(text), lastEnd };
  const parts: string[] = [];
  const anchors = new AnchorFinder(text);
  let count = 0;
  let done = from;
  let at = from;
  for (;;) {
    at = anchors.next(at, page.lastEnd);
    if (at === text.length) break;
    const found = findAt(page, at, anchors.kind);
    if (found === needMore) break;
    if (found === null) {
      at++;
      continue;
    }
    parts.push(text.slice(done, found.from), found.instead ?? mask(text.slice(found.from, found.to)));
    count++;
    done = found.to;
    page.lastEnd = found.to;
    at = found.to;
  }
  parts.push(text.slice(done, at));
  return { text: parts.join(""), count, heldFrom: at, lastEnd: page.lastEnd };
}

function findAt(page: ScanPage, at: number, kind: KeyKind | null): Match {
  const found = findByRule(page, at, kind);
  return found === null || found === needMore || found.instead !== undefined
    ? found
    : extendByGluedTokens(page, found);
}

/** Extends a secret by a token that starts in the end that the mask leaves visible and continues past the secret. */
function extendByGluedTokens(page: ScanPage, { from, to: end }: Span): Match {
  let to = end;
  for (let place = to - tailLength; to - from >= minPartialMask && place < to; place++) {
    const isBehindEdge = place === to - tailLength || isBoundary(page.text.charCodeAt(place - 1));
    const glued = isBehindEdge ? findToken(page, place) : null;
    if (glued === needMore) return needMore;
    if (glued !== null && glued.to > to) {
      to = glued.to;
      place = to - tailLength - 1;
    }
  }
  return { from, to };
}

function findByRule(page: ScanPage, at: number, kind: KeyKind | null): Match {
  const { text, isWhole } = page;
  const sign = text[at];
  if (sign !== "=" && sign !== ":" && sign !== "-") return findToken(page, at);
  if (at + 1 === text.length && !isWhole) return needMore;
  const next = text[at + 1];
  if (sign === "-") {
    if (next !== "-") return null;
    const key = findPrivateKey(page, at);
    return key ?? (text[at - 1] === "-" || text[at + 2] === "-" ? null : findFlag(page, at));
  }
  if (sign === "=" && (next === "=" || "=!<>:".includes(text[at - 1] ?? " "))) return null;
  if (sign === "=") return kind === null ? null : findValue(page, at, kind);
  if (next === ":" || text[at - 1] === ":") return null;
  if (next === "/") {
    if (at + 2 === text.length && !isWhole) return needMore;
    if (text[at + 2] === "/") return findUserInfo(page, at);
  }
  return findTelegramToken(page, at) ?? (kind === null ? null : findValue(page, at, kind));
}

const longestAuthority = 512;
const endOfAuthority = /[\s/?#"'<>`\\]/;
const alnum = setBitOf("alnum");
const digit = setBitOf("digit");
const url = setIndexOf("url");

/** Finds the password in `scheme://user:password@host`, or the user if it is a token. `at` is the scheme's colon. */
function findUserInfo({ text, isWhole }: ScanPage, at: number): Match {
  if (at === 0 || !isInSet(alnum, text.charCodeAt(at - 1))) return null;
  const from = at + 3;
  const window = text.slice(from, from + longestAuthority);
  const end = window.search(endOfAuthority);
  if (end < 0 && (window.length === longestAuthority || !isWhole))
    return window.length === longestAuthority ? null : needMore;
  const authority = end < 0 ? window : window.slice(0, end);
  const sign = authority.lastIndexOf("@");
  if (sign <= 0) return null;
  const userInfo = authority.slice(0, sign);
  const colon = userInfo.indexOf(":");
  const user = colon < 0 ? userInfo : userInfo.slice(0, colon);
  const password = colon < 0 ? "" : userInfo.slice(colon + 1);
  if (password !== "" && password !== "x-oauth-basic") {
    if (isMasked(password) || password.includes("…") || /^(?:\$|<|\{|%\w+%$|\*+$)/.test(password))
      return null;
    return { from: from + colon + 1, to: from + sign };
  }
  const isToken = (password !== "" && !isMasked(user)) || hasRandomPart(user, 16);
  return isToken ? { from, to: from + user.length } : null;
}

/** Finds the token after a Telegram bot's number. `at` is the colon between them. */
function findTelegramToken({ text, isWhole, runs }: ScanPage, at: number): Match {
  let before = at;
  while (before > 0 && at - before <= 12 && isInSet(digit, text.charCodeAt(before - 1))) before--;
  if (at - before < 8 || at - before > 12) return null;
  if (before > 0 && !isBoundary(text.charCodeAt(before - 1)) && text.slice(before - 3, before) !== "bot")
    return null;
  const end = runs.end(url, at + 1, 40);
  if (end === text.length && !isWhole && end - at - 1 <= 40) return needMore;
  const length = end - at - 1;
  return length >= 32 && length <= 40 ? { from: at + 1, to: end } : null;
}

const opening = "-----BEGIN ";
const closing = "-----END";
const dashes = "-----";
const longestLabel = 40;
/** Longer than the largest RSA key in use. A stream holds back no more than this. */
const maxPrivateKeyLength = 16_384;
const body = "…redacted…";
const lineBreak = /^(?:\r?\n|(?:\\r)?\\n)/;
const lineBreakAtEnd = /(?:\r?\n|(?:\\r)?\\n)$/;

/**
 * Finds a private key between its BEGIN and END lines, which are kept. A truncated key extends to its last character.
 */
function findPrivateKey(page: ScanPage, at: number): Match {
  const { text, isWhole } = page;
  if (!text.startsWith(opening, at)) {
    const rest = text.slice(at, at + opening.length);
    return !isWhole && at + rest.length === text.length && opening.startsWith(rest) ? needMore : null;
  }
  const labelFrom = at + opening.length;
  const labelTo = text.slice(labelFrom, labelFrom + longestLabel + dashes.length).indexOf(dashes);
  if (labelTo < 0) {
    const isCut = text.length < labelFrom + longestLabel + dashes.length;
    return isCut && !isWhole && /^[A-Z0-9 ]*-{0,4}$/.test(text.slice(labelFrom)) ? needMore : null;
  }
  if (!text.slice(labelFrom, labelFrom + labelTo).includes("PRIVATE KEY")) return null;
  return findBody(page, labelFrom + labelTo + dashes.length);
}

function findBody({ text, isWhole }: ScanPage, from: number): Match {
  const window = text.slice(from, from + maxPrivateKeyLength);
  const lead = lineBreak.exec(window)?.[0] ?? "";
  // A key contains no dashes or quotes, so the next ones end it, or the key was truncated before them.
  const next = window.search(/-----|"/);
  const end = window[next] === "-" ? next : -1;
  const isOpen = next < 0 || (end >= 0 && closing.startsWith(window.slice(end)));
  if (isOpen && window.length < maxPrivateKeyLength && !isWhole) return needMore;
  if (window.startsWith(body, lead.length)) return null;
  if (end >= 0 && window.startsWith(closing, end)) {
    const inside = window.slice(0, end);
    if (!/[A-Za-z0-9+/=]{24}/.test(inside)) return null;
    const tail = inside.length > lead.length ? (lineBreakAtEnd.exec(inside)?.[0] ?? "") : "";
    return { from, to: from + end, instead: `${lead}${body}${tail}` };
  }
  const cut = /^(?:[A-Za-z0-9+/=\r\n]|\\[rn])*/.exec(window)?.[0] ?? "";
  return cut.length < 24 ? null : { from, to: from + cut.length, instead: `${lead}${body}` };
}
