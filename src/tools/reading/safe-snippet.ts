import type { Redactor } from "../../access/redaction/redactor.ts";
import type { Entry } from "../../core/entries.ts";
import { isRecord } from "../../core/shape.ts";
import { entryText } from "../../store/entry-text.ts";
import type { SearchTerm } from "../../store/search-words.ts";
import { termsOf, wordsOf } from "../../store/search-words.ts";
import { snippetOf } from "../../store/snippet.ts";
import { isBinary } from "./blocks.ts";

/**
 * The text around a hit, made of the whole entry's redacted text: one that was cut first could show the half of a secret.
 * `null`: what was found is itself masked, and a hit would confirm a guess at it.
 */
export function safeSnippet(entry: Entry, query: string, redactor: Redactor): string | null {
  // By the names of fields first, and once more as the text that they are joined to.
  const said = entryText(redactor.redactJson(withTexts(entry)).value as Entry);
  if (said === null) return null;
  const { text } = redactor.redact(said.text);
  const words = wordsOf(text);
  return termsOf(query).every((term) => occurs(words, term)) ? snippetOf(text, query) : null;
}

function occurs(words: readonly string[], { words: wanted, prefix }: SearchTerm): boolean {
  return words.some((_, start) =>
    wanted.every((word, offset) => {
      const found = words[start + offset];
      if (found === undefined) return false;
      return prefix && offset === wanted.length - 1 ? found.startsWith(word) : found === word;
    }),
  );
}

/** Without the bytes of images and what tools keep for themselves: nobody finds those, and they may be large. */
function withTexts(entry: Entry): object {
  if (entry.type !== "message") return { ...entry, details: null };
  const { content } = entry.message as { readonly content?: unknown };
  const blocks = Array.isArray(content)
    ? content.map((block) => (isRecord(block) && isBinary(block) ? { ...block, data: "" } : block))
    : content;
  return { ...entry, message: { ...entry.message, content: blocks ?? null, details: null } };
}
