import type { BlobRef, Content, ImageBlock } from "../../core/messages.ts";
import type { Change, ImagePort, StepResult, TranscriptMessage, TranscriptPolicy } from "../contract.ts";
import type { Recorder } from "../derive.ts";
import { derive, isInserted, isNote } from "../derive.ts";
import type { Settled, Waiting } from "./settle-image.ts";
import { imagePlaceholder, removalNote, settleImage } from "./settle-image.ts";

interface SanitizeImagesOptions {
  readonly policy: TranscriptPolicy;
  readonly images?: ImagePort;
  readonly record: Recorder;
}

const nothing: readonly Change[] = Object.freeze([]);

/**
 * Keeps only images that the model accepts: recent, readable, small and few enough. Other images are replaced with a
 * text placeholder. Asynchronous only when a blob is loaded or an image is shrunk.
 */
export function sanitizeImages(
  messages: readonly TranscriptMessage[],
  options: SanitizeImagesOptions,
): StepResult | Promise<StepResult> {
  if (!hasImages(messages)) return { messages, changes: nothing };
  return runToEnd(sanitizeAll(messages, options));
}

function* sanitizeAll(
  messages: readonly TranscriptMessage[],
  { policy, images, record }: SanitizeImagesOptions,
): Waiting<StepResult> {
  const sites = findImageSites(messages);
  const settled = yield* settleAll(sites, findFirstRecent(messages), policy, images);
  const changes: Change[] = [];
  const result = [...messages];
  for (let from = 0; from < sites.length; ) {
    const index = (sites[from] as ImageSite).message;
    let next = from;
    while (sites[next]?.message === index) next++;
    const own = { sites: sites.slice(from, next), settled: settled.slice(from, next) };
    const message = messages[index] as TranscriptMessage;
    result[index] = replaceImages(message, own, (kind, note) => changes.push(record(kind, note, message)));
    from = next;
  }
  return changes.length === 0 ? { messages, changes: nothing } : { messages: result, changes };
}

/** Goes from newest to oldest so that the oldest images are dropped. Dropped images are neither decoded nor loaded. */
function* settleAll(
  sites: readonly ImageSite[],
  recent: number,
  { images: limits }: TranscriptPolicy,
  port: ImagePort | undefined,
): Waiting<Settled[]> {
  const settled = new Array<Settled>(sites.length);
  let [count, total] = [0, 0];
  for (let index = sites.length - 1; index >= 0; index--) {
    const { message, image } = sites[index] as ImageSite;
    if (limits === null) settled[index] = { reason: "unseen" };
    else if (message < recent) settled[index] = { reason: "old" };
    else if (count >= limits.maxCount || total > limits.maxTotalBytes) settled[index] = { reason: "surplus" };
    else {
      const one = yield* settleImage(image, limits, port);
      if ("image" in one) [count, total] = [count + 1, total + one.bytes];
      settled[index] = total > limits.maxTotalBytes ? { reason: "surplus" } : one;
    }
  }
  return settled;
}

interface Own {
  readonly sites: readonly ImageSite[];
  readonly settled: readonly Settled[];
}

function replaceImages(
  message: TranscriptMessage,
  { sites, settled }: Own,
  tell: (kind: string, note: string) => void,
): TranscriptMessage {
  if (message.role === "assistant") return message;
  const content = [...(message.content as Exclude<Content, string>)];
  for (const [index, { block, image }] of sites.entries()) {
    const one = settled[index] as Settled;
    if ("reason" in one) {
      content[block] = { type: "text", text: imagePlaceholder(image, one.reason) };
      tell("image_removed", removalNote(image, one.reason));
      continue;
    }
    for (const [kind, note] of one.done) tell(kind, note);
    content[block] = one.image;
  }
  const isSame = content.every((block, index) => block === message.content[index]);
  return isSame ? message : derive(message, { content });
}

/** Runs work to completion, synchronously if it never waits. */
function runToEnd<T>(running: Waiting<T>): T | Promise<T> {
  const first = running.next();
  return first.done === true ? first.value : runAsync(running, first.value);
}

async function runAsync<T>(running: Waiting<T>, waitsFor: unknown): Promise<T> {
  let awaited = waitsFor;
  for (;;) {
    let step: IteratorResult<unknown, T>;
    try {
      step = running.next(await awaited);
    } catch (error) {
      step = running.throw(error);
    }
    if (step.done === true) return step.value;
    awaited = step.value;
  }
}

type Block = Exclude<Content, string>[number];

/** An image in a message or in a blob. */
interface ImageSite {
  readonly message: number;
  readonly block: number;
  readonly image: ImageBlock | BlobRef;
}

const recentTurns = 3;
/** The start of a message with images from tool results. User text with this prefix is harmless. */
export const movedImagesPrefix = "[images of the tool result ";

function hasImages(messages: readonly TranscriptMessage[]): boolean {
  for (const { role, content } of messages) {
    if (role === "assistant" || typeof content === "string") continue;
    for (const block of content) if (imageIn(block) !== null) return true;
  }
  return false;
}

/** Returns the images in order. */
function findImageSites(messages: readonly TranscriptMessage[]): ImageSite[] {
  const sites: ImageSite[] = [];
  for (const [message, { role, content }] of messages.entries()) {
    if (role === "assistant" || typeof content === "string") continue;
    for (const [block, each] of content.entries()) {
      const image = imageIn(each);
      if (image !== null) sites.push({ message, block, image });
    }
  }
  return sites;
}

function imageIn(block: Block): ImageBlock | BlobRef | null {
  if (block.type === "image") return block;
  const blob = block.type === "text" ? block.skein?.blob : undefined;
  return blob?.was === "image" ? blob : null;
}

/** Returns the index of the first message in the last three answered turns. Images before it are old. */
function findFirstRecent(messages: readonly TranscriptMessage[]): number {
  let turns = 0;
  let isAnswered = false;
  for (let index = messages.length - 1; index >= 0; index--) {
    const message = messages[index] as TranscriptMessage;
    if (message.role === "assistant") isAnswered ||= message.stopReason !== "error";
    if (!isInput(message) || isInput(messages[index - 1])) continue;
    if (isAnswered) turns++;
    if (turns === recentTurns) return index;
    isAnswered = false;
  }
  return 0;
}

/**
 * Whether this is a user message that starts a turn. A note, and a message with images from tool results, belong to the
 * previous turn.
 */
function isInput(message: TranscriptMessage | undefined): boolean {
  if (message?.role !== "user" || isInserted(message) || isNote(message)) return false;
  const first = typeof message.content === "string" ? undefined : message.content[0];
  return first?.type !== "text" || !first.text.startsWith(movedImagesPrefix);
}
