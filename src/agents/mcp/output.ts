import type { CallToolResult, ContentBlock } from "@modelcontextprotocol/client";
import type { ToolOutput } from "../contract.ts";

type Block = ToolOutput["content"][number];

/** What a server's tool answered, in our blocks. What a model cannot be shown is named. */
export function mcpOutput(result: CallToolResult): ToolOutput {
  const { content = [], structuredContent, isError } = result;
  const blocks = content.map(blockOf).filter((block) => block.type === "image" || block.text !== "");
  const instead = structuredContent === undefined ? "(no output)" : JSON.stringify(structuredContent);
  return {
    content: blocks.length > 0 ? blocks : [text(instead)],
    ...(isError === true && { isError: true }),
  };
}

function text(value: string): Block {
  return { type: "text", text: value };
}

function blockOf(block: ContentBlock): Block {
  switch (block.type) {
    case "text":
      return text(block.text);
    case "image":
      return { type: "image", data: block.data, mimeType: block.mimeType };
    case "audio":
      return text(`[audio, ${block.mimeType}, about ${sizeOf(block.data)} bytes, not shown]`);
    case "resource_link":
      return text([`[${block.name}](${block.uri})`, block.description ?? ""].filter(Boolean).join(": "));
    case "resource":
      return resource(block.resource);
    default:
      return text(`[a block of type "${(block as { type: string }).type}", not shown]`);
  }
}

function resource(held: Extract<ContentBlock, { type: "resource" }>["resource"]): Block {
  if ("text" in held) return text(`${held.uri}:\n${held.text}`);
  const mimeType = held.mimeType ?? "unknown type";
  if (mimeType.startsWith("image/")) return { type: "image", data: held.blob, mimeType };
  return text(`[${held.uri}, ${mimeType}, about ${sizeOf(held.blob)} bytes, not shown]`);
}

function sizeOf(base64: string): number {
  return Math.floor((base64.length * 3) / 4);
}
