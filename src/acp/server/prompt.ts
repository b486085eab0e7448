import type { ContentBlock, EmbeddedResource, PromptResponse } from "@agentclientprotocol/sdk/unstable";
import { RequestError } from "@agentclientprotocol/sdk/unstable";
import { SkeinError } from "../../core/errors.ts";
import { present } from "../../core/present.ts";
import type { Params } from "../../protocol/method-table.ts";
import type { SentPayload } from "../../protocol/runs.ts";

/** Converts an editor's prompt into the input for `chat.send`, and the finished run into the response. */

type Attachment = NonNullable<Params<"chat.send">["attachments"]>[number];

export interface PromptInput {
  readonly message: string;
  readonly attachments: Attachment[];
  /** Whether the prompt is a single text block, as typed by a person. */
  readonly isTyped: boolean;
}

/** Puts embedded files in code fences under their names. Rejects content that the model could not read. */
export function promptInput(blocks: readonly ContentBlock[]): PromptInput {
  const parts = blocks.map(inputOf);
  const texts = parts.filter((part) => typeof part === "string" && part !== "");
  const attachments = parts.filter((part) => typeof part !== "string");
  const message = texts.join("\n\n");
  if (message.trim() === "" && attachments.length === 0)
    throw refused("The prompt is empty", "Send some text");
  return { message, attachments, isTyped: blocks.length === 1 && blocks[0]?.type === "text" };
}

function inputOf(block: ContentBlock): string | Attachment {
  switch (block.type) {
    case "text":
      return block.text;
    case "image":
      return imageAttachment(block.data, block.mimeType);
    case "resource_link": {
      const { uri, title, name } = block;
      const shown = title ?? name;
      return shown === "" || shown === uri ? `[${uri}]` : `[${shown}](${uri})`;
    }
    case "resource":
      return resourceInput(block);
    case "audio":
      throw refused("Skein does not accept audio", "Send text, or attach an image");
    default:
      throw refused(
        "The prompt contains content of a type that Skein does not support",
        "Send text, images and files",
      );
  }
}

function imageAttachment(data: string, mimeType: string, name?: string): Attachment {
  if (!/^image\/[a-z0-9.+-]+$/.test(mimeType))
    throw refused(`"${mimeType}" is not an image`, "Attach an image");
  return { mimeType, data, ...present({ name }) };
}

function resourceInput({ resource }: EmbeddedResource): string | Attachment {
  const { uri, mimeType } = resource;
  if ("text" in resource) return fencedText(uri, resource.text);
  if (mimeType?.startsWith("image/") === true) {
    const name = uri.split(/[/\\]/).at(-1)?.slice(0, 256);
    return imageAttachment(resource.blob, mimeType, name === "" ? undefined : name);
  }
  throw refused(
    `${uri} is neither text nor an image (${mimeType ?? "of an unknown type"})`,
    "Attach its content as text",
  );
}

/** The fence is longer than any fence in the text, so the text cannot close it. */
function fencedText(uri: string, text: string): string {
  let longest = 2;
  for (const [run] of text.matchAll(/`{3,}/g)) longest = Math.max(longest, run.length);
  const fence = "`".repeat(longest + 1);
  return `${fence} ${uri.replaceAll("\n", "%0A")}\n${text}${text.endsWith("\n") ? "" : "\n"}${fence}`;
}

function refused(problem: string, advice: string): SkeinError {
  return new SkeinError("invalid_arguments", { problem, advice });
}

/** Errors that end a turn because it reached one of Skein's limits. They are not failures. */
const limitCodes = new Set(["budget_exceeded", "step_limit"]);

const internalError = -32603;

export interface EndedPrompt {
  readonly sent: SentPayload;
  /** The stop reason of the last answer. */
  readonly stopReason: string | null;
  /** Whether the editor canceled the prompt. */
  readonly isCancelled: boolean;
}

/** Throws if the turn failed. */
export function promptResponse({ sent, stopReason, isCancelled }: EndedPrompt): PromptResponse {
  const { state, error } = sent;
  const { input, output, cacheRead, cacheWrite, totalTokens } = sent.usage;
  const usage = {
    inputTokens: input,
    outputTokens: output,
    cachedReadTokens: cacheRead,
    cachedWriteTokens: cacheWrite,
    totalTokens,
  };
  if (isCancelled || state === "aborted") return { stopReason: "cancelled", usage };
  if (state === "ok" || state === "merged")
    return { stopReason: stopReason === "length" ? "max_tokens" : "end_turn", usage };
  if (error !== undefined && limitCodes.has(error.code)) return { stopReason: "max_turn_requests", usage };
  // Always an internal error, because the request itself was valid.
  const message = error?.message ?? `The run ended in state ${state}.`;
  throw new RequestError(internalError, message, { code: error?.code ?? state });
}

/** Returns the message about the limit that ended the turn, because ACP's stop reason does not name the limit. */
export function limitText({ error }: SentPayload): string | null {
  return error !== undefined && limitCodes.has(error.code) ? error.message : null;
}
