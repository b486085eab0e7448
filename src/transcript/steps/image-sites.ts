import type { BlobRef, Content, ImageBlock } from "../../core/messages.ts";
import type { TranscriptMessage } from "../contract.ts";
import { isInserted } from "../derive.ts";

/** Where the images of a transcript are, and which of them are recent. */

type Block = Exclude<Content, string>[number];

/** An image, in the message or in a blob. */
export interface ImageSite {
  readonly message: number;
  readonly block: number;
  readonly image: ImageBlock | BlobRef;
}

const recentTurns = 3;
/** How a message begins that holds the images of tool results. Somebody else's text in this form does no harm. */
export const movedLead = "[images of the tool result ";

export function hasImages(messages: readonly TranscriptMessage[]): boolean {
  for (const { role, content } of messages) {
    if (role === "assistant" || typeof content === "string") continue;
    for (const block of content) if (imageIn(block) !== null) return true;
  }
  return false;
}

/** From the first to the last. */
export function imageSites(messages: readonly TranscriptMessage[]): ImageSite[] {
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

/** The first message of the last three answered turns; what lies before is old. */
export function firstRecent(messages: readonly TranscriptMessage[]): number {
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

/** A user's message; the images of tool results are part of the turn that they came up in. */
function isInput(message: TranscriptMessage | undefined): boolean {
  if (message?.role !== "user" || isInserted(message)) return false;
  const first = typeof message.content === "string" ? undefined : message.content[0];
  return first?.type !== "text" || !first.text.startsWith(movedLead);
}
