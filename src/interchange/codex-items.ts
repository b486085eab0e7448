import { isRecord } from "../core/is-record.ts";
import { stringifyJson } from "../core/json.ts";
import type { ImageBlock, TextBlock, ThinkingBlock, ToolCallBlock } from "../core/messages.ts";
import type { Steps } from "../core/slices.ts";
import type { Losses } from "./imported-session.ts";
import { convertBlocks, shortType, toArguments } from "./imported-session.ts";
import type { JsonObject } from "./json-lines.ts";
import { listField, objectField, parseObject, readJsonLines, textField, timeField } from "./json-lines.ts";

/** Reads the lines of a Codex rollout and converts their items, which use OpenAI's Responses API format. */

export interface CodexLine {
  readonly line: number;
  readonly time: number;
  /** `session_meta`, `turn_context`, `response_item`, `event_msg`, `compacted`, and more in later versions. */
  readonly type: string;
  readonly payload: JsonObject;
}

export function* readCodexLines(source: string | Uint8Array, losses: Losses): Steps<CodexLine[]> {
  const document = readDocument(source);
  if (document !== null) return document;
  const lines: CodexLine[] = [];
  let time = 0;
  for (const { line, value, length } of readJsonLines(source)) {
    yield length;
    const found = value === null ? null : unwrapLine(value);
    if (value === null || found === null) {
      losses.add("A damaged line was skipped.", `line ${line}`);
      continue;
    }
    time = timeField(value, "timestamp") ?? time;
    lines.push({ line, time, ...found });
  }
  return lines;
}

function unwrapLine(value: JsonObject): Pick<CodexLine, "type" | "payload"> | null {
  const type = textField(value, "type");
  const payload = objectField(value, "payload");
  if (type !== null && payload !== null) return { type, payload };
  // Before September 2025, there was no envelope. A file consisted of a header without a type, followed by the items
  // themselves.
  if (type !== null) return "payload" in value ? null : { type: "response_item", payload: value };
  if (value.record_type !== undefined) return { type: "state", payload: value };
  return typeof value.id === "string" ? { type: "session_meta", payload: value } : null;
}

