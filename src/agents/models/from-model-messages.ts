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
  /** The provider that produced the answers. By default, it is inferred from their signatures, if any. */
  readonly provider?: string;
  readonly api?: Api;
  readonly model?: string;
  /** Called for every part that is omitted or changed. */
  readonly report?: Report;
}

interface FromModelMessages {
  /** The leading system messages, or `null` if there are none. */
  readonly system: string | null;
  readonly messages: MessageDraft[];
}

/** Converts AI SDK messages to session messages. Each tool result becomes its own message. */
export function fromModelMessages(
  messages: readonly ModelMessage[],
  options: FromModelOptions = {},
): FromModelMessages {
  const tell = (kind: string, note: string) => options.report?.({ step: "fromModelMessages", kind, note });
  const first = messages.findIndex(({ role }) => role !== "system");
  const begin = messages.slice(0, first === -1 ? messages.length : first);
  if (begin.some(({ providerOptions }) => providerOptions !== undefined))
    tell("options_not_kept", "Options on the system message are not kept.");
  return {
    system: begin.length === 0 ? null : begin.map(({ content }) => String(content)).join("\n\n"),
    messages: messages.slice(begin.length).flatMap((message) => draftsOf(message, options, tell)),
  };
}

type ReportChange = (kind: string, note: string) => void;

function draftsOf(message: ModelMessage, options: FromModelOptions, tell: ReportChange): MessageDraft[] {
  switch (message.role) {
    case "user":
      return [userMessage(message)];
    case "assistant":
      return [answer(message, options)];
    case "tool":
      return results(message, tell);
    case "system":
      tell("system_message_moved", "A system message between other messages is kept as a hidden message.");
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

const signatureFields = [
  ["anthropic-messages", "anthropic", ["signature", "redactedData"]],
  ["google-generative-ai", "google", ["thoughtSignature"]],
  ["openai-responses", "openai", ["itemId"]],
] as const;

/** Returns the API that produced the parts' signatures. */
function apiIn(parts: readonly AssistantPart[]): Api | undefined {
  const holds = (metadata: Metadata | undefined, name: string, fields: readonly string[]) =>
    fields.some((field) => textFieldOf(metadata, name, field) !== undefined);
  return signatureFields.find(([, name, fields]) =>
    parts.some(({ providerOptions }) => holds(providerOptions, name, fields)),
  )?.[0];
}

function results(message: ToolModelMessage, tell: ReportChange): MessageDraft[] {
  const kept = message.content.filter((part) => part.type === "tool-result");
  if (kept.length < message.content.length)
    tell(
      "approval_not_kept",
      "An answer to an approval request is not kept, because it belongs to the run that made the request.",
    );
  const group = metadataOf(message.providerOptions);
  return kept.map((part, index) =>
    resultMessageOf({ ...part, output: standardOutput(part.output) }, index === 0 ? group : undefined),
  );
}

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

/** The provider that a bare file ID belongs to is unknown, so the file is not sent to any provider. */
function referenceOf(fileId: string | Record<string, string>): Record<string, string> {
  return typeof fileId === "string" ? { "": fileId } : fileId;
}

interface StandardData {
  readonly data: SharedV4FileData;
  /** From a `data:` URL. */
  readonly mediaType?: string | undefined;
}

function standardData(data: FilePart["data"] | ImagePart["image"]): StandardData {
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

function bytesData(data: unknown): StandardData {
  return { data: { type: "data", data: base64Of(data) } };
}

/** Decodes a `data:` URL. Other URLs are kept. */
function urlData(url: URL, tagged: object = {}): StandardData {
  const inline = /^data:([^;,]*)[^,]*;base64,(.*)$/is.exec(url.href);
  if (inline === null) return { data: { ...tagged, type: "url", url } };
  return { data: { type: "data", data: inline[2] ?? "" }, mediaType: inline[1] || undefined };
}

/** Removes undefined fields. */
function defined<T extends object>(part: { [F in keyof T]: T[F] | undefined }): T {
  return Object.fromEntries(Object.entries(part).filter(([, value]) => value !== undefined)) as T;
}
