import type {
  LanguageModelV4FilePart,
  LanguageModelV4TextPart,
  LanguageModelV4ToolResultOutput,
  SharedV4FileData,
} from "@ai-sdk/provider";
import type {
  AssistantModelMessage,
  FilePart,
  ImagePart,
  ModelMessage,
  ToolModelMessage,
  ToolResultPart,
  UserModelMessage,
} from "@ai-sdk/provider-utils";
import type { MessageDraft } from "../../core/seal.ts";
import type { Api } from "../../transcript/contract.ts";
import type { AnswerDraft } from "./assistant-message.ts";
import { blocksOfParts, usageOf } from "./assistant-message.ts";
import type { Metadata, Report } from "./metadata.ts";
import { metadataOf, ownField, textFieldOf } from "./metadata.ts";
import type { AssistantPart } from "./parts.ts";
import { base64Of, blocksOfContent } from "./parts.ts";
import { resultMessageOf } from "./tool-results.ts";

interface FromModelOptions {
  /** Who gave the answers. Left out: told by their signatures, where there are any. */
  readonly provider?: string;
  readonly api?: Api;
  readonly model?: string;
  /** Told of every part that is not kept, or is kept as something else. */
  readonly report?: Report;
}

interface FromModelMessages {
  /** What the messages begin with; a session keeps it apart. `null`: they begin with no system message. */
  readonly system: string | null;
  readonly messages: MessageDraft[];
}

/** Messages of the AI SDK as messages of a session. Results become a message each. */
export function fromModelMessages(
  messages: readonly ModelMessage[],
  options: FromModelOptions = {},
): FromModelMessages {
  const tell = (kind: string, note: string) => options.report?.({ step: "fromModelMessages", kind, note });
  const first = messages.findIndex(({ role }) => role !== "system");
  const begin = messages.slice(0, first === -1 ? messages.length : first);
  if (begin.some(({ providerOptions }) => providerOptions !== undefined))
    tell("options_not_kept", "Options of the system message are not kept.");
  return {
    system: begin.length === 0 ? null : begin.map(({ content }) => String(content)).join("\n\n"),
    messages: messages.slice(begin.length).flatMap((message) => draftsOf(message, options, tell)),
  };
}

type Tell = (kind: string, note: string) => void;

function draftsOf(message: ModelMessage, options: FromModelOptions, tell: Tell): MessageDraft[] {
  switch (message.role) {
    case "user":
      return [userMessage(message)];
    case "assistant":
      return [answer(message, options)];
    case "tool":
      return results(message, tell);
    case "system":
      tell("system_message_moved", "A system message amid others is kept as a message that is not shown.");
      return [{ role: "custom", customType: "skein.system", content: message.content, display: false }];
  }
}

function userMessage(message: UserModelMessage): MessageDraft {
  const parts: (LanguageModelV4TextPart | LanguageModelV4FilePart)[] =
    typeof message.content === "string"
      ? [{ type: "text", text: message.content }]
      : message.content.map((part) => (part.type === "text" ? part : standardFile(part)));
  return { role: "user", content: blocksOfContent(parts), ...ownField(metadataOf(message.providerOptions)) };
}

const unknown = "unknown";

function answer(message: AssistantModelMessage, options: FromModelOptions): AnswerDraft {
  const parts = standardParts(message);
  const api = options.api ?? apiIn(parts);
  const content = blocksOfParts(parts, api ?? "openai-completions");
  return {
    role: "assistant",
    content,
    api: api ?? unknown,
    provider: options.provider ?? (api === undefined ? unknown : providers[api]),
    model: options.model ?? unknown,
    usage: usageOf(undefined),
    stopReason: content.some(({ type }) => type === "toolCall") ? "toolUse" : "stop",
    ...ownField(metadataOf(message.providerOptions)),
  };
}

function standardParts({ content }: AssistantModelMessage): AssistantPart[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return content.map((part): AssistantPart => {
    switch (part.type) {
      case "file":
      case "reasoning-file":
        return { ...standardFile({ ...part, type: "file" }), type: part.type } as AssistantPart;
      case "tool-result":
        return { ...part, output: standardOutput(part.output) };
      default:
        return part as AssistantPart;
    }
  });
}

const providers: Readonly<Record<Api, string>> = {
  "anthropic-messages": "anthropic",
  "google-generative-ai": "google",
  "openai-responses": "openai",
  "openai-completions": "openai",
  "mistral-conversations": "mistral",
};

const signs = [
  ["anthropic-messages", "anthropic", ["signature", "redactedData"]],
  ["google-generative-ai", "google", ["thoughtSignature"]],
  ["openai-responses", "openai", ["itemId"]],
] as const;

