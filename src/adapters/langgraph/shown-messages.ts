import { isRecord } from "../../core/is-record.ts";
import type { AssistantBlock, ImageBlock, TextBlock } from "../../core/messages.ts";
import type { MessageDraft } from "../../core/seal.ts";

/** LangChain's messages, in their serialized form, as messages of a session. */

interface SerializedMessage {
  readonly kind: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

const noCost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };

/** Returns `null` for anything that is not a message. */
export function toShownMessage(item: unknown): MessageDraft | null {
  const message = readMessage(item);
  if (message === null) return null;
  const { kind, fields } = message;
  const content = toContent(fields.content);
  switch (kind) {
    case "human":
    case "user":
      return { role: "user", content };
    case "ai":
    case "assistant":
      return toAnswer(fields);
    case "tool":
      return {
        role: "toolResult",
        toolCallId: textOf(fields.tool_call_id),
        toolName: textOf(fields.name) || "unknown",
        content,
        isError: fields.status === "error",
      };
    default:
      return { role: "custom", customType: `langgraph.${kind}`, content, display: kind !== "system" };
  }
}

function readMessage(item: unknown): SerializedMessage | null {
  if (!isRecord(item)) return null;
  const { lc, type, id, kwargs, role, content } = item;
  if (lc === 1 && type === "constructor" && Array.isArray(id) && isRecord(kwargs)) {
    const [, kind = ""] = /^(\w+?)Message(?:Chunk)?$/.exec(String(id.at(-1))) ?? [];
    return kind === "" ? null : { kind: kind.toLowerCase(), fields: kwargs };
  }
  const isPlain = typeof role === "string" && (typeof content === "string" || Array.isArray(content));
  return isPlain ? { kind: role, fields: item } : null;
}

function toAnswer(fields: Readonly<Record<string, unknown>>): MessageDraft {
  const about = isRecord(fields.response_metadata) ? fields.response_metadata : {};
  const calls = (Array.isArray(fields.tool_calls) ? fields.tool_calls : []).filter(isRecord);
  const content = [
    ...toBlocks(fields.content, true),
    ...calls.map(({ id, name, args }): AssistantBlock => {
      const input = isRecord(args) ? args : {};
      return { type: "toolCall", id: textOf(id), name: textOf(name), arguments: input };
    }),
  ];
  return {
    role: "assistant",
    content,
    api: "langchain",
    provider: textOf(about.model_provider) || textOf(about.ls_provider) || "langchain",
    model: textOf(about.model_name) || textOf(about.model),
    usage: toUsage(fields.usage_metadata),
    stopReason: calls.length > 0 ? "toolUse" : "stop",
  };
}

function toUsage(metadata: unknown): Extract<MessageDraft, { role: "assistant" }>["usage"] {
  const source = isRecord(metadata) ? metadata : {};
  const details = isRecord(source.input_token_details) ? source.input_token_details : {};
  const [cacheRead, cacheWrite] = [countOf(details.cache_read), countOf(details.cache_creation)];
  const input = Math.max(0, countOf(source.input_tokens) - cacheRead - cacheWrite);
  const output = countOf(source.output_tokens);
  return {
    input,
    output,
    cacheRead,
    cacheWrite,
    totalTokens: input + output + cacheRead + cacheWrite,
    cost: noCost,
  };
}

function toContent(content: unknown): (TextBlock | ImageBlock)[] {
  return toBlocks(content, false) as (TextBlock | ImageBlock)[];
}

/** Tool calls are in a separate field. Blocks of other types are only in the checkpoint. */
function toBlocks(content: unknown, isAnswer: boolean): AssistantBlock[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  const blocks = Array.isArray(content) ? content.filter(isRecord) : [];
  return blocks.flatMap((block): AssistantBlock[] => {
    if (typeof block.text === "string") return [{ type: "text", text: block.text }];
    if (isAnswer && typeof block.thinking === "string")
      return [{ type: "thinking", thinking: block.thinking }];
    const image = isAnswer ? null : toImage(block);
    return image === null ? [] : [image as unknown as AssistantBlock];
  });
}

function toImage({ image_url }: Readonly<Record<string, unknown>>): ImageBlock | null {
  const url = textOf(isRecord(image_url) ? image_url.url : image_url);
  const [, mimeType = "", data = ""] = /^data:([\w.+/-]+);base64,(.+)$/s.exec(url) ?? [];
  return data === "" ? null : { type: "image", mimeType, data };
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function countOf(value: unknown): number {
  return typeof value === "number" && value > 0 ? value : 0;
}
