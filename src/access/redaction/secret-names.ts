import { isInSet, maskTailLength, setBitOf } from "./secret-matches.ts";

/** The kind of name, which determines how closely a value must resemble a secret to be treated as one. */
export type KeyKind = "password" | "secret" | "authorization" | "cookie" | "setCookie";

const toSet = (words: string) => new Set(words.split(" "));

const passwords = toSet(
  "password passwd pwd passphrase pass passcode userpassword dbpassword rootpassword secretkeybase",
);
const secrets = toSet(
  "secret token apikey accesskey secretkey privatekey authkey authtoken accesstoken refreshtoken idtoken " +
    "sessiontoken clientsecret appsecret accountkey sharedaccesskey credential credentials apitoken pat sig " +
    "signature bearer secretaccesskey securitytoken subscriptionkey signingkey encryptionkey masterkey webhooksecret " +
    "key auth base",
);
/** Words before "key" that make it a secret, unlike in `sessionKey` and `primaryKey`. */
const secretKeys = toSet(
  "api access secret private auth account signing encryption master subscription service storage shared client " +
    "app admin license webhook deploy write live functions host",
);
/** Words before "key" that make it an identifier, even in capitals: `SESSION_KEY`, `CACHE_KEY`. */
const openKeys = toSet(
  "session public primary foreign partition sort cache hash object row shard group index lookup idempotency " +
    "publishable routing map dedupe unique dict",
);
/** Words next to "token" that make it something other than a secret. */
const openTokens = toSet(
  "page next continuation sync cursor max min num total stop eos bos pad unk special input output per cached",
);

/** By the last word of a name. */
const kinds = new Map<string, KeyKind>([
  ...[...passwords].map((word) => [word, "password"] as const),
  ...[...secrets].map((word) => [word, "secret"] as const),
  ["cookie", "cookie"],
  ["authorization", "authorization"],
]);

/**
 * All words that matter, as a tree. The index is `node * 32 + letter`, the value is the next node, and 0 is the root.
 */
const tree: number[] = new Array(32).fill(0);
/** The word that ends at a node. */
const wordAt: string[] = [""];
/** The last three letters of the words in `kinds`. The index has five bits per letter. */
const endings = new Uint8Array(1 << 15);

for (const word of [...kinds.keys(), ...secretKeys, ...openKeys, ...openTokens, "set", "proxy"]) {
  const letters = Array.from(word, (char) => toLetter(char.charCodeAt(0)));
  let node = 0;
  for (const letter of letters) {
    if (tree[node * 32 + letter] === 0) {
      tree[node * 32 + letter] = wordAt.push("?") - 1;
      tree.push(...new Array(32).fill(0));
    }
    node = tree[node * 32 + letter] as number;
  }
  wordAt[node] = word;
  const [first = 0, second = 0, third = 0] = letters.slice(-3);
  if (kinds.has(word)) endings[(first << 10) | (second << 5) | third] = 1;
}
const nodes = Uint16Array.from(tree);

/** Returns 1 to 26 for a letter in either case, and 0 for any other character. */
function toLetter(code: number): number {
  const letter = (code | 32) - 96;
  return letter > 0 && letter < 27 ? letter : 0;
}

/** Rejects most names by their last three letters. */
function hasSecretEnding(first: number, second: number, third: number): boolean {
  return endings[(toLetter(first) << 10) | (toLetter(second) << 5) | toLetter(third)] === 1;
}

/**
 * Returns the kind of secret that a name such as `OPENAI_API_KEY`, `--db-password` or `X-Auth-Token` indicates, or
 * `null` if it indicates none.
 */
export function keyKind(name: string): KeyKind | null {
  const { length } = name;
  if (!hasSecretEnding(name.charCodeAt(length - 3), name.charCodeAt(length - 2), name.charCodeAt(length - 1)))
    return null;
  const units = new Uint16Array(length);
  for (let at = 0; at < length; at++) units[at] = name.charCodeAt(at);
  return keyKindIn(units, 0, length);
}