/** Whose signature is on a part of the answer. */
function apiIn(parts: readonly AssistantPart[]): Api | undefined {
  const holds = (metadata: Metadata | undefined, name: string, fields: readonly string[]) =>
    fields.some((field) => textFieldOf(metadata, name, field) !== undefined);
  return signs.find(([, name, fields]) =>
    parts.some(({ providerOptions }) => holds(providerOptions, name, fields)),
  )?.[0];
}

function results(message: ToolModelMessage, tell: Tell): MessageDraft[] {
  const kept = message.content.filter((part) => part.type === "tool-result");
  if (kept.length < message.content.length)
    tell(
      "approval_not_kept",
      "An answer to a request for approval is not kept: it belongs to the run that asked.",
    );
  const group = metadataOf(message.providerOptions);
  return kept.map((part, index) =>
    resultMessageOf({ ...part, output: standardOutput(part.output) }, index === 0 ? group : undefined),
  );
}

/** The short and the older ways of writing a part of the SDK's messages, in the one way that its models know. */

type ResultPart = Extract<LanguageModelV4ToolResultOutput, { type: "content" }>["value"][number];
type Output = ToolResultPart["output"];
type LooseResultPart = Extract<Output, { type: "content" }>["value"][number];

function standardFile(part: FilePart | ImagePart): LanguageModelV4FilePart {
  const { data, mediaType } = standardData(part.type === "image" ? part.image : part.data);
  return defined({
    type: "file",
    data,
    mediaType: mediaType ?? part.mediaType ?? "image",
    filename: part.type === "file" ? part.filename : undefined,
    providerOptions: part.providerOptions,
  });
}

function standardOutput(output: Output): LanguageModelV4ToolResultOutput {
  return output.type === "content" ? { ...output, value: output.value.map(standardResultPart) } : output;
}

function standardResultPart(part: LooseResultPart): ResultPart {
  switch (part.type) {
    case "text":
    case "custom":
      return part;
    case "file":
      return standardFile(part);
    case "file-data":
    case "image-data":
      return fileOf(part, { type: "data", data: part.data }, part.mediaType);
    case "file-url":
      return fileOf(part, standardData(part.url).data, part.mediaType ?? "application/octet-stream");
    case "image-url":
      return fileOf(part, standardData(part.url).data, "image");
    case "file-id":
      return fileOf(part, { type: "reference", reference: referenceOf(part.fileId) }, "application");
    case "image-file-id":
      return fileOf(part, { type: "reference", reference: referenceOf(part.fileId) }, "image");
    case "file-reference":
      return fileOf(part, { type: "reference", reference: part.providerReference }, "application");
    case "image-file-reference":
      return fileOf(part, { type: "reference", reference: part.providerReference }, "image");
  }
}

function fileOf(
  part: Pick<LanguageModelV4FilePart, "filename" | "providerOptions">,
  data: SharedV4FileData,
  mediaType: string,
): LanguageModelV4FilePart {
  const { filename, providerOptions } = part;
  return defined({ type: "file", data, mediaType, filename, providerOptions });
}

/** An id alone does not say whose it is; the part's provider is not known here, so no provider will be given it. */
function referenceOf(fileId: string | Record<string, string>): Record<string, string> {
  return typeof fileId === "string" ? { "": fileId } : fileId;
}

interface Standard {
  readonly data: SharedV4FileData;
  /** What an address that holds the bytes says of them. */
  readonly mediaType?: string | undefined;
}

function standardData(data: FilePart["data"] | ImagePart["image"]): Standard {
  if (typeof data === "string") {
    return /^(https?|data|gs):/i.test(data) && URL.canParse(data)
      ? urlData(new URL(data))
      : { data: { type: "data", data } };
  }
  if (data instanceof URL) return urlData(data);
  if (data instanceof ArrayBuffer || ArrayBuffer.isView(data)) return bytesData(data);
  const tagged = data as { readonly type?: string } & Record<string, unknown>;
  switch (tagged.type) {
    case "data":
      return bytesData(tagged.data);
    case "url":
      return tagged.url instanceof URL ? urlData(tagged.url, tagged) : standardData(String(tagged.url));
    case "text":
    case "reference":
      return { data: tagged as unknown as SharedV4FileData };
    default:
      return { data: { type: "reference", reference: data as Record<string, string> } };
  }
}

function bytesData(data: unknown): Standard {
  return { data: { type: "data", data: base64Of(data) } };
}

/** An address that holds the bytes themselves is data. */
function urlData(url: URL, tagged: object = {}): Standard {
  const inline = /^data:([^;,]*)[^,]*;base64,(.*)$/is.exec(url.href);
  if (inline === null) return { data: { ...tagged, type: "url", url } };
  return { data: { type: "data", data: inline[2] ?? "" }, mediaType: inline[1] || undefined };
}

/** Without fields that are there and undefined. */
function defined<T extends object>(part: { [F in keyof T]: T[F] | undefined }): T {
  return Object.fromEntries(Object.entries(part).filter(([, value]) => value !== undefined)) as T;
}
