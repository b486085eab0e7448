import type { Found, Page } from "./found.ts";
import { more } from "./found.ts";

const opening = "-----BEGIN ";
const closing = "-----END";
const dashes = "-----";
const longestLabel = 40;
/** More than the largest RSA key in use; a stream holds back no more than that. */
export const longestPrivateKey = 16_384;
const body = "…redacted…";
const lineBreak = /^(?:\r?\n|(?:\\r)?\\n)/;
const lineBreakAtEnd = /(?:\r?\n|(?:\\r)?\\n)$/;

/** A private key between its BEGIN and END lines, which stay; cut off ones as far as they go. */
export function findPrivateKey(page: Page, at: number): Found {
  const { text, isWhole } = page;
  if (!text.startsWith(opening, at)) {
    const rest = text.slice(at, at + opening.length);
    return !isWhole && at + rest.length === text.length && opening.startsWith(rest) ? more : null;
  }
  const labelFrom = at + opening.length;
  const labelTo = text.slice(labelFrom, labelFrom + longestLabel + dashes.length).indexOf(dashes);
  if (labelTo < 0) {
    const isCut = text.length < labelFrom + longestLabel + dashes.length;
    return isCut && !isWhole && /^[A-Z0-9 ]*-{0,4}$/.test(text.slice(labelFrom)) ? more : null;
  }
  if (!text.slice(labelFrom, labelFrom + labelTo).includes("PRIVATE KEY")) return null;
  return findBody(page, labelFrom + labelTo + dashes.length);
}

function findBody({ text, isWhole }: Page, from: number): Found {
  const window = text.slice(from, from + longestPrivateKey);
  const lead = lineBreak.exec(window)?.[0] ?? "";
  // No dashes or quotes stand inside a key: the next ones end it, or it is cut off before them.
  const next = window.search(/-----|"/);
  const end = window[next] === "-" ? next : -1;
  const isOpen = next < 0 || (end >= 0 && closing.startsWith(window.slice(end)));
  if (isOpen && window.length < longestPrivateKey && !isWhole) return more;
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
