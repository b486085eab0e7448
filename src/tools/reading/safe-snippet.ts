import type { Redactor } from "../../access/redaction/redactor.ts";
import type { Entry } from "../../core/entries.ts";
import { isRecord } from "../../core/shape.ts";
import { entryText } from "../../store/entry-text.ts";
import type { SearchTerm } from "../../store/search-words.ts";
import { countOccurrences, termsOf, wordsOf } from "../../store/search-words.ts";
import { snippetOf } from "../../store/snippet.ts";
import { isBinary } from "./blocks.ts";

export interface SafeSnippet {
  readonly snippet: string;
  /** Whether all words of the query stand in what may be shown. */
  readonly hasAllWords: boolean;
}

/**
 * The text around a hit, made of the whole entry's redacted text: one that was cut first could show the half of a secret.
 * `null`: what was found is itself masked, and a hit would confirm a guess at it.
 */
export function safeSnippet(entry: Entry, query: string, redactor: Redactor): SafeSnippet | null {
  // By the names of fields first, and once more as the text that they are joined to.
  const said = entryText(redactor.redactJson(withTexts(entry)).value as Entry);
  if (said === null) return null;
  const { text } = redactor.redact(said.text);
  const words = wordsOf(text);
  const { any } = termsOf(withoutSecrets(query, redactor));
  const { all } = termsOf(query);
  const occurs = (term: SearchTerm) => countOccurrences(words, term) > 0;
  return any.some(occurs) ? { snippet: snippetOf(text, query), hasAllWords: all.every(occurs) } : null;
}

/** Parts of a secret are words too, and some of them stand beside its mask in what is shown. */
function withoutSecrets(query: string, redactor: Redactor): string {
  const { text, count } = redactor.redact(query);
  if (count === 0) return query;
  const shown = new Set(text.split(/\s+/));
  return query
    .split(/\s+/)
    .filter((word) => shown.has(word))
    .join(" ");
}

/** Hits in their order, those with all words first by what may be shown: a masked word must not move its entry to the front. */
export function allWordsFirst<Hit>(hits: readonly (readonly [Hit, SafeSnippet])[]): Hit[] {
  return [true, false].flatMap((isFirst) =>
    hits.filter(([, { hasAllWords }]) => hasAllWords === isFirst).map(([hit]) => hit),
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