/** The earliest rollouts are a single JSON document. */
function readDocument(source: string | Uint8Array): CodexLine[] | null {
  const decode = (part: string | Uint8Array) =>
    typeof part === "string" ? part : new TextDecoder().decode(part);
  if (!/^\ufeff?\s*\{\s*"session"\s*:/.test(decode(source.slice(0, 100)))) return null;
  const document = parseObject(decode(source)) ?? {};
  const session = objectField(document, "session");
  if (session === null) return null;
  const time = timeField(session, "timestamp") ?? 0;
  const items = listField(document, "items").flatMap((payload, index) =>
    isRecord(payload) ? [{ line: index + 2, time, type: "response_item", payload }] : [],
  );
  return [{ line: 1, time, type: "session_meta", payload: session }, ...items];
}

/** Blocks of other types are kept under a prefixed type. Readers ignore them. */
export function toContent(content: unknown, losses: Losses): (TextBlock | ImageBlock)[] {
  return convertBlocks(content, (block): TextBlock | ImageBlock | null => {
    if (!isRecord(block) || typeof block.type !== "string") {
      losses.add("A message block without a type was left out.");
      return null;
    }
    const text = textField(block, "text") ?? textField(block, "refusal");
    if (text !== null) return { type: "text", text };
    const image = toImageBlock(textField(block, "image_url") ?? "");
    if (image !== null) return image;
    losses.add(`A block of type "${shortType(block.type)}" is kept, but is not sent to models.`);
    return { ...block, type: `codex_${block.type}` } as unknown as TextBlock;
  });
}

/** Returns `null` unless the URL is a base64 data URL. */
function toImageBlock(url: string): ImageBlock | null {
  const comma = url.indexOf(",");
  const mimeType = /^data:([\w.+-]+\/[\w.+-]+);base64$/.exec(url.slice(0, Math.max(0, comma)))?.[1];
  return mimeType === undefined ? null : { type: "image", data: url.slice(comma + 1), mimeType };
}

/** Keeps the summary as text. An encrypted item is kept in full, as in pi, so that it can be sent again. */
export function toThinkingBlock(item: JsonObject): ThinkingBlock {
  const texts = (field: string) =>
    listField(item, field)
      .flatMap((part) => (isRecord(part) ? (textField(part, "text") ?? []) : part))
      .filter((text) => typeof text === "string")
      .join("\n\n");
  const thinking = texts("summary") || texts("content");
  if (textField(item, "encrypted_content") === null) return { type: "thinking", thinking };
  return { type: "thinking", thinking, thinkingSignature: stringifyJson(item) };
}

/** Returns `null` for an item that is not a tool call. */
export function toToolCall(item: JsonObject): ToolCallBlock | null {
  const id = textField(item, "call_id") ?? textField(item, "id");
  const call = toCall(item);
  if (id === null || call === null) return null;
  const namespace = textField(item, "namespace");
  const more = namespace === null ? {} : { namespace };
  return { type: "toolCall", id, name: call.name, arguments: toArguments(call.input), ...more };
}

function toCall(item: JsonObject): { name: string; input: unknown } | null {
  const name = textField(item, "name") ?? "unknown";
  switch (item.type) {
    case "function_call": {
      const text = textField(item, "arguments");
      return { name, input: text === null ? item.arguments : (parseObject(text) ?? text) };
    }
    case "custom_tool_call":
      return { name, input: item.input };
    case "local_shell_call":
      return { name: "local_shell", input: item.action };
    case "tool_search_call":
      return { name: "tool_search", input: item.arguments };
    default:
      return null;
  }
}

/** Codex reports failure in a flag, in the metadata, or in the first lines of the output. */
export function toToolResult(
  item: JsonObject,
  losses: Losses,
): { content: (TextBlock | ImageBlock)[]; isError: boolean; details?: unknown } {
  const output = item.type === "tool_search_output" ? stringifyJson(item.tools ?? []) : item.output;
  if (isRecord(output)) {
    const content = toContent(output.content ?? output.output, losses);
    return { content, isError: output.success === false };
  }
  if (typeof output !== "string") return { content: toContent(output, losses), isError: false };
  const wrapper = output.startsWith("{") ? (parseObject(output) ?? {}) : {};
  const metadata = objectField(wrapper, "metadata");
  const inner = textField(wrapper, "output");
  if (metadata !== null && inner !== null)
    return { content: toContent(inner, losses), isError: hasFailed(metadata.exit_code), details: metadata };
  const code = /^(?:Exit code: |Process exited with code )(-?\d+)$/m.exec(output.slice(0, 400))?.[1];
  return { content: toContent(output, losses), isError: hasFailed(Number(code ?? 0)) };
}

export function hasFailed(exitCode: unknown): boolean {
  return typeof exitCode === "number" && exitCode !== 0;
}

const injectedTags =
  /^<(environment_context|user_instructions|permissions instructions|collaboration_mode|multi_agent_mode|apps_instructions|skills_instructions|plugins_instructions|turn_aborted|subagent_notification)>[\s\S]*<\/[^<>]+>$/;

/** Whether Codex inserted the text under the user's role. Such text is for the model, not for display. */
export function isInjected(text: string): boolean {
  const trimmed = text.trim();
  const isAgentsFile = trimmed.startsWith("# AGENTS.md instructions") && trimmed.includes("<INSTRUCTIONS>");
  return isAgentsFile || injectedTags.test(trimmed);
}

/** Some versions record the working directory only in the first message. */
export function findCwd(text: string): string | null {
  const match = /<cwd>([^<]+)<\/cwd>/.exec(text) ?? /^Current working directory: (.+)$/m.exec(text);
  return match?.[1] ?? null;
}
