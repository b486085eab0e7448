import type { BlobRef, ImageBlock } from "../../core/messages.ts";
import { cutText, escapeToLine } from "../../core/text.ts";

/** Why an image is not shown. */
export type Reason =
  | "unseen"
  | "old"
  | "surplus"
  | "missing"
  | "unreadable"
  | "unsupported"
  | "large"
  | "not_installed";

const reasons: Readonly<Record<Reason, string>> = {
  unseen: "this model sees no images",
  old: "no longer shown",
  surplus: "left out, there are too many",
  missing: "could not be loaded",
  unreadable: "could not be read",
  unsupported: "of a kind that this model does not take",
  large: "too large to be shown",
  not_installed: "not shown, because making images fit needs the package sharp: npm install sharp",
};

/** What stands in for an image. */
export function imageStandIn(image: ImageBlock | BlobRef, reason: Reason): string {
  return `[image: ${described(image)}: ${reasons[reason]}]`;
}

export function removalNote(image: ImageBlock | BlobRef, reason: Reason): string {
  return `An image (${described(image)}) is a text now: ${reasons[reason]}.`;
}

/** Type and size as they are told, without a look at the bytes. */
export function described(image: ImageBlock | BlobRef): string {
  const type = typeof image.mimeType === "string" ? image.mimeType : "";
  const known = /^[a-z]+\/[a-z0-9.+-]{1,40}$/i.test(type) ? type.toLowerCase() : "unknown type";
  return `${known}, ${sizeText(sizeOf(image))}`;
}

export function sizeText(bytes: number): string {
  if (bytes < 1024) return `${bytes} bytes`;
  if (bytes < 1024 * 1024) return `${Math.round(bytes / 1024)} KB`;
  return `${(bytes / 1024 / 1024).toFixed(1)} MB`;
}

function sizeOf(image: ImageBlock | BlobRef): number {
  if ("sha256" in image) return Number.isFinite(image.bytes) ? image.bytes : 0;
  if (typeof image.data !== "string") return 0;
  const padding = image.data.endsWith("==") ? 2 : image.data.endsWith("=") ? 1 : 0;
  return Math.floor(((image.data.length - padding) * 3) / 4);
}

/** A name from outside, short and on one line. */
export function shortName(name: unknown): string {
  return typeof name === "string" ? escapeToLine(cutText(name, 100)) : "?";
}
