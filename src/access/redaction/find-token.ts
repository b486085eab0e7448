import type { Match, ScanPage, Span } from "./secret-matches.ts";
import {
  hasMaskEnd,
  isBoundary,
  isInSet,
  isMasked,
  maskEndLength,
  needMore,
  setIndexOf,
} from "./secret-matches.ts";
import type { TokenRule } from "./token-rules.ts";
import { tokenRules } from "./token-rules.ts";

interface Candidate {
  readonly rule: TokenRule;
  /** The index of the rule's character set. */
  readonly set: number;
}

/**
 * The prefixes of all rules as a tree. The index is `node * 128 + code`, the value is the next node, and 0 is the root.
 */
const tree: number[] = new Array(128).fill(0);
/** By node: the rules whose prefix ends there. */
const candidates: Candidate[][] = [[]];

for (const rule of tokenRules)
  for (const prefix of rule.prefixes) {
    let node = 0;
    for (const char of prefix) {
      const place = node * 128 + char.charCodeAt(0);
      if (tree[place] === 0) {
        tree[place] = candidates.push([]) - 1;
        tree.push(...new Array(128).fill(0));
      }
      node = tree[place] as number;
    }
    candidates[node]?.push({ rule, set: setIndexOf(rule.of) });
  }

const nodes = Uint16Array.from(tree);
const isPrefix = Uint8Array.from(candidates, (each) => Number(each.length > 0));
/** At least the length of the longest prefix plus the minimum number of characters that a rule requires after it. */
export const maxTokenStart = 160;

/** Returns the node after this character, or 0. */
function nextNode(node: number, code: number): number {
  return code < 128 ? (nodes[node * 128 + code] as number) : 0;
}

/**
 * Whether a prefix and enough characters for its rule start at `at`. Only the first `end` units are known. The others
 * are assumed to fit.
 */
export function mayStartToken(units: Uint16Array, at: number, end: number): boolean {
  let node = 0;
  for (let to = at; to < end; ) {
    node = nextNode(node, units[to++] as number);
    if (node === 0) return false;
    if (isPrefix[node] === 1 && hasRun(units, to, end, node)) return true;
  }
  return true;
}

/**
 * Whether enough characters for one of the rules at a node follow. Checks the last one first, because most words are
 * too short.
 */
function hasRun(units: Uint16Array, from: number, end: number, node: number): boolean {
  return (candidates[node] as Candidate[]).some(({ rule, set }) => {
    let to = Math.min(end, from + rule.least);
    while (to > from && isInSet(1 << set, units[to - 1] as number)) to--;
    return to === from;
  });
}

/** Finds the longest token that starts at `at`, which must follow a boundary. */
export function findToken(page: ScanPage, at: number): Match {
  const { text, isWhole } = page;
  let best: Span | null = null;
  let node = 0;
  for (let to = at; to < text.length; ) {
    node = nextNode(node, text.charCodeAt(to++));
    if (node === 0) return best;
    for (const candidate of candidates[node] ?? []) {
      const found = matchRule(page, at, to, candidate);
      if (found === needMore) return needMore;
      if (found !== null && (best === null || found.to > best.to)) best = found;
    }
  }
  return isWhole ? best : needMore;
}

/** Checks the characters after a rule's prefix, which extends from `at` to `from`. */
function matchRule(
  { text, isWhole, runs }: ScanPage,
  at: number,
  from: number,
  { rule, set }: Candidate,
): Match {
  const end = runs.end(set, from, rule.most);
  if (end - from > rule.most) return null;
  if (end === text.length && !isWhole) return needMore;
  if (text[end] === "…" && end + maskEndLength > text.length && !isWhole) return needMore;
  if (end - from < rule.least || hasMaskEnd(text, end) || !isBoundary(text.charCodeAt(end))) return null;
  const to = text[end - 1] === "." ? end - 1 : end;
  const rest = text.slice(from, to);
  if (rest.length < rule.least || (rule.test !== undefined && !rule.test(rest))) return null;
  if (rule.keepsPrefix === true && isMasked(rest)) return null;
  return { from: rule.keepsPrefix === true ? from : at, to };
}
