import type { Params } from "skein/client";

type WireAttachment = NonNullable<Params<"chat.send">["attachments"]>[number];

/** Something that goes with a message. */
export interface Attachment {
  readonly id: string;
  readonly name: string;
  readonly preview: string | null;
  readonly content: { readonly image: WireAttachment } | { readonly text: string };
}

/** `crypto.randomUUID` is missing on pages over plain HTTP, such as a gateway in a local network. */
export function newId(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");
}

/** A message with its attachments. Texts become fenced blocks of the message, because models read nothing else. */
export function composeMessage(message: string, attachments: readonly Attachment[]) {
  const texts = attachments.flatMap(({ name, content }) =>
    "text" in content ? [fence(name, content.text)] : [],
  );
  const images = attachments.flatMap(({ content }) => ("image" in content ? [content.image] : []));
  return {
    message: [message, ...texts].filter((part) => part !== "").join("\n\n"),
    ...(images.length === 0 ? {} : { attachments: images }),
  };
}

/** Longer than any run of backticks inside. */
function fence(name: string, text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const ticks = "`".repeat(longest + 1);
  return `${name}:\n${ticks}\n${text}\n${ticks}`;
}

/** Longer pastes become an attachment: a text area with 20,000 lines is slow in every browser. */
export const longestPaste = 20_000;

const longestSide = 2000;
const largestImage = 4 * 1024 * 1024;
const largestFile = 15 * 1024 * 1024;

export async function attachmentOf(file: File): Promise<Attachment> {
  if (file.size > largestFile) throw new Error(`${file.name} is larger than 15 MiB.`);
  if (/^image\/(?:png|jpeg|gif|webp)$/.test(file.type)) return imageAttachment(file);
  return textAttachment(file.name, await readText(file));
}

export function textAttachment(name: string, text: string): Attachment {
  return { id: newId(), name, preview: null, content: { text } };
}

/** Images that are too large for models are scaled down here, before they are sent. */
async function imageAttachment(file: File): Promise<Attachment> {
  const bitmap = await createImageBitmap(file);
  const scale = Math.min(1, longestSide / Math.max(bitmap.width, bitmap.height));
  const blob = scale === 1 && file.size <= largestImage ? file : await scaleImage(bitmap, scale);
  bitmap.close();
  const data = toBase64(new Uint8Array(await blob.arrayBuffer()));
  return {
    id: newId(),
    name: file.name,
    preview: `data:${blob.type};base64,${data}`,
    content: { image: { name: file.name, mimeType: blob.type, data } },
  };
}

async function scaleImage(bitmap: ImageBitmap, scale: number): Promise<Blob> {
  const canvas = new OffscreenCanvas(Math.round(bitmap.width * scale), Math.round(bitmap.height * scale));
  canvas.getContext("2d")?.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  return canvas.convertToBlob({ type: "image/jpeg", quality: 0.85 });
}

async function readText(file: File): Promise<string> {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    throw new Error(`${file.name} is neither an image nor a text.`);
  }
}

function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (let from = 0; from < bytes.length; from += 0x8000)
    text += String.fromCharCode(...bytes.subarray(from, from + 0x8000));
  return btoa(text);
}
