import type { Redactor } from "../../access/redaction/redactor.ts";
import type { Entry } from "../../core/entries.ts";
import { isRecord } from "../../core/shape.ts";
import type { SearchQuery } from "../../store/contract.ts";
import { entryText } from "../../store/search-text.ts";
import { isBinary } from "./blocks.ts";

/**
 * A search for an asker who sees texts with their secrets masked. The whole text of an entry is masked before a snippet is cut
 * out of it: a text that was cut first could show half of a secret.
 */
export function maskedSearch(query: string, redactor: Redactor): Pick<SearchQuery, "text" | "shownText"> {
  return {
    text: withoutSecrets(query, redactor),
    shownText: (entry) => {
      // By the names of fields first, and once more as the text that they are joined to.
      const said = entryText(redactor.redactJson(withTexts(entry)).value as Entry);
      return said === null ? null : redactor.redact(said.text).text;
    },
  };
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

/** Without the bytes of images and what tools keep for themselves: nobody finds those, and they may be large. */
function withTexts(entry: Entry): object {
  if (entry.type !== "message") return { ...entry, details: null };
  const { content } = entry.message as { readonly content?: unknown };
  const blocks = Array.isArray(content)
    ? content.map((block) => (isRecord(block) && isBinary(block) ? { ...block, data: "" } : block))
    : content;
  return { ...entry, message: { ...entry.message, content: blocks ?? null, details: null } };
}
