import type { Refusal, TwinLimits, TwinRequest } from "../contract.ts";
import type { RequestSize } from "../count.ts";
import { tokensOf } from "../count.ts";
import { fieldsOf, listOf } from "../fields.ts";
import { readImageHead } from "../image-bytes.ts";
import type { PlacedImage } from "./images.ts";
import { refuse } from "./refusal.ts";
import type { MessagesRequest } from "./turns.ts";

const mostBytes = 32 * 1024 * 1024;
const mostBreakpoints = 4;
/** "Vision" › Evaluate image size: a token has 750 pixels, and an image is scaled down to about 1,600 tokens. */
const pixelsOfToken = 750;
const mostTokensOfImage = 1600;
/** Of base64, in which all but a few images say how large they are. */
const headLength = 64 * 1024;

/** "API overview" › Request size limits. */
export function checkSize(request: TwinRequest, { bytes, isWellFormed }: RequestSize): Refusal | null {
  const size = Number(request.headers["content-length"] ?? bytes);
  if (size > mostBytes) {
    return refuse("request_too_large", "Request exceeds the maximum allowed number of bytes", 413);
  }
  if (isWellFormed) return null;
  return refuse("ill_formed_text", "The request body is not valid JSON: no low surrogate in string");
}

/** "Prompt caching" › How many breakpoints: four, of tools, system and messages together. */
export function checkBreakpoints({ body, turns }: MessagesRequest): Refusal | null {
  const marked = (values: readonly unknown[]) =>
    values.filter((each) => fieldsOf(fieldsOf(each)?.cache_control) !== null).length;
  let found = marked([body]) + marked(listOf(body.tools) ?? []) + marked(listOf(body.system) ?? []);
  for (const turn of turns) {
    for (const { fields } of turn.blocks) found += marked([fields]) + marked(listOf(fields.content) ?? []);
  }
  if (found <= mostBreakpoints) return null;
  const message = `A maximum of ${mostBreakpoints} blocks with cache_control may be provided. Found ${found}.`;
  return refuse("too_many_breakpoints", message);
}

/** "Context windows". Published refusal: "prompt is too long: … tokens > … maximum". */
export function checkLength(tokens: number, { contextWindow }: TwinLimits): Refusal | null {
  if (tokens <= contextWindow) return null;
  return refuse("prompt_too_long", `prompt is too long: ${tokens} tokens > ${contextWindow} maximum`);
}

/** What the prompt comes to, the base64 of its images left out. */
export function promptTokens({ text }: RequestSize, images: readonly PlacedImage[]): number {
  let data = 0;
  let tokens = 0;
  for (const { source } of images) {
    const given = typeof source?.data === "string" ? source.data : "";
    data += given.length;
    tokens += imageTokens(given);
  }
  return tokensOf(text - data) + tokens;
}

function imageTokens(data: string): number {
  const head = readImageHead(Buffer.from(data.slice(0, headLength), "base64"));
  if (head === null) return mostTokensOfImage;
  return Math.min(mostTokensOfImage, Math.ceil((head.width * head.height) / pixelsOfToken));
}
