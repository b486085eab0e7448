import type { Entry } from "../core/entries.ts";

/** The searchable text of an entry, including tool results and arguments but not images. */
interface EntryText {
  readonly role: string;
  readonly text: string;
}

/**
 * Returns the texts of an entry's blocks, individually and joined. Other strings in the entry are included individually
 * only if they contain spaces.
 */
export function entryTexts(entry: Entry): string[] {
  const said = entryText(entry);
  if (said === null) return isPartial(entry) ? [partialText(entry)] : [];
  const content: unknown = entry.type === "message" ? Reflect.get(entry.message, "content") : null;
  const blocks = Array.isArray(content) ? content.map(blockText).filter((text) => text !== "") : [];
  const rest = entry.type === "message" ? textsIn(withoutPlumbing(entry.message)) : [];
  const sentences = rest.filter((text) => /\s/.test(text.trim()));
  return [said.text, ...blocks, blocks.join(""), blocks.join("\n"), ...sentences];
}

/** Whether the entry is streamed text that a run saved before its process crashed. */
export function isPartial(entry: Entry): boolean {
  return entry.type === "custom" && entry.customType === "skein.partial";
}

export function partialText(entry: Entry): string {
  const data = entry.type === "custom" ? entry.data : null;
  const text: unknown = typeof data === "object" && data !== null ? Reflect.get(data, "text") : null;
  return typeof text === "string" ? text : "";
}

function blockText(block: unknown): string {
  const text: unknown = typeof block === "object" && block !== null ? Reflect.get(block, "text") : null;
  return typeof text === "string" ? text : "";
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

/** Returns the written fields of a message, without its technical fields. */
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

/** Returns every string in a value. Not recursive, because arguments can be deeply nested. */
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
