import type { UIMessage, UIMessageChunk } from "ai";
import { heldPart } from "../../agents/models/parts.ts";
import { tryParseJson } from "../../agents/models/signatures.ts";
import type { Entry } from "../../core/entries.ts";
import { isRecord } from "../../core/is-record.ts";
import type {
  AssistantMessage,
  Content,
  ImageBlock,
  TextBlock,
  ToolCallBlock,
  ToolResultMessage,
} from "../../core/messages.ts";
import { textOf } from "../../core/messages.ts";
import { present } from "../../core/present.ts";
import type { SessionHandle } from "../../sessions/session-handle.ts";
import type { MessageGroup } from "./entries.ts";
import { groupEntries, isConversation, markOf, messageIdOf, readEntries } from "./entries.ts";

/** The data that the adapter adds to a message's metadata under the key `skein`. */
export interface StoredMessage {
  /** The first entry of the message. It selects the message's branch. */
  readonly entryId: string;
  /** The first entries of the messages in this place on all branches, oldest first. */
  readonly alternatives: readonly string[];
  /** The model that answered, as `provider/model`. */
  readonly model?: string;
  /** Why the answer is incomplete. */
  readonly error?: string;
}

/** A message for `useChat`. */
export type ChatMessage = UIMessage<{ readonly skein: StoredMessage }>;
type Part = ChatMessage["parts"][number];

/** Determines the error texts that people see. */
export interface ErrorTextOptions {
  /**
   * Returns the text that a browser sees if an answer or a tool fails. An error's message can contain addresses and
   * other details of the server, so the default text does not include it. A stored error is passed as an `Error` with
   * its message.
   */
  errorText?(error: unknown): string;
}

export function errorTextFor(options: ErrorTextOptions, error: unknown): string {
  return options.errorText?.(error) ?? "The answer failed. Try again.";
}

/**
 * Returns the messages of a session's active branch for `useChat`, with the other branches at each message.
 *
 * @example
 * ```ts
 * import { createSkein } from "skein";
 * import { readUIMessages } from "skein/ai-sdk";
 * const skein = await createSkein({ dir: ".skein" });
 * const messages = await readUIMessages(skein.session({ userId: "ann", sessionId: "trip" }));
 * ```
 */
export async function readUIMessages(
  session: SessionHandle,
  options: ErrorTextOptions = {},
): Promise<ChatMessage[]> {
  const [branch, all] = await Promise.all([readEntries(session, "branch"), readEntries(session, "all")]);
  const alternatives = findAlternatives(all);
  const shown = (text: string) => errorTextFor(options, new Error(text));
  return Promise.all(
    groupEntries(branch).map((group) => messageOf(session, group, alternatives(group.entries[0].id), shown)),
  );
}

/** Returns a function that lists the messages in the same place as an entry's, on all branches. */
function findAlternatives(entries: readonly Entry[]): (entryId: string) => readonly string[] {
  /** The message before each entry. Entries that are not displayed, such as labels, are skipped. */
  const previous = new Map<string, string | null>();
  const visible = new Map<string | null, string | null>([[null, null]]);
  const places = new Map<string | null, string[]>();
  for (const entry of entries) {
    const before = visible.get(entry.parentId) ?? null;
    previous.set(entry.id, before);
    const isMessage = isConversation(entry);
    visible.set(entry.id, isMessage ? entry.id : before);
    if (isMessage && entry.message.role !== "toolResult")
      places.set(before, [...(places.get(before) ?? []), entry.id]);
  }
  return (entryId) => places.get(previous.get(entryId) ?? null) ?? [entryId];
}

async function messageOf(
  session: SessionHandle,
  group: MessageGroup,
  alternatives: readonly string[],
  shownError: (text: string) => string,
): Promise<ChatMessage> {
  const { role, entries } = group;
  const [first] = entries;
  const mark = markOf(first);
  const answers = entries.flatMap(({ message }) => (message.role === "assistant" ? [message] : []));
  const last = answers.at(-1);
  const stored: StoredMessage = {
    entryId: first.id,
    alternatives,
    ...present({ model: last === undefined ? undefined : `${last.provider}/${last.model}` }),
    ...present({ error: errorOf(last, shownError) }),
  };
  const parts =
    first.message.role === "user"
      ? ((mark.parts as Part[] | undefined) ?? (await partsOfContent(session, first.message.content)))
      : answers.flatMap((answer) => partsOfAnswer(answer, resultsOf(group), shownError));
  const given = isRecord(mark.metadata) ? mark.metadata : {};
  return { id: messageIdOf(group), role, metadata: { ...given, skein: stored }, parts };
}

function errorOf(
  answer: AssistantMessage | undefined,
  shownError: (text: string) => string,
): string | undefined {
  if (answer?.errorMessage === undefined || answer.stopReason === "aborted") return answer?.errorMessage;
  return shownError(answer.errorMessage);
}

