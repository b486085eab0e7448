import type { ContentBlock, PromptCapabilities } from "@agentclientprotocol/sdk/unstable";
import type { Content, ImageBlock, Message, TextBlock, UserMessage } from "../../core/messages.ts";
import { EntryIds, toBlocks } from "../../transcript/derive.ts";
import { annotateInterSessionMessages } from "../../transcript/steps/annotate-inter-session-messages.ts";
import { imagePlaceholder } from "../../transcript/steps/settle-image.ts";

/** Returns the bytes of a blob, or `null` if it is missing. */
export type ReadBlob = (sha256: string) => Promise<Uint8Array | null> | Uint8Array | null;

type Block = TextBlock | ImageBlock;

const maxImages = 20;
/** The limit for all images combined. */
const maxImageBase64 = 28_000_000;

/**
 * Converts user messages into the content blocks of one prompt, in order. Messages from other sessions start with the
 * same line that Skein's own models see. Agents run text that starts with a slash as a command, so only text typed by a
 * person can start with one.
 */
export async function promptBlocks(
  messages: readonly Message[],
  capabilities: PromptCapabilities | null | undefined,
  readBlob: ReadBlob,
): Promise<ContentBlock[]> {
  const images = new PromptImages(capabilities?.image === true, readBlob);
  const users: UserMessage[] = [];
  for (const message of messages) {
    if (message.role !== "user") continue;
    const content: Content = [];
    for (const block of toBlocks(message.content)) content.push(await images.load(block));
    users.push({ ...message, content });
  }
  const { messages: annotated } = annotateInterSessionMessages(users, {
    record: new EntryIds().recorder(""),
  });
  const prompts = (annotated as readonly UserMessage[]).map(blocksOf).filter(({ length }) => length > 0);
  return prompts.flatMap((blocks, index) =>
    index === prompts.length - 1 ? blocks : separateFromNext(blocks),
  );
}

/** Loads a prompt's images. Images that cannot be sent to the agent are replaced with text. */
class PromptImages {
  readonly #isSupported: boolean;
  readonly #readBlob: ReadBlob;
  #countLeft = maxImages;
  #base64Left = maxImageBase64;

  constructor(isSupported: boolean, readBlob: ReadBlob) {
    this.#isSupported = isSupported;
    this.#readBlob = readBlob;
  }

  async load(block: Block): Promise<Block> {
    const ref = block.type === "text" && block.skein?.blob?.was === "image" ? block.skein.blob : null;
    // Blocks of unknown types are passed through unchanged.
    if (ref === null && block.type !== "image") return block;
    const image = ref ?? (block as ImageBlock);
    const replaceBy = (why: Parameters<typeof imagePlaceholder>[1]): TextBlock => ({
      type: "text",
      text: imagePlaceholder(image, why),
    });
    if (!this.#isSupported) return replaceBy("unseen");
    const size = "sha256" in image ? Math.ceil((image.bytes * 4) / 3) : image.data.length;
    if (this.#countLeft === 0 || !(size <= this.#base64Left)) return replaceBy("surplus");
    const data = "sha256" in image ? base64(await this.#readBlob(image.sha256)) : image.data;
    if (data === "") return replaceBy("missing");
    this.#countLeft--;
    this.#base64Left -= data.length;
    return { type: "image", data, mimeType: image.mimeType };
  }
}

function base64(bytes: Uint8Array | null): string {
  return bytes === null ? "" : Buffer.from(bytes).toString("base64");
}

function blocksOf({ content, provenance }: UserMessage): ContentBlock[] {
  const isTyped = (provenance?.kind ?? "external_user") === "external_user";
  return toBlocks(content).flatMap((block): ContentBlock[] => {
    if (block.type === "image") return [{ type: "image", data: block.data, mimeType: block.mimeType }];
    if (block.type !== "text" || block.text === "") return [];
    return [{ type: "text", text: isTyped ? block.text : escapeCommand(block.text) }];
  });
}

/** Puts a line before text that an agent would run as a command. Agents skip invisible characters before the slash. */
function escapeCommand(text: string): string {
  return /^[\s\p{C}]*\//u.test(text) ? `Message:\n${text}` : text;
}

/** Ends the prompt with a blank line, because some agents join text blocks without a separator. */
function separateFromNext(prompt: readonly ContentBlock[]): ContentBlock[] {
  return prompt.map((block, index) =>
    index === prompt.length - 1 && block.type === "text" && !block.text.endsWith("\n\n")
      ? { ...block, text: `${block.text}\n\n` }
      : block,
  );
}

/**
 * For agents that have no separate field for the system prompt, adds it to the prompt whenever it differs from the one
 * last sent. If the prompt is one of the agent's commands (`/compact`), the system prompt comes after it.
 */
export function withSystemPrompt(
  prompt: readonly ContentBlock[],
  system: string | null,
  lastSystem: string | null,
): ContentBlock[] {
  if (system === lastSystem) return [...prompt];
  const [first] = prompt;
  const isCommand = first?.type === "text" && first.text.trimStart().startsWith("/");
  const text =
    system === null
      ? "[Skein] The instructions that you were given earlier no longer apply."
      : [
          "[Skein] Instructions for you, which replace any given here earlier:",
          system,
          "[Skein] End of the instructions.",
        ].join("\n\n");
  return isCommand
    ? [...prompt, { type: "text", text: `\n\n${text}` }]
    : [{ type: "text", text: prompt.length === 0 ? text : `${text}\n\n` }, ...prompt];
}
