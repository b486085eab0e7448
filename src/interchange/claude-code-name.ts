import type { ClaudeFile } from "./claude-code-lines.ts";
import type { Losses } from "./imported.ts";
import { textField } from "./json-lines.ts";

/** Titles, the better kind first, with the field that holds them. */
const titles: readonly (readonly [type: string, field: string])[] = [
  ["custom-title", "customTitle"],
  ["ai-title", "aiTitle"],
  ["agent-name", "agentName"],
  ["summary", "summary"],
];

export function isTitle(type: string): boolean {
  return titles.some(([each]) => each === type);
}

/** The best title that is there, the last of its kind. A summary counts if it is of a conversation in this file. */
export function claudeName(file: ClaudeFile, losses: Losses): string | null {
  const lastOf = new Map<string, string>();
  let count = 0;
  for (const { type, value } of file.lines) {
    const field = titles.find(([each]) => each === type)?.[1];
    if (field === undefined) continue;
    count += 1;
    const title = textField(value, field)?.trim() ?? "";
    const ours = type !== "summary" || file.byUuid.has(textField(value, "leafUuid") ?? "");
    if (title !== "" && ours) lastOf.set(type, title);
  }
  const name = titles.flatMap(([type]) => lastOf.get(type) ?? [])[0] ?? null;
  const others = count - (name === null ? 0 : 1);
  if (others > 0) losses.add("A title that is not the session's last one was left out.", undefined, others);
  return name;
}
