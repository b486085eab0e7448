/** The tags that we put around the texts of others; no such text begins or ends one. */

const names = ["conversation", "previous-summary", "later-summary", "known-files", "focus", "summary"];

/** What may stand between the bracket and the name and still look like the tag: blanks, strokes, what is not seen. */
const between = "[\\s/\\\\\\p{Cf}\\p{Cc}]*";

function tagsOf(names: readonly string[]): RegExp {
  return new RegExp(`<(?=${between}(?:${names.join("|")})(?![\\p{L}\\p{N}_]))`, "giu");
}

const anyTag = tagsOf(names);
const summaryTag = tagsOf(["summary"]);

/** No text begins or ends a tag of ours. */
export function escapeTags(text: string): string {
  return text.replace(anyTag, "&lt;");
}

/** The same for the one tag that a model sees. */
export function escapeSummaryTag(text: string): string {
  return text.replace(summaryTag, "&lt;");
}