function resultsOf({ entries }: MessageGroup): ReadonlyMap<string, ToolResultMessage> {
  const results = entries.flatMap(({ message }) => (message.role === "toolResult" ? [message] : []));
  return new Map(results.map((result) => [result.toolCallId, result]));
}

async function partsOfContent(session: SessionHandle, content: Content): Promise<Part[]> {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return Promise.all(content.map((block) => partOfBlock(session, block)));
}

async function partOfBlock(session: SessionHandle, block: TextBlock | ImageBlock): Promise<Part> {
  if (block.type === "image")
    return { type: "file", mediaType: block.mimeType, url: dataUrl(block.mimeType, block.data) };
  const { blob, part } = block.skein ?? {};
  if (blob?.was === "image") {
    const bytes = await session.blob(blob.sha256);
    if (bytes !== null)
      return {
        type: "file",
        mediaType: blob.mimeType,
        url: dataUrl(blob.mimeType, Buffer.from(bytes).toString("base64")),
      };
  }
  return (part === undefined ? null : filePart(part)) ?? { type: "text", text: block.text };
}

function filePart({ type, mediaType, data, filename }: Readonly<Record<string, unknown>>): Part | null {
  if (type !== "file" || typeof mediaType !== "string" || !isRecord(data)) return null;
  const url = data.type === "data" ? dataUrl(mediaType, String(data.data)) : String(data.url ?? "");
  return url === "" ? null : { type, mediaType, url, ...(typeof filename === "string" ? { filename } : {}) };
}

function dataUrl(mediaType: string, base64: string): string {
  return `data:${mediaType};base64,${base64}`;
}

function partsOfAnswer(
  message: AssistantMessage,
  results: ReadonlyMap<string, ToolResultMessage>,
  shownError: (text: string) => string,
): Part[] {
  const parts = message.content.flatMap((block): Part[] => {
    switch (block.type) {
      case "text":
        return [{ type: "text", text: block.text, state: "done" }];
      case "thinking":
        return block.thinking === "" ? [] : [{ type: "reasoning", text: block.thinking, state: "done" }];
      case "toolCall":
        return [toolPart(block, results.get(block.id), shownError)];
      default:
        return partOfHeld(heldPart(block));
    }
  });
  return [{ type: "step-start" }, ...parts];
}

/** Returns a part for content that the session stores as the provider sent it. */
function partOfHeld(held: Readonly<Record<string, unknown>> | null): Part[] {
  const file = held === null ? null : filePart(held);
  return file === null ? [] : [file];
}

function toolPart(
  { id: toolCallId, name, arguments: input }: ToolCallBlock,
  result: ToolResultMessage | undefined,
  shownError: (text: string) => string,
): Part {
  const call = { type: `tool-${name}`, toolCallId, input } as const;
  if (result === undefined) return { ...call, state: "input-available" };
  const text = textOf(result.content);
  if (result.isError === true) return { ...call, state: "output-error", errorText: shownError(text) };
  return { ...call, state: "output-available", output: outputOf(result, text) };
}

function outputOf({ skein }: ToolResultMessage, text: string): unknown {
  return skein?.output === "json" ? (tryParseJson(text) ?? text) : text;
}

/** Returns the chunks that build a message's finished steps in a browser. */
export function chunksOf({ parts }: ChatMessage): UIMessageChunk[] {
  const chunks = parts.flatMap((part, index): UIMessageChunk[] => {
    const id = `stored-${index}`;
    if (part.type === "step-start")
      return [...(index === 0 ? [] : [{ type: "finish-step" } as const]), { type: "start-step" }];
    if (part.type === "text" || part.type === "reasoning")
      return [
        { type: `${part.type}-start`, id },
        { type: `${part.type}-delta`, id, delta: part.text },
        { type: `${part.type}-end`, id },
      ];
    if (part.type === "file") return [{ type: "file", url: part.url, mediaType: part.mediaType }];
    return "toolCallId" in part ? toolChunks(part as StoredToolPart) : [];
  });
  return chunks.length === 0 ? [] : [...chunks, { type: "finish-step" }];
}

type StoredToolPart = Extract<Part, { toolCallId: string }> & { readonly type: `tool-${string}` };

function toolChunks({ toolCallId, type, ...part }: StoredToolPart): UIMessageChunk[] {
  const call: UIMessageChunk = {
    type: "tool-input-available",
    toolCallId,
    toolName: type.slice("tool-".length),
    input: part.input,
  };
  if (part.state === "output-available")
    return [call, { type: "tool-output-available", toolCallId, output: part.output }];
  if (part.state === "output-error")
    return [call, { type: "tool-output-error", toolCallId, errorText: part.errorText }];
  return [call];
}
