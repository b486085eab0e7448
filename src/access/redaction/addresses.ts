import { bitOf, isEdge, isIn, placeOf } from "./characters.ts";
import type { Found, Page } from "./found.ts";
import { more } from "./found.ts";
import { isMasked } from "./mask.ts";
import { hasRandomPart } from "./secret-values.ts";

const longestAuthority = 512;
const endOfAuthority = /[\s/?#"'<>`\\]/;
const alnum = bitOf("alnum");
const digit = bitOf("digit");
const url = placeOf("url");

/** The password in `scheme://user:password@host`, or the user, where the user is a token. At the colon of the scheme. */
export function findUserInfo({ text, isWhole }: Page, at: number): Found {
  if (at === 0 || !isIn(alnum, text.charCodeAt(at - 1))) return null;
  const from = at + 3;
  const window = text.slice(from, from + longestAuthority);
  const end = window.search(endOfAuthority);
  if (end < 0 && (window.length === longestAuthority || !isWhole))
    return window.length === longestAuthority ? null : more;
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

/** The token behind the number of a Telegram bot. At the colon between them. */
export function findTelegramToken({ text, isWhole, runs }: Page, at: number): Found {
  let before = at;
  while (before > 0 && at - before <= 12 && isIn(digit, text.charCodeAt(before - 1))) before--;
  if (at - before < 8 || at - before > 12) return null;
  if (before > 0 && !isEdge(text.charCodeAt(before - 1)) && text.slice(before - 3, before) !== "bot")
    return null;
  const end = runs.end(url, at + 1, 40);
  if (end === text.length && !isWhole && end - at - 1 <= 40) return more;
  const length = end - at - 1;
  return length >= 32 && length <= 40 ? { from: at + 1, to: end } : null;
}
