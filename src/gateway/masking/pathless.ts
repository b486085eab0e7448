import { mapStrings } from "../../access/redaction/map-strings.ts";
import type { Redactor } from "../../access/redaction/redactor.ts";

const field = "transcriptPath";
/** A field of JSON, however often that JSON was written into a text of another. */
const inText = /("transcriptPath\\*": ?\\*")([^"]*)/g;

/**
 * A redactor that also takes out where session files lie on this machine. `sessions_list` tells it to agents, so that it stands in
 * transcripts; whoever reads those and is no admin is not told.
 */
export function pathless(redactor: Redactor): Redactor {
  return {
    redact: (text) => {
      const { text: safe, count } = redactor.redact(text);
      return { text: withoutPath(safe), count };
    },
    redactJson: (value) => {
      const { value: safe, count } = redactor.redactJson(value);
      return { value: mapStrings(safe, (text, key) => (key === field ? "" : withoutPath(text))), count };
    },
    stream: () => redactor.stream(),
  };
}

/** The name stays, and what closes the text behind it. */
export function withoutPath(text: string): string {
  if (!text.includes(field)) return text;
  return text.replace(inText, (_, head: string, path: string) => head + endOf(path));
}

/** The backslashes before the quote that ends it. */
function endOf(path: string): string {
  let from = path.length;
  while (from > 0 && path[from - 1] === "\\") from--;
  return path.slice(from);
}
