import { hashOf } from "../rules.ts";

/** Starts the code of a character that PostgreSQL does not store. */
const codeStart = "\uE000";
/** A zero byte, half of a surrogate pair, or the start of a code. */
const refused = /[\0\uE000]|[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g;

const coded = /[\0\uE000]/g;

/**
 * Encodes text so that PostgreSQL stores it. A lone surrogate is replaced, as in SQLite. Otherwise, a migration to a
 * folder would find a difference.
 */
export function encodeText(value: string): string {
  return value
    .toWellFormed()
    .replace(coded, (character) => `${codeStart}${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

const codes = new RegExp(`${codeStart}([0-9a-f]{4})`, "g");

/** Decodes text from `encodeText`. Lone surrogates, which an earlier version also encoded, are replaced. */
export function decodeText(value: string): string {
  if (!value.includes(codeStart)) return value;
  return value
    .replace(codes, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
    .toWellFormed();
}

/** A limit that keeps an index row with three such values below PostgreSQL's maximum of about 2,700 bytes. */
const longestLookup = 400;

/**
 * Returns the form in which a value is compared in the database. Different values have different forms, but a form
 * cannot be converted back. It is the value itself unless the value is too long for an index, is not valid text in
 * PostgreSQL, or starts like a hash.
 */
export function lookupText(value: string): string {
  const isPlain =
    !value.startsWith("~") && !value.match(refused) && Buffer.byteLength(value) <= longestLookup;
  return isPlain ? value : `~${hashOf(Buffer.from(value, "utf16le"))}`;
}

/** No lookup form equals these values, because a form that starts with `~` continues with a hash. */
const unnamedUser = "~unnamed";
export const everyUserKey = "~every user";

/** Returns the value of `user_id` for a user. It is never empty, because an empty setting means that no user is set. */
export function userKey(userId: string | null | undefined): string {
  return userId === null || userId === undefined ? unnamedUser : lookupText(userId);
}

/** Session IDs are case-insensitive. */
export function idKey(sessionId: string): string {
  return lookupText(sessionId.toLowerCase());
}

/** Returns text that PostgreSQL accepts. Only for text that is searched or sorted, because a zero byte is replaced. */
export function acceptedText(value: string): string {
  return value.replaceAll("\0", "\u0001").toWellFormed();
}
