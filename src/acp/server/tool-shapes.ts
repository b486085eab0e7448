import type { ToolCallContent, ToolKind } from "@agentclientprotocol/sdk/unstable";
import { stringifyJson } from "../../core/json.ts";
import { cutText, escapeToLine } from "../../core/text.ts";

/** How calls of tools look in an editor. */

type Arguments = Readonly<Record<string, unknown>>;

const kinds: Readonly<Record<string, ToolKind>> = {
  sessions_list: "read",
  sessions_history: "read",
  session_status: "read",
  session_list: "read",
  agents_list: "read",
  session_search: "search",
  sessions_send: "other",
  sessions_spawn: "other",
  sessions_yield: "other",
  subagents: "other",
};

/** By the first of these words in its name, of which an underscore, a dash or a capital begins another. */
const words: readonly (readonly [RegExp, ToolKind])[] = [
  [/^(?:read|get|show|view|list|cat)$/, "read"],
  [/^(?:search|find|grep|glob|query)$/, "search"],
  [/^(?:write|edit|patch|replace|update)$/, "edit"],
  [/^(?:delete|remove|rm)$/, "delete"],
  [/^(?:move|rename|mv)$/, "move"],
  [/^(?:run|exec|execute|bash|shell|terminal|command)$/, "execute"],
  [/^(?:fetch|download|http|web|browse|curl)$/, "fetch"],
  [/^(?:think|plan)$/, "think"],
];

export function toolKind(name: string): ToolKind {
  const known = Object.hasOwn(kinds, name) ? kinds[name] : undefined;
  if (known !== undefined) return known;
  for (const word of name
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .toLowerCase()
    .split(/[^a-z0-9]+/)) {
    const found = words.find(([pattern]) => pattern.test(word));
    if (found !== undefined) return found[1];
  }
  return "other";
}

const longestTitle = 120;

/** The name, and what it is called with, on one line. */
export function toolTitle(name: string, args: Arguments): string {
  const with_ = Object.keys(args).length === 0 ? "" : ` ${stringifyJson(args)}`;
  const title = escapeToLine(`${name}${with_}`);
  return title.length > longestTitle ? `${cutText(title, longestTitle)}…` : title;
}

/** Texts and images of a result; blocks of kinds that nobody here knows are left out. */
export function toolContent(blocks: readonly unknown[]): ToolCallContent[] {
  return blocks.flatMap((block): ToolCallContent[] => {
    const { type, text, data, mimeType } = (block ?? {}) as Readonly<Record<string, unknown>>;
    if (type === "text" && typeof text === "string" && text !== "")
      return [{ type: "content", content: { type: "text", text } }];
    if (type === "image" && typeof data === "string" && typeof mimeType === "string")
      return [{ type: "content", content: { type: "image", data, mimeType } }];
    return [];
  });
}
