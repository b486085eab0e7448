import { cutText, endOfText } from "../../core/text.ts";

/** Below this a mask would show too much. */
const leastShown = 18;
const head = 6;
const tail = 4;
const ellipsis = "…";
export const hidden = "***";

/** A secret as people may see it: enough to tell which one it is, or nothing where it is short. */
export function mask(secret: string): string {
  if (secret.length < leastShown || isEscapedAtEnds(secret)) return hidden;
  return `${cutText(secret, head)}${ellipsis}${endOfText(secret, tail)}`;
}

/** Whether this is what `mask` left; masking it again would only take away from it. */
export function isMasked(text: string): boolean {
  if (text === hidden) return true;
  if (text.length > head + 1 + tail || text.length < head + tail - 1) return false;
  return text[head] === ellipsis || text[head - 1] === ellipsis;
}

/** Whether a word that ends here is the last part of a mask, so that it is no name. */
export function endsMask(text: string, wordFrom: number, wordTo: number): boolean {
  return wordTo - wordFrom <= tail && text[wordFrom - 1] === ellipsis;
}

/** A cut in the middle of an escape would break the JSON or code around it. */
function isEscapedAtEnds(secret: string): boolean {
  return secret.slice(0, head).includes("\\") || secret.slice(-tail - 1).includes("\\");
}
