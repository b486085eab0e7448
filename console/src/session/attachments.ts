import type { Params } from "skein/client";

type WireAttachment = NonNullable<Params<"chat.send">["attachments"]>[number];

/** An attachment to a message. */
export interface Attachment {
  readonly id: string;
  readonly name: string;
  readonly content: { readonly image: WireAttachment } | { readonly text: string };
}

export function imageUrl({ mimeType, data }: WireAttachment): string {
  return `data:${mimeType};base64,${data}`;
}

/** Returns the size of an attachment in characters. */
export function sizeOf({ content }: Attachment): number {
  return "image" in content ? content.image.data.length : content.text.length;
}

/** `crypto.randomUUID` is missing on pages served over plain HTTP, such as by a gateway on a local network. */
export function newId(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");
}

/**
 * Combines a message with its attachments. Text files become fenced blocks in the message, because models accept no
 * attachments other than images.
 */
export function composeMessage(message: string, attachments: readonly Attachment[]) {
  const texts = attachments.flatMap(({ name, content }) =>
    "text" in content ? [fence(name, content.text)] : [],
  );
  const images = attachments.flatMap(({ content }) => ("image" in content ? [content.image] : []));
  const whole = [message, ...texts].filter((part) => part !== "").join("\n\n");
  if (whole.length > longestMessage)
    throw new Error("The message and its attached text exceed 4 million characters. Remove an attachment.");
  if (images.length > maxImages)
    throw new Error(`A message can have at most ${maxImages} images. Remove some.`);
  return { message: whole, ...(images.length === 0 ? {} : { attachments: images }) };
}

/** Uses more backticks than any sequence of backticks in the text. */
function fence(name: string, text: string): string {
  let longest = 2;
  for (const [run] of text.matchAll(/`+/g)) longest = Math.max(longest, run.length);
  const ticks = "`".repeat(longest + 1);
  return `${name}:\n${ticks}\n${text}\n${ticks}`;
}

/** Longer pastes become an attachment, because a text area with 20,000 lines is slow in every browser. */
export const longestPaste = 20_000;

/** The gateway's limits. */
const longestMessage = 4 * 1024 * 1024;
const maxImages = 20;

const longestSide = 2000;
const largestImage = 4 * 1024 * 1024;
const largestFile = 50 * 1024 * 1024;

export async function attachmentOf(file: File): Promise<Attachment> {
  if (/^image\/(?:png|jpeg|gif|webp)$/.test(file.type)) return imageAttachment(file);
  if (file.size > longestMessage) throw new Error(`${file.name} is larger than 4 MiB.`);
  return textAttachment(file.name, await readText(file));
}

export function textAttachment(name: string, text: string): Attachment {
  return { id: newId(), name, content: { text } };
}

/** Images that are too large for models are scaled down here before they are sent. */
async function imageAttachment(file: File): Promise<Attachment> {
  if (file.size > largestFile) throw new Error(`${file.name} is larger than 50 MiB.`);
  const blob = await shrinkImage(file);
  const data = toBase64(new Uint8Array(await blob.arrayBuffer()));
  return {
    id: newId(),
    name: file.name,
    content: { image: { name: file.name.slice(-256), mimeType: blob.type, data } },
  };
}

/** Returns the file itself if it is small enough. */
async function shrinkImage(file: File): Promise<Blob> {
  const bitmap = await createImageBitmap(file).catch(() => null);
  if (bitmap === null) throw new Error(`${file.name} cannot be read as an image.`);
  try {
    const scale = Math.min(1, longestSide / Math.max(bitmap.width, bitmap.height));
    if (scale === 1 && file.size <= largestImage) return file;
    const [width, height] = [bitmap.width, bitmap.height].map((side) =>
      Math.max(1, Math.round(side * scale)),
    );
    const canvas = new OffscreenCanvas(width as number, height as number);
    canvas.getContext("2d")?.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    // JPEG would turn transparent areas black. A browser that cannot encode WebP produces PNG.
    const type = file.type === "image/jpeg" ? "image/jpeg" : "image/webp";
    return await canvas.convertToBlob({ type, quality: 0.85 });
  } finally {
    bitmap.close();
  }
}

async function readText(file: File): Promise<string> {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    throw new Error(`${file.name} is neither an image nor text.`);
  }
}

function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (let from = 0; from < bytes.length; from += 0x8000)
    text += String.fromCharCode(...bytes.subarray(from, from + 0x8000));
  return btoa(text);
}
