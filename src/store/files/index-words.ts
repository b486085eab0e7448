import { createHash } from "node:crypto";

/** Names as words of the full-text index, so that one look finds the words of one user, agent, session or role. */

/** Every entry has one of each kind. */
export const scopeWordCount = 4;

const known = new Map<string, string>();
const mostKnown = 10_000;

/** A name as one word of the index, whatever is in it. */
export function scopeWord(kind: "u" | "a" | "s" | "r", name: string): string {
  const made = known.get(kind + name);
  if (made !== undefined) return made;
  const word = `${kind}${createHash("sha256").update(name).digest("hex").slice(0, 32)}`;
  if (known.size >= mostKnown) known.clear();
  known.set(kind + name, word);
  return word;
}
