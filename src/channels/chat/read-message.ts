import { formatBytes, inLine } from "../../core/text.ts";
import type { ChatAdapter, ChatAttachment, ChatMessage } from "./chat-sdk.ts";

const maxImageBytes = 20 * 1024 * 1024;
const maxTextBytes = 256 * 1024;
const maxFiles = 20;
const longestName = 200;

interface Image {
  readonly data: string;
  readonly mimeType: string;
}

interface ReadFile {
  readonly image?: Image;
  /** What the model reads in place of the file. */
  readonly note?: string;
}

/**
 * Returns a message's text and images. The content of a text file is appended to the text. For any other file, and for
 * a file that is too large or cannot be downloaded, only its name, type and size are appended.
 */
export async function readMessage(
  adapter: ChatAdapter,
  { text, attachments }: Pick<ChatMessage, "text" | "attachments">,
): Promise<{ readonly text: string; readonly images: readonly Image[] }> {
  const files: ReadFile[] = [];
  for (const attachment of attachments.slice(0, maxFiles)) files.push(await readFile(attachment));
  const left = attachments.length - maxFiles;
  const notes = [
    ...files.flatMap(({ note }) => note ?? []),
    ...(left > 0 ? [`[files not read: ${left}]`] : []),
  ];
  return {
    text: [withoutMention(adapter, text), ...notes].filter((part) => part !== "").join("\n\n"),
    images: files.flatMap(({ image }) => image ?? []),
  };
}

async function readFile(file: ChatAttachment): Promise<ReadFile> {
  const { fetchData, size = 0, mimeType = file.type === "image" ? "image/jpeg" : "" } = file;
  const name = inLine(file.name ?? file.type, longestName);
  const about = [mimeType, ...(size > 0 ? [formatBytes(size)] : [])].filter((part) => part !== "").join(", ");
  const header = about === "" ? name : `${name} (${about})`;
  const isImage = /^image\/(?:png|jpeg|gif|webp)$/.test(mimeType);
  const isText = /^(?:text\/|application\/(?:json|xml|yaml|x-yaml|javascript)\b)/.test(mimeType);
  if (fetchData === undefined || (!isImage && !isText)) return { note: `[File: ${header}]` };
  const most = isImage ? maxImageBytes : maxTextBytes;
  if (size > most) return { note: `[File: ${header}, too large to read]` };
  const bytes = await fetchData.call(file).then(
    (data) => Buffer.from(data as Uint8Array),
    () => null,
  );
  if (bytes === null) return { note: `[File: ${header}, could not be downloaded]` };
  if (bytes.length > most) return { note: `[File: ${header}, too large to read]` };
  if (isImage) return { image: { data: bytes.toString("base64"), mimeType } };
  return { note: `[File: ${header}]\n${bytes.toString("utf8")}` };
}

/**
 * Removes a mention at the beginning, which only addresses the bot. If the text consists only of the mention, it is
 * kept.
 */
function withoutMention({ userName, botUserId }: ChatAdapter, text: string): string {
  const names = [userName, ...(botUserId === undefined ? [] : [botUserId])];
  const mention = names
    .map((name) => `@${name}`)
    .find((each) => {
      const [start, next] = [text.slice(0, each.length), text.charAt(each.length)];
      return start.toLowerCase() === each.toLowerCase() && !/[\w-]/.test(next);
    });
  const rest = mention === undefined ? text : text.slice(mention.length).replace(/^[\s,:]+/, "");
  return rest === "" ? text : rest;
}
