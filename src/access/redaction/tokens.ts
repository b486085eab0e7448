import { isEdge, placeOf } from "./characters.ts";
import type { Found, Page, Span } from "./found.ts";
import { more } from "./found.ts";
import { isMasked, isMaskRest, maskRest } from "./mask.ts";
import type { TokenRule } from "./token-rules.ts";
import { tokenRules } from "./token-rules.ts";

interface Candidate {
  readonly prefix: string;
  readonly rule: TokenRule;
  /** The place of its characters in the table of sets. */
  readonly set: number;
}

/** Prefixes by their first character. */
const byInitial: (readonly Candidate[] | undefined)[] = [];
/** Whether some prefix begins with these two; one of a single character goes on with anything. */
const pairs = new Uint8Array(128 * 128);

for (const rule of tokenRules)
  for (const prefix of rule.prefixes) {
    const initial = prefix.charCodeAt(0);
    byInitial[initial] = [...(byInitial[initial] ?? []), { prefix, rule, set: placeOf(rule.of) }];
    if (prefix.length > 1) pairs[initial * 128 + prefix.charCodeAt(1)] = 1;
    else pairs.fill(1, initial * 128, initial * 128 + 128);
  }

export function isInitial(code: number): boolean {
  return byInitial[code] !== undefined;
}

/** Whether a prefix may begin with these two; what comes to `false` for nearly every word. */
export function isPair(initial: number, next: number): boolean {
  return next < 128 && pairs[initial * 128 + next] === 1;
}

/** A token that begins here, behind an edge; the longest, where several rules know one. */
export function findToken(page: Page, at: number): Found {
  const { text, isWhole } = page;
  if (at + 1 === text.length) return isWhole ? null : more;
  if (!isPair(text.charCodeAt(at), text.charCodeAt(at + 1))) return null;
  let best: Span | null = null;
  for (const candidate of byInitial[text.charCodeAt(at)] ?? []) {
    const found = tryRule(page, at, candidate);
    if (found === more) return more;
    if (found !== null && (best === null || found.to > best.to)) best = found;
  }
  return best;
}

function tryRule({ text, isWhole, runs }: Page, at: number, { prefix, rule, set }: Candidate): Found {
  if (!text.startsWith(prefix, at)) {
    const isCut = text.length - at < prefix.length && prefix.startsWith(text.slice(at));
    return isCut && !isWhole ? more : null;
  }
  const from = at + prefix.length;
  const end = runs.end(set, from, rule.most);
  if (end - from > rule.most) return null;
  if (end === text.length && !isWhole) return more;
  if (text[end] === "…" && end + maskRest > text.length && !isWhole) return more;
  if (end - from < rule.least || isMaskRest(text, end) || !isEdge(text.charCodeAt(end))) return null;
  const to = text[end - 1] === "." ? end - 1 : end;
  const rest = text.slice(from, to);
  if (rest.length < rule.least || (rule.test !== undefined && !rule.test(rest))) return null;
  if (rule.keepsPrefix === true && isMasked(rest)) return null;
  return { from: rule.keepsPrefix === true ? from : at, to };
}
