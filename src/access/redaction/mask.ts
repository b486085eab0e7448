import { cutText, endOfText } from "../../core/text.ts";

/** Below this a mask would show too much. */
export const leastShown = 18;
const head = 6;
export const shownTail = 4;
const ellipsis = "…";
export const hidden = "***";

/** A secret as people may see it: enough to tell which one it is, or nothing where it is short. */
export function mask(secret: string): string {
  if (secret.length < leastShown || isEscapedAtEnds(secret)) return hidden;
  return `${cutText(secret, head)}${ellipsis}${endOfText(secret, shownTail)}`;
}

/** Whether this is what `mask` left; masking it again would only take away from it. */
export function isMasked(text: string): boolean {
  if (text === hidden) return true;
  if (text.length > head + 1 + shownTail || text.length < head + shownTail - 1) return false;
  return text[head] === ellipsis || text[head - 1] === ellipsis;
}

/** How much of the word that begins here is the end of a mask, and so no part of a name. */
export function maskTailAt(text: string, at: number): number {
  return at > 1 && text[at - 1] === ellipsis && /\S/.test(text[at - 2] ?? "") ? shownTail : 0;
}

/** Whether the rest of a mask stands here, so that what ends here is its beginning. Looks at `maskRest` characters. */
export function isMaskRest(text: string, at: number): boolean {
  return text[at] === ellipsis && /^\S{3}/.test(text.slice(at + 1, at + maskRest));
}

export const maskRest = 4;

/** A cut in the middle of an escape would break the JSON or code around it. */
function isEscapedAtEnds(secret: string): boolean {
  return secret.slice(0, head).includes("\\") || secret.slice(-shownTail - 1).includes("\\");
}
