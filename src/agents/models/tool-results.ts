import type {
  JSONValue,
  LanguageModelV4ToolResultOutput,
  LanguageModelV4ToolResultPart,
} from "@ai-sdk/provider";
import { stringifyJson } from "../../core/json.ts";
import type { ImageBlock, TextBlock, ToolResultMessage } from "../../core/messages.ts";
import type { Api } from "../../transcript/contract.ts";
import type { Metadata, Report } from "./metadata.ts";
import {
  fieldOf,
  mergeMetadata,
  metadataOf,
  ofProvider,
  optionsField,
  ownName,
  without,
} from "./metadata.ts";
import { blocksOfContent, resultPartsOf } from "./parts.ts";
import { tryParseJson } from "./signatures.ts";

type Output = LanguageModelV4ToolResultOutput;
type Block = TextBlock | ImageBlock;

/** The text that AI SDK packages send for a denial without a reason. */
const deniedText = "Tool call execution denied.";

interface ResultTarget {
  readonly api: Api;
  /** The call's ID and name in the request. */
  readonly toolCallId: string;
  readonly toolName: string;
  readonly report: Report;
}

/**
 * Converts a tool result to a part. A text-only result is sent as text, which every package passes through unchanged.
 */
export function resultPartOf(
  message: ToolResultMessage,
  target: ResultTarget,
): LanguageModelV4ToolResultPart {
  const { api, toolCallId, toolName, report } = target;
  const output = outputOf(message, api, report);
  const saysError = output.type !== "content" || message.isError !== true;
  const own = saysError ? undefined : ofProvider(ownName, { isError: true });
  const metadata = mergeMetadata(metadataOf(message.skein?.providerMetadata), own);
  return { type: "tool-result", toolCallId, toolName, output, ...optionsField(metadata) };
}

function outputOf(message: ToolResultMessage, api: Api, report: Report): Output {
  const parts = resultPartsOf(message.content, api, report);
  const texts = parts.filter((part) => part.type === "text");
  const marked = texts.filter((part) => part.providerOptions !== undefined);
  const isText = texts.length === parts.length && (marked.length === 0 || texts.length === 1);
  // The other packages would write a list of texts as JSON or as several results.
  const hasLists = api === "anthropic-messages" || api === "openai-responses";
  if (!isText && (hasLists || texts.length < parts.length)) return { type: "content", value: parts };
  const value = texts.map(({ text }) => text).join("\n");
  return plainOutput(message, value, texts.length === 1 ? texts[0]?.providerOptions : undefined);
}

function plainOutput(message: ToolResultMessage, value: string, metadata: Metadata | undefined): Output {
  const options = optionsField(metadata);
  const failed = message.isError === true;
  if (message.skein?.output === "execution-denied" && failed) {
    return { type: "execution-denied", ...(value === deniedText ? {} : { reason: value }), ...options };
  }
  const json = message.skein?.output === "json" ? tryParseJson(value) : undefined;
  if (json !== undefined) {
    return { type: failed ? "error-json" : "json", value: json as JSONValue, ...options };
  }
  return { type: failed ? "error-text" : "text", value, ...options };
}

/** Converts a part to a tool result. `group` is the metadata of the AI SDK message that contains it. */
export function resultMessageOf(
  part: LanguageModelV4ToolResultPart,
  group: Metadata | undefined,
): ToolResultMessage & { toolName: string; isError: boolean } {
  const { output, providerOptions } = part;
  const metadata = without(providerOptions, ownName, ["isError"]);
  const kind = output.type.endsWith("json")
    ? "json"
    : output.type === "execution-denied"
      ? output.type
      : undefined;
  const skein = {
    ...(metadata === undefined ? {} : { providerMetadata: metadata }),
    ...(group === undefined ? {} : { groupMetadata: group }),
    ...(kind === undefined ? {} : { output: kind }),
  };
  return {
    role: "toolResult",
    toolCallId: part.toolCallId,
    toolName: part.toolName,
    content: blocksOfOutput(output),
    isError: output.type.startsWith("e") || fieldOf(providerOptions, ownName, "isError") === true,
    ...(Object.keys(skein).length === 0 ? {} : { skein }),
  };
}

function blocksOfOutput(output: Output): Block[] {
  if (output.type === "content") return blocksOfContent(output.value);
  const text =
    output.type === "execution-denied"
      ? (output.reason ?? deniedText)
      : typeof output.value === "string" && output.type.endsWith("text")
        ? output.value
        : stringifyJson(output.value);
  const { providerOptions } = output;
  return [
    {
      type: "text",
      text,
      ...(providerOptions === undefined ? {} : { skein: { providerMetadata: providerOptions } }),
    },
  ];
}
