import type { Content } from "../../core/messages.ts";
import type { Change, ImagePort, StepResult, TranscriptMessage, TranscriptPolicy } from "../contract.ts";
import type { Recorder } from "../derive.ts";
import { derive } from "../derive.ts";
import type { ImageSite } from "./image-sites.ts";
import { firstRecent, hasImages, imageSites } from "./image-sites.ts";
import { imageStandIn, removalNote } from "./image-words.ts";
import type { Settled, Waiting } from "./settle-image.ts";
import { settleImage } from "./settle-image.ts";

export interface SanitizeImagesOptions {
  readonly policy: TranscriptPolicy;
  readonly images?: ImagePort;
  readonly record: Recorder;
}

const nothing: readonly Change[] = Object.freeze([]);

/**
 * Leaves only images that the model takes: recent, readable, small and few enough. The others
 * become a text that says what was there. Waits only where a blob is loaded or an image made smaller.
 */
export function sanitizeImages(
  messages: readonly TranscriptMessage[],
  options: SanitizeImagesOptions,
): StepResult | Promise<StepResult> {
  if (!hasImages(messages)) return { messages, changes: nothing };
  return finish(work(messages, options));
}

function* work(
  messages: readonly TranscriptMessage[],
  { policy, images, record }: SanitizeImagesOptions,
): Waiting<StepResult> {
  const sites = imageSites(messages);
  const settled = yield* settleAll(sites, firstRecent(messages), policy, images);
  const changes: Change[] = [];
  const result = [...messages];
  for (let from = 0; from < sites.length; ) {
    const index = (sites[from] as ImageSite).message;
    let next = from;
    while (sites[next]?.message === index) next++;
    const own = { sites: sites.slice(from, next), settled: settled.slice(from, next) };
    const message = messages[index] as TranscriptMessage;
    result[index] = withImages(message, own, (kind, note) => changes.push(record(kind, note, message)));
    from = next;
  }
  return changes.length === 0 ? { messages, changes: nothing } : { messages: result, changes };
}

/** From the newest back, so that the oldest give way; and what gives way is neither decoded nor loaded. */
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

/** The message with its images as they are now. */
function withImages(
  message: TranscriptMessage,
  { sites, settled }: Own,
  tell: (kind: string, note: string) => void,
): TranscriptMessage {
  if (message.role === "assistant") return message;
  const content = [...(message.content as Exclude<Content, string>)];
  for (const [index, { block, image }] of sites.entries()) {
    const one = settled[index] as Settled;
    if ("reason" in one) {
      content[block] = { type: "text", text: imageStandIn(image, one.reason) };
      tell("image_removed", removalNote(image, one.reason));
      continue;
    }
    for (const [kind, note] of one.done) tell(kind, note);
    content[block] = one.image;
  }
  const isSame = content.every((block, index) => block === message.content[index]);
  return isSame ? message : derive(message, { content });
}

/** Runs work to its end; at once where it never waits. */
function finish<T>(running: Waiting<T>): T | Promise<T> {
  const first = running.next();
  return first.done === true ? first.value : finishLater(running, first.value);
}

async function finishLater<T>(running: Waiting<T>, waitsFor: unknown): Promise<T> {
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
