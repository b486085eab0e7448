import { readBase64 } from "../../core/base64.ts";
import type { ImageHeader } from "../../core/image-header.ts";
import { isAnimatedGif, readImageHeader } from "../../core/image-header.ts";
import type { BlobRef, ImageBlock } from "../../core/messages.ts";
import { cutText, escapeToLine } from "../../core/text.ts";
import type { ImageLimits, ImagePort } from "../contract.ts";

/** An image that can be sent, with the changes made to it, or the reason why it cannot be sent. */
export type Settled =
  | {
      readonly image: ImageBlock;
      readonly bytes: number;
      readonly done: readonly (readonly [kind: string, note: string])[];
    }
  | { readonly reason: Reason };

/** Work that yields a promise when it must wait and otherwise runs synchronously. */
export type Waiting<T> = Generator<unknown, T, unknown>;

interface Found {
  readonly bytes: Uint8Array;
  readonly done: [kind: string, note: string][];
  /** The original block, or `null` if its data was repaired or loaded from a blob. */
  readonly block: ImageBlock | null;
}

/**
 * Converts an image to a form that a provider accepts. Its format is determined from the bytes, not from its declared
 * type.
 */
export function* settleImage(
  image: ImageBlock | BlobRef,
  limits: ImageLimits,
  port: ImagePort | undefined,
): Waiting<Settled> {
  const found = "sha256" in image ? yield* loadImage(image, port) : decodeImage(image);
  if (typeof found === "string") return { reason: found };
  const header = readImageHeader(found.bytes);
  if (header === null) return { reason: "unreadable" };
  const { block, done } = found;
  const isTaken = isSupportedKind(found.bytes, header, limits);
  if (isTaken && isWithinLimits(found.bytes, header, limits)) {
    if (block?.mimeType === header.mimeType) return { image: block, bytes: found.bytes.length, done };
    if (image.mimeType !== header.mimeType)
      done.push([
        "image_retyped",
        `An image (${describeImage(image)}) is actually ${header.mimeType}, judging by its bytes.`,
      ]);
    return toSettled(found.bytes, header, done, block?.data);
  }
  const smaller = yield* shrinkImage(found.bytes, header, limits, port);
  if (smaller === "not_installed") return { reason: smaller };
  const after = smaller === null ? null : readImageHeader(smaller);
  if (smaller === null || after === null || !isWithinLimits(smaller, after, limits))
    return { reason: isTaken ? "large" : "unsupported" };
  if (!isSupportedKind(smaller, after, limits)) return { reason: "unsupported" };
  const size = `${header.width} × ${header.height}, ${sizeText(found.bytes.length)}`;
  const now = `${after.width} × ${after.height}, ${sizeText(smaller.length)}`;
  if (isTaken) done.push(["image_shrunk", `An image (${size}) was shrunk: ${now}.`]);
  else
    done.push([
      "image_converted",
      `An image (${header.mimeType}, ${size}) was converted to ${after.mimeType}: ${now}.`,
    ]);
  return toSettled(smaller, after, done);
}

function isSupportedKind(bytes: Uint8Array, { mimeType }: ImageHeader, { gif }: ImageLimits): boolean {
  if (mimeType !== "image/gif" || gif === undefined) return true;
  return gif === "still" && !isAnimatedGif(bytes);
}

function isWithinLimits(bytes: Uint8Array, { width, height }: ImageHeader, limits: ImageLimits): boolean {
  return Math.max(width, height) <= limits.maxSide && bytes.length <= limits.maxBytes;
}

function toSettled(
  bytes: Uint8Array,
  { mimeType }: ImageHeader,
  done: Found["done"],
  data?: string,
): Settled {
  const text = data ?? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("base64");
  return { image: { type: "image", data: text, mimeType }, bytes: bytes.length, done };
}

function decodeImage(block: ImageBlock): Found | Reason {
  const read = typeof block.data === "string" ? readBase64(block.data) : null;
  if (read === null) return "unreadable";
  if (read.isExact) return { bytes: read.bytes, done: [], block };
  const done: Found["done"] = [
    ["image_mended", `The base64 data of an image (${describeImage(block)}) was repaired.`],
  ];
  return { bytes: read.bytes, done, block: null };
}

function* loadImage(blob: BlobRef, port: ImagePort | undefined): Waiting<Found | Reason> {
  const bytes = yield* callPort(() => port?.blob?.(blob.sha256));
  if (!(bytes instanceof Uint8Array)) return "missing";
  const done: Found["done"] = [
    ["image_loaded", `An image (${describeImage(blob)}) was loaded from its blob.`],
  ];
  return { bytes, done, block: null };
}

function* shrinkImage(
  bytes: Uint8Array,
  { mimeType }: ImageHeader,
  limits: ImageLimits,
  port: ImagePort | undefined,
): Waiting<Uint8Array | "not_installed" | null> {
  const result = yield* callPort(() => port?.shrink?.({ bytes, mimeType }, limits));
  if (result === "not_installed") return result;
  const smaller = (result as { readonly bytes?: unknown } | null | undefined)?.bytes;
  return smaller instanceof Uint8Array ? smaller : null;
}

/** Calls a port and ignores its errors because an image should never cause a request to fail. */
function* callPort(ask: () => unknown): Waiting<unknown> {
  try {
    const answer = ask();
    return isPromise(answer) ? yield answer : answer;
  } catch {
    return null;
  }
}

function isPromise(value: unknown): boolean {
  return typeof value === "object" && value !== null && "then" in value;
}

/** The reasons why an image is not shown. */
const reasons = {
  unseen: "this model does not accept images",
  old: "no longer shown",
  surplus: "omitted, because there are too many",
  missing: "could not be loaded",
  unreadable: "could not be read",
  unsupported: "of a type that this model does not accept",
  large: "too large to show",
  not_installed: "not shown, because resizing images requires the sharp package: npm install sharp",
};

type Reason = keyof typeof reasons;

export function imagePlaceholder(image: ImageBlock | BlobRef, reason: Reason): string {
  return `[image: ${describeImage(image)}: ${reasons[reason]}]`;
}

export function removalNote(image: ImageBlock | BlobRef, reason: Reason): string {
  return `An image (${describeImage(image)}) was replaced with text: ${reasons[reason]}.`;
}

/** Describes the declared type and size without decoding the bytes. */
function describeImage(image: ImageBlock | BlobRef): string {
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

export function shortName(name: unknown): string {
  return typeof name === "string" ? escapeToLine(cutText(name, 100)) : "?";
}
