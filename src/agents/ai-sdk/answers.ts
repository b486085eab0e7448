import type { AssistantBlock, AssistantMessage, ToolCallBlock } from "../../core/messages.ts";
import { isRecord } from "../../core/shape.ts";
import type { Api } from "../../transcript/contract.ts";
import type { Metadata } from "./metadata.ts";
import { ownField } from "./metadata.ts";
import type { AssistantPart, ResponseOnlyPart } from "./parts.ts";
import { partBlock } from "./parts.ts";
import { parsed, signatureIn } from "./signatures.ts";
import { continuesItem, thinkingOfParts } from "./thinking.ts";

/** The blocks of an answer, whether it came as a response or stands in a prompt. */

type Part = AssistantPart | (ResponseOnlyPart & { readonly providerOptions?: Metadata });
type ReasoningPart = Extract<AssistantPart, { type: "reasoning" }>;
type TextPart = Extract<AssistantPart, { type: "text" }>;
type CallPart = Extract<AssistantPart, { type: "tool-call" }>;

/** Every part is kept: those without a block of their own as they are. */
export function blocksOfParts(parts: readonly Part[], api: Api): AssistantMessage["content"] {
  const blocks: unknown[] = [];
  for (let at = 0; at < parts.length; at++) {
    const part = parts[at] as Part;
    if (part.type === "reasoning") {
      const group = reasoningFrom(parts, at, api);
      blocks.push(thinkingOfParts(group, api));
      at += group.length - 1;
    } else blocks.push(blockOf(part, api));
  }
  return blocks as AssistantBlock[];
}

/** On Responses, the parts of one reasoning item. */
function reasoningFrom(parts: readonly Part[], from: number, api: Api): ReasoningPart[] {
  const group = [parts[from] as ReasoningPart];
  for (let at = from + 1; api === "openai-responses"; at++) {
    const [next, last] = [parts[at], group.at(-1)];
    if (next?.type !== "reasoning" || last === undefined || !continuesItem(last, next)) break;
    group.push(next);
  }
  return group;
}

function blockOf(part: Exclude<Part, { type: "reasoning" }>, api: Api): unknown {
  if (part.type === "text") return textBlock(part, api);
  return part.type === "tool-call" && part.providerExecuted !== true ? callBlock(part, api) : partBlock(part);
}

function textBlock(part: TextPart, api: Api): AssistantBlock {
  const { signature, rest } = signatureIn(part.providerOptions, api, "text");
  return {
    type: "text",
    text: part.text,
    ...(signature === undefined ? {} : { textSignature: signature }),
    ...skeinField(rest, responseFields(part, "citations")),
  };
}

function callBlock(part: CallPart, api: Api): ToolCallBlock {
  const { signature, rest } = signatureIn(part.providerOptions, api, "call");
  const input = inputOf(part.input);
  const own = { ...responseFields(part, "dynamic"), ...(input === null ? { invalidInput: true } : {}) };
  return {
    type: "toolCall",
    id: part.toolCallId,
    name: part.toolName,
    arguments: input ?? { input: part.input ?? null },
    ...(signature === undefined ? {} : { thoughtSignature: signature }),
    ...skeinField(rest, own),
  };
}

/** Arguments are an object, or the JSON of one; without any, an empty one. `null`: they are something else. */
function inputOf(input: unknown): Record<string, unknown> | null {
  if (isRecord(input)) return input;
  if (input === undefined || (typeof input === "string" && input.trim() === "")) return {};
  const value = typeof input === "string" ? parsed(input) : undefined;
  return isRecord(value) ? value : null;
}

/** Only a response has these; no request takes them back. */
function responseFields(part: object, field: string): Record<string, unknown> {
  const value: unknown = Reflect.get(part, field);
  return value === undefined ? {} : { [field]: value };
}

function skeinField(
  metadata: Metadata | undefined,
  own: Readonly<Record<string, unknown>>,
): { skein?: { providerMetadata?: Metadata } } {
  const skein = { ...ownField(metadata).skein, ...own };
  return Object.keys(skein).length === 0 ? {} : { skein };
}
