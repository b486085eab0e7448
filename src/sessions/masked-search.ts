import type { Redactor } from "../access/redaction/redactor.ts";
import type { Entry } from "../core/entries.ts";
import { isRecord } from "../core/is-record.ts";
import { isBinary } from "../core/messages.ts";
import type { SearchQuery } from "../store/contract.ts";
import { entryText } from "../store/search-text.ts";

/**
 * Returns the fields of a search query that hide secrets from its reader. An entry's full text is masked before the
 * snippet is extracted, because a snippet could contain only half of a secret.
 */
export function maskedSearch(query: string, redactor: Redactor): Pick<SearchQuery, "text" | "shownText"> {
  return {
    text: withoutSecrets(query, redactor),
    shownText: (entry) => shownText(entry, redactor),
  };
}

/** Returns an entry's searchable text without secrets, or `null` if it has none. */
export function shownText(entry: Entry, redactor: Redactor): string | null {
  // Redacted first by field name and then as joined text.
  const found = entryText(redactor.redactJson(withTexts(entry)).value as Entry);
  return found === null ? null : redactor.redact(found.text).text;
}

/** Drops words that are part of a secret, because a match would confirm a guess. */
function withoutSecrets(query: string, redactor: Redactor): string {
  const { text, count } = redactor.redact(query);
  if (count === 0) return query;
  const shown = new Set(text.split(/\s+/));
  return query
    .split(/\s+/)
    .filter((word) => shown.has(word))
    .join(" ");
}

/** Returns the entry without image data and tool details, which are not searchable and can be large. */
function withTexts(entry: Entry): object {
  if (entry.type !== "message") return { ...entry, details: null };
  const { content } = entry.message as { readonly content?: unknown };
  const blocks = Array.isArray(content)
    ? content.map((block) => (isRecord(block) && isBinary(block) ? { ...block, data: "" } : block))
    : content;
  return { ...entry, message: { ...entry.message, content: blocks ?? null, details: null } };
}
