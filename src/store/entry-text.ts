import type { Entry } from "../core/entries.ts";

/** What an entry says, for searching: all its texts, tool results and call arguments too, images not. */
export interface EntryText {
  readonly role: string;
  readonly text: string;
}

export function entryText(entry: Entry): EntryText | null {
  switch (entry.type) {
    case "message":
      return { role: entry.message.role, text: textsIn(withoutPlumbing(entry.message)).join("\n") };
    case "custom_message":
      return { role: "custom", text: textsIn(entry.content).join("\n") };
    case "compaction":
    case "branch_summary":
      return { role: "summary", text: entry.summary };
    default:
      return null;
  }
}

/** The fields of a message that somebody wrote, not those that say how it came about. */
function withoutPlumbing(message: object): unknown[] {
  return ["content", "command", "output", "errorMessage"].map((field) => Reflect.get(message, field));
}

const skipped = new Set([
  "type",
  "id",
  "data",
  "mimeType",
  "thinkingSignature",
  "textSignature",
  "thoughtSignature",
  "skein",
]);

/** Every string in a value, without recursion: arguments may nest as deep as they like. */
function textsIn(value: unknown): string[] {
  const texts: string[] = [];
  const waiting: unknown[] = [value];
  for (let next = waiting.pop(); waiting.length > 0 || next !== undefined; next = waiting.pop()) {
    if (typeof next === "string") texts.push(next);
    else if (Array.isArray(next)) for (const each of next.toReversed()) waiting.push(each);
    else if (typeof next === "object" && next !== null) {
      const fields = Object.entries(next).filter(([field]) => !skipped.has(field));
      for (const [, each] of fields.toReversed()) waiting.push(each);
    }
  }
  return texts;
}
