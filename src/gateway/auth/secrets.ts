import { hash as digest, randomBytes, timingSafeEqual } from "node:crypto";

/** The secrets themselves: 32 random bytes behind a prefix by which they are known. Only their hashes are kept. */

export const tokenPrefix = "skein_";
export const codePrefix = "skein_code_";
const randomPart = /^[A-Za-z0-9_-]{43}$/;
const beginningLength = 8;

export type RandomSource = (count: number) => Uint8Array;
export const systemRandom: RandomSource = (count) => randomBytes(count);

/** A hash as it is kept. */
export interface KeptHash {
  readonly beginning: string;
  readonly hash: string;
}

export function newSecret(prefix: string, random: RandomSource): string {
  return prefix + Buffer.from(random(32)).toString("base64url");
}

/** Whether a text has the form of such a secret. */
export function isSecret(prefix: string, text: unknown): text is string {
  return typeof text === "string" && text.startsWith(prefix) && randomPart.test(text.slice(prefix.length));
}

export function hashOf(secret: string): KeptHash {
  const hash = digest("sha256", secret);
  return { beginning: hash.slice(0, beginningLength), hash };
}

/** The row with this very hash. Each is compared in constant time, and one that is not there too. */
export function matching<Row extends { readonly hash: string }>(
  rows: readonly Row[],
  { hash }: KeptHash,
): Row | null {
  const wanted = Buffer.from(hash, "hex");
  const compared = rows.length === 0 ? [null] : rows;
  let found: Row | null = null;
  for (const row of compared) {
    const kept = row === null ? Buffer.alloc(wanted.length) : Buffer.from(row.hash, "hex");
    if (kept.length === wanted.length && timingSafeEqual(kept, wanted)) found = row;
  }
  return found;
}
