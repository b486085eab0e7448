import { findTelegramToken, findUserInfo } from "./addresses.ts";
import { isEdge } from "./characters.ts";
import type { Found, Page, Span } from "./found.ts";
import { more } from "./found.ts";
import { findFlag, findKeyed } from "./keyed.ts";
import { leastShown, mask, shownTail } from "./mask.ts";
import { findPrivateKey } from "./private-keys.ts";
import { Runs } from "./runs.ts";
import { findToken, isInitial, isPair } from "./tokens.ts";

/** Where a rule may have something to say: characters by their code, in one table. */
const nothing = 0;
const equals = 1;
const colon = 2;
const hyphen = 3;
const initial = 4;
/** No token begins behind such a character. */
const inner = 8;

const anchors = new Uint8Array(65_536);
for (let code = 0; code < 128; code++)
  anchors[code] = (isInitial(code) ? initial : nothing) | (isEdge(code) ? 0 : inner);
anchors["=".charCodeAt(0)] = equals;
anchors[":".charCodeAt(0)] = colon;
anchors["-".charCodeAt(0)] = hyphen;

export interface Scanned {
  readonly text: string;
  readonly count: number;
  /** From here on nothing is decided. */
  readonly heldFrom: number;
  readonly lastEnd: number;
}

/** What a scan starts from. `lastEnd`: where the last secret ended, 0 if there was none. */
export interface Start {
  readonly text: string;
  readonly from: number;
  readonly lastEnd: number;
  readonly isWhole: boolean;
}

/**
 * One walk over a text from left to right. What is decided at a place depends on a bounded stretch around it and on where
 * the last secret ended, never on how the text came: so a stream comes to the same.
 */
export function scan({ text, from, lastEnd, isWhole }: Start): Scanned {
  const page: Page = { text, isWhole, runs: new Runs(text), lastEnd };
  const parts: string[] = [];
  let count = 0;
  let done = from;
  let at = from;
  let before = at > 0 && at !== lastEnd ? (anchors[text.charCodeAt(at - 1)] ?? nothing) : nothing;
  for (; at < text.length; at++) {
    const here = anchors[text.charCodeAt(at)] ?? nothing;
    const anchor = here & inner & before ? nothing : here & ~inner;
    before = here;
    if (anchor === nothing) continue;
    if (anchor === initial && at + 1 < text.length && !isPair(text.charCodeAt(at), text.charCodeAt(at + 1)))
      continue;
    const found = findAt(page, at, anchor);
    if (found === null) continue;
    if (found === more) break;
    parts.push(text.slice(done, found.from), found.instead ?? mask(text.slice(found.from, found.to)));
    count++;
    done = found.to;
    page.lastEnd = found.to;
    at = found.to - 1;
    before = nothing;
  }
  const heldFrom = Math.min(at, text.length);
  parts.push(text.slice(done, heldFrom));
  return { text: parts.join(""), count, heldFrom, lastEnd: page.lastEnd };
}

function findAt(page: Page, at: number, anchor: number): Found {
  const found = findByRule(page, at, anchor);
  return found === null || found === more || found.instead !== undefined ? found : withGlued(page, found);
}

/** A token that begins in what the mask shows of this one, and goes on behind it, belongs to it. */
function withGlued(page: Page, { from, to: end }: Span): Found {
  let to = end;
  for (let place = to - shownTail; to - from >= leastShown && place < to; place++) {
    const isBehindEdge = place === to - shownTail || isEdge(page.text.charCodeAt(place - 1));
    const glued = isBehindEdge ? findToken(page, place) : null;
    if (glued === more) return more;
    if (glued !== null && glued.to > to) {
      to = glued.to;
      place = to - shownTail - 1;
    }
  }
  return { from, to };
}

function findByRule(page: Page, at: number, anchor: number): Found {
  const { text, isWhole } = page;
  if (anchor === initial) return findToken(page, at);
  if (at + 1 === text.length && !isWhole) return more;
  const next = text[at + 1];
  if (anchor === hyphen) {
    if (next !== "-") return null;
    const key = findPrivateKey(page, at);
    return key ?? (text[at - 1] === "-" || text[at + 2] === "-" ? null : findFlag(page, at));
  }
  if (anchor === equals)
    return next === "=" || "=!<>:".includes(text[at - 1] ?? " ") ? null : findKeyed(page, at);
  if (next === ":" || text[at - 1] === ":") return null;
  if (next === "/") {
    if (at + 2 === text.length && !isWhole) return more;
    if (text[at + 2] === "/") return findUserInfo(page, at);
  }
  return findTelegramToken(page, at) ?? findKeyed(page, at);
}