/** Like `keyKind`, but for a name within a text. */
function keyKindIn(units: Uint16Array, from: number, to: number): KeyKind | null {
  const lastFrom = startOfWord(units, from, to);
  const last = findWord(units, lastFrom, to);
  const kind = kinds.get(last) ?? null;
  if (kind === null) return null;
  const before = wordBefore(units, from, lastFrom);
  switch (last) {
    case "cookie":
      return before === "set" ? "setCookie" : "cookie";
    case "auth":
      return before === "proxy" ? "authorization" : before === "" ? "secret" : null;
    case "token":
      return openTokens.has(before) ? null : "secret";
    case "key":
      return isSecretKey(units, from, to, before) ? "secret" : null;
    case "base":
      return before === "key" ? "secret" : null;
    case "pass":
      // `DB_PASS` is the name of a secret, but "on the first pass" is not.
      return countWords(units, from, to) > 3 ? null : "password";
    default:
      return kind;
  }
}

function isSecretKey(units: Uint16Array, from: number, to: number, before: string): boolean {
  if (secretKeys.has(before)) return true;
  return before !== "" && !openKeys.has(before) && isUpperCase(units, from, to);
}

const alnum = setBitOf("alnum");
const upper = setBitOf("upper");
const underscore = "_".charCodeAt(0);

function isUpperCase(units: Uint16Array, from: number, to: number): boolean {
  for (let at = from; at < to; at++)
    if (!isInSet(upper, units[at] as number) && units[at] !== underscore) return false;
  return true;
}

/** Words are separated by other characters or, as in `apiKey`, by a capital letter. */
function startOfWord(units: Uint16Array, from: number, to: number): number {
  let start = to;
  while (start > from && isInSet(alnum, units[start - 1] as number)) {
    start--;
    if (start > from && isCapital(units[start] as number) && !isCapital(units[start - 1] as number)) break;
  }
  return start;
}

function endOfWord(units: Uint16Array, from: number, to: number): number {
  let end = to;
  while (end > from && !isInSet(alnum, units[end - 1] as number)) end--;
  return end;
}

function isCapital(code: number): boolean {
  return code >= 65 && code <= 90;
}

/** Returns the word in lowercase, or "?" if it is unknown. */
function findWord(units: Uint16Array, from: number, to: number): string {
  let node = 0;
  for (let at = from; at < to; at++) {
    const letter = toLetter(units[at] as number);
    node = letter === 0 ? 0 : (nodes[node * 32 + letter] as number);
    if (node === 0) return "?";
  }
  return wordAt[node] as string;
}

/** Returns the last word before `to`, or the empty string if there is none. */
function wordBefore(units: Uint16Array, from: number, to: number): string {
  const end = endOfWord(units, from, to);
  return findWord(units, startOfWord(units, from, end), end);
}

function countWords(units: Uint16Array, from: number, to: number): number {
  let count = 0;
  for (let end = to; end > from; end = endOfWord(units, from, startOfWord(units, from, end))) count++;
  return count;
}

const longestName = 64;
const longestSpace = 8;
/** The maximum distance from a separator back to the start of its name, including quotes and spaces. */
export const maxLookBack = longestName + longestSpace + 8;

const key = setBitOf("key");
const [space, bracket, backslash, colon] = Array.from(" ]\\:", (char) => char.charCodeAt(0));
const quotes = new Uint8Array(0x10000);
for (const char of "\"'`") quotes[char.charCodeAt(0)] = 1;

/**
 * Returns the kind of the name before the separator at `at`, with or without quotes. The name starts at or after
 * `floor`.
 */
export function keyKindBefore(units: Uint16Array, at: number, floor: number): KeyKind | null {
  let to = at;
  while (to > floor && at - to < longestSpace && units[to - 1] === space) to--;
  if (to > floor && units[to - 1] === bracket) to--;
  if (to > floor && quotes[units[to - 1] as number] === 1) to--;
  if (to > floor && units[to - 1] === backslash) to--;
  if (to - 3 < floor) return null;
  if (!hasSecretEnding(units[to - 3] as number, units[to - 2] as number, units[to - 1] as number))
    return null;
  let from = to - 3;
  while (from > floor && to - from <= longestName && isInSet(key, units[from - 1] as number)) from--;
  if (to - from > longestName) return null;
  // `agent:token:main` is a session key, and its parts are not names.
  if (units[at] === colon && units[from - 1] === colon) return null;
  return keyKindIn(units, Math.min(to, from + maskTailLength(units, from)), to);
}
