import type {
  LanguageModelV4FilePart,
  LanguageModelV4ToolResultOutput,
  SharedV4FileData,
} from "@ai-sdk/provider";
import type { FilePart, ImagePart, ToolResultPart } from "@ai-sdk/provider-utils";
import { base64Of } from "./parts.ts";

/** The short and the older ways of writing a part of the SDK's messages, in the one way that its models know. */

type ResultPart = Extract<LanguageModelV4ToolResultOutput, { type: "content" }>["value"][number];
type Output = ToolResultPart["output"];
type LooseResultPart = Extract<Output, { type: "content" }>["value"][number];

export function standardFile(part: FilePart | ImagePart): LanguageModelV4FilePart {
  const { data, mediaType } = standardData(part.type === "image" ? part.image : part.data);
  return defined({
    type: "file",
    data,
    mediaType: mediaType ?? part.mediaType ?? "image",
    filename: part.type === "file" ? part.filename : undefined,
    providerOptions: part.providerOptions,
  });
}

export function standardOutput(output: Output): LanguageModelV4ToolResultOutput {
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
