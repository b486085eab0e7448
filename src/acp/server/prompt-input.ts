import type { ContentBlock, EmbeddedResource } from "@agentclientprotocol/sdk/unstable";
import { SkeinError } from "../../core/errors.ts";
import type { Params } from "../../protocol/methods/method-table.ts";

type Attachment = NonNullable<Params<"chat.send">["attachments"]>[number];

/** What an editor sent, as `chat.send` takes it. */
export interface PromptInput {
  readonly message: string;
  readonly attachments: Attachment[];
  /** All of it was typed: one text and nothing beside it. */
  readonly isTyped: boolean;
}

/** Texts as they are, files between fences under their names, images beside them. What the model could not get is refused. */
export function promptInput(blocks: readonly ContentBlock[]): PromptInput {
  const texts: string[] = [];
  const attachments: Attachment[] = [];
  for (const block of blocks) {
    const taken = takenOf(block);
    if (typeof taken === "string") texts.push(taken);
    else attachments.push(taken);
  }
  const message = texts.filter((text) => text !== "").join("\n\n");
  if (message.trim() === "" && attachments.length === 0)
    throw refused("The prompt is empty", "Say something");
  const isTyped = blocks.length === 1 && blocks[0]?.type === "text";
  return { message, attachments, isTyped };
}

function takenOf(block: ContentBlock): string | Attachment {
  switch (block.type) {
    case "text":
      return block.text;
    case "image":
      return image(block.data, block.mimeType);
    case "resource_link":
      return linked(block);
    case "resource":
      return embedded(block);
    case "audio":
      throw refused("Skein takes no audio", "Write it down, or attach an image");
    default:
      throw refused("The prompt holds something that Skein does not know", "Send text, images and files");
  }
}

function image(data: string, mimeType: string, name?: string): Attachment {
  if (!/^image\/[a-z0-9.+-]+$/.test(mimeType)) throw refused(`"${mimeType}" is no image`, "Attach an image");
  return { mimeType, data, ...(name === undefined ? {} : { name }) };
}

function linked({ uri, name, title }: Extract<ContentBlock, { type: "resource_link" }>): string {
  const shown = title ?? name;
  return shown === "" || shown === uri ? `[${uri}]` : `[${shown}](${uri})`;
}

function embedded({ resource }: EmbeddedResource): string | Attachment {
  if ("text" in resource) return fenced(resource.uri, resource.text);
  const { mimeType } = resource;
  if (mimeType?.startsWith("image/") === true) return image(resource.blob, mimeType, nameIn(resource.uri));
  throw refused(
    `${resource.uri} is neither text nor an image (${mimeType ?? "its type is not told"})`,
    "Attach what is written in it as text",
  );
}

/** A fence that is longer than any in the text, which so cannot end it. */
function fenced(uri: string, text: string): string {
  let longest = 2;
  for (const [run] of text.matchAll(/`{3,}/g)) longest = Math.max(longest, run.length);
  const fence = "`".repeat(longest + 1);
  return `${fence} ${uri.replaceAll("\n", "%0A")}\n${text}${text.endsWith("\n") ? "" : "\n"}${fence}`;
}

function nameIn(uri: string): string | undefined {
  const name = uri.split(/[/\\]/).at(-1)?.slice(0, 256) ?? "";
  return name === "" ? undefined : name;
}

function refused(problem: string, advice: string): SkeinError {
  return new SkeinError("invalid_arguments", { problem, advice });
}
