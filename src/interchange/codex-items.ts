import { stringifyJson } from "../core/json.ts";
import type { AssistantBlock, ImageBlock, TextBlock, ThinkingBlock } from "../core/messages.ts";
import { isRecord } from "../core/shape.ts";
import type { Losses } from "./imported.ts";
import type { JsonObject } from "./json-lines.ts";
import { listField, objectField, parseObject, textField } from "./json-lines.ts";
import { argumentsOf, shortType } from "./message-drafts.ts";

/** The items of OpenAI's Responses API, as blocks of ours. */

type Block = TextBlock | ImageBlock;

/** Text and inline images; anything else stays as it is, which every reader passes by. */
export function codexContent(content: unknown, losses: Losses): Block[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  if (!Array.isArray(content)) return [];
  return content.flatMap((block): Block | never[] => {
    if (!isRecord(block) || typeof block.type !== "string") {
      losses.add("A block of a message that has no type was left out.");
      return [];
    }
    const text = textField(block, "text") ?? textField(block, "refusal");
    if (text !== null) return { type: "text", text };
    const image = imageOf(textField(block, "image_url") ?? "");
    if (image !== null) return image;
    losses.add(`A block of type "${shortType(block.type)}" is kept, but no model is shown it.`);
    return { ...block, type: `codex_${block.type}` } as unknown as Block;
  });
}

/** An image that is inline, as a data URL. */
function imageOf(url: string): ImageBlock | null {
  const comma = url.indexOf(",");
  const mimeType = /^data:([\w.+-]+\/[\w.+-]+);base64$/.exec(url.slice(0, Math.max(0, comma)))?.[1];
  return mimeType === undefined ? null : { type: "image", data: url.slice(comma + 1), mimeType };
}

/** Reasoning as pi keeps it: its summary to read, and the whole item to send again where it is encrypted. */
export function reasoningBlock(item: JsonObject): ThinkingBlock {
  const texts = (field: string) =>
    listField(item, field)
      .flatMap((part) =>
        typeof part === "string" ? part : isRecord(part) ? (textField(part, "text") ?? []) : [],
      )
      .join("\n\n");
  const thinking = texts("summary") || texts("content");
  if (textField(item, "encrypted_content") === null) return { type: "thinking", thinking };
  return { type: "thinking", thinking, thinkingSignature: stringifyJson(item) };
}

/** A call of a tool, of whichever kind; `null` for an item that is none. */
export function callBlock(item: JsonObject): Extract<AssistantBlock, { type: "toolCall" }> | null {
  const id = textField(item, "call_id") ?? textField(item, "id");
  if (id === null) return null;
  const called = (name: string, input: unknown) => {
    const namespace = textField(item, "namespace");
    const more = namespace === null ? {} : { namespace };
    return { type: "toolCall" as const, id, name, arguments: argumentsOf(input), ...more };
  };
  switch (item.type) {
    case "function_call": {
      const text = textField(item, "arguments");
      return called(
        textField(item, "name") ?? "unknown",
        text === null ? item.arguments : (parseObject(text) ?? text),
      );
    }
    case "custom_tool_call":
      return called(textField(item, "name") ?? "unknown", item.input);
    case "local_shell_call":
      return called("local_shell", item.action);
    case "tool_search_call":
      return called("tool_search", item.arguments);
    default:
      return null;
  }
}

export interface CodexResult {
  readonly content: Block[];
  readonly isError: boolean;
  readonly details?: unknown;
}

/** What a call gave back. Failure is in a flag, in the metadata, or in words at the beginning. */
export function resultOf(item: JsonObject, losses: Losses): CodexResult {
  const output = item.type === "tool_search_output" ? stringifyJson(item.tools ?? []) : item.output;
  if (isRecord(output)) {
    const content = codexContent(output.content ?? output.output, losses);
    return { content, isError: output.success === false };
  }
  if (typeof output !== "string") return { content: codexContent(output, losses), isError: false };
  const wrapped = output.startsWith("{") ? parseObject(output) : null;
  const metadata = wrapped === null ? null : objectField(wrapped, "metadata");
  const inner = wrapped === null ? null : textField(wrapped, "output");
  if (metadata !== null && inner !== null)
    return { content: codexContent(inner, losses), isError: failed(metadata.exit_code), details: metadata };
  const said = /^(?:Exit code: |Process exited with code )(-?\d+)$/m.exec(output.slice(0, 400))?.[1];
  return { content: codexContent(output, losses), isError: failed(Number(said ?? 0)) };
}

export function failed(exitCode: unknown): boolean {
  return typeof exitCode === "number" && exitCode !== 0;
}

const tags =
  /^<(environment_context|user_instructions|permissions instructions|collaboration_mode|multi_agent_mode|apps_instructions|skills_instructions|plugins_instructions|turn_aborted|subagent_notification)>[\s\S]*<\/[^<>]+>$/;

/** What Codex puts in itself under the user's role: for the model, not for people. */
export function isInjected(text: string): boolean {
  const trimmed = text.trim();
  return (
    tags.test(trimmed) ||
    (trimmed.startsWith("# AGENTS.md instructions") && trimmed.includes("<INSTRUCTIONS>"))
  );
}

/** Where the session worked, in the versions that say so in the first message alone. */
export function cwdIn(text: string): string | null {
  return (
    /<cwd>([^<]+)<\/cwd>/.exec(text)?.[1] ?? /^Current working directory: (.+)$/m.exec(text)?.[1] ?? null
  );
}
