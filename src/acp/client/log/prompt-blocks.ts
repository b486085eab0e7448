import type { ContentBlock, PromptCapabilities } from "@agentclientprotocol/sdk/unstable";
import type { Content, ImageBlock, Message, TextBlock, UserMessage } from "../../../core/messages.ts";
import { EntryIds, toBlocks } from "../../../transcript/derive.ts";
import { annotateInterSessionMessages } from "../../../transcript/steps/annotate-inter-session-messages.ts";
import { imagePlaceholder } from "../../../transcript/steps/settle-image.ts";

/** The bytes of a blob; `null`: not there. */
export type ReadBlob = (sha256: string) => Promise<Uint8Array | null> | Uint8Array | null;

type Block = TextBlock | ImageBlock;

const mostImages = 20;
/** Of all images together, as base64. */
const mostImageData = 28_000_000;
const person = "external_user";

/**
 * What was said to a session as a prompt for its agent, in order. What other sessions said begins with the line that a
 * model of ours would see. A text begins with a slash, which agents take for a command, only where a person typed it.
 */
export async function promptBlocks(
  messages: readonly Message[],
  capabilities: PromptCapabilities | null | undefined,
  blob: ReadBlob,
): Promise<ContentBlock[]> {
  const room = { count: capabilities?.image === true ? mostImages : 0, data: mostImageData };
  const seesImages = room.count > 0;
  const said: UserMessage[] = [];
  for (const message of messages) {
    if (message.role !== "user") continue;
    const content: Content = [];
    for (const block of toBlocks(message.content)) content.push(await settled(block, room, seesImages, blob));
    said.push({ ...message, content });
  }
  const { messages: marked } = annotateInterSessionMessages(said, { record: new EntryIds().recorder("") });
  const prompts = (marked as readonly UserMessage[]).map(promptOf).filter((prompt) => prompt.length > 0);
  return prompts.flatMap((prompt, at) => (at === prompts.length - 1 ? prompt : apart(prompt)));
}

/** An image with its bytes, or the text that stands in for it. */
async function settled(
  block: Block,
  room: { count: number; data: number },
  seesImages: boolean,
  blob: ReadBlob,
): Promise<Block> {
  const ref = block.type === "text" && block.skein?.blob?.was === "image" ? block.skein.blob : null;
  // Blocks of unknown types may be among them.
  if (ref === null && block.type !== "image") return block;
  const image = ref ?? (block as ImageBlock);
  if (!seesImages) return text(imagePlaceholder(image, "unseen"));
  const size = "sha256" in image ? Math.ceil((image.bytes * 4) / 3) : image.data.length;
  if (room.count === 0 || !(size <= room.data)) return text(imagePlaceholder(image, "surplus"));
  const data = "sha256" in image ? base64(await blob(image.sha256)) : image.data;
  if (data === null || data === "") return text(imagePlaceholder(image, "missing"));
  room.count--;
  room.data -= data.length;
  return { type: "image", data, mimeType: image.mimeType };
}

function base64(bytes: Uint8Array | null): string | null {
  return bytes === null ? null : Buffer.from(bytes).toString("base64");
}

function promptOf({ content, provenance }: UserMessage): ContentBlock[] {
  const isTyped = (provenance?.kind ?? person) === person;
  return toBlocks(content).flatMap((block): ContentBlock[] => {
    if (block.type === "image") return [{ type: "image", data: block.data, mimeType: block.mimeType }];
    if (block.type !== "text" || block.text === "") return [];
    return [{ type: "text", text: isTyped ? block.text : noCommand(block.text) }];
  });
}

/** Blanks and what cannot be seen before it make it no less a command. */
const beginsLikeCommand = /^[\s\p{C}]*\//u;

function noCommand(given: string): string {
  return beginsLikeCommand.test(given) ? `Message:\n${given}` : given;
}

/** Some agents join all texts of a prompt: what one message says must not run into the next. */
function apart(prompt: readonly ContentBlock[]): ContentBlock[] {
  return prompt.map((block, at) =>
    at === prompt.length - 1 && block.type === "text" && !block.text.endsWith("\n\n")
      ? { ...block, text: `${block.text}\n\n` }
      : block,
  );
}

function text(value: string): TextBlock {
  return { type: "text", text: value };
}
