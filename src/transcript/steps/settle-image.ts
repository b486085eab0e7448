import { isAnimatedGif } from "../../core/animated-gif.ts";
import type { ImageHeader } from "../../core/image-header.ts";
import { readImageHeader } from "../../core/image-header.ts";
import type { BlobRef, ImageBlock } from "../../core/messages.ts";
import type { ImageLimits, ImagePort } from "../contract.ts";
import type { Reason } from "./image-words.ts";
import { described, sizeText } from "./image-words.ts";
import { readBase64 } from "./read-base64.ts";

/** An image that can be sent, with what was done to it; or why it cannot. */
export type Settled =
  | {
      readonly image: ImageBlock;
      readonly bytes: number;
      readonly done: readonly (readonly [kind: string, note: string])[];
    }
  | { readonly reason: Reason };

/** Work that waits where a port does, and not at all where none is asked. */
export type Waiting<T> = Generator<unknown, T, unknown>;

interface Found {
  readonly bytes: Uint8Array;
  readonly done: [kind: string, note: string][];
  /** The block as it was, while nothing about its data has changed. */
  readonly block: ImageBlock | null;
}

/** Makes of an image what a provider takes. Its bytes decide, whatever is said about them. */
export function* settleImage(
  image: ImageBlock | BlobRef,
  limits: ImageLimits,
  port: ImagePort | undefined,
): Waiting<Settled> {
  const found = "sha256" in image ? yield* loaded(image, port) : decoded(image);
  if (typeof found === "string") return { reason: found };
  const header = readImageHeader(found.bytes);
  if (header === null) return { reason: "unreadable" };
  const { block, done } = found;
  const isTaken = isOfTakenKind(found.bytes, header, limits);
  if (isTaken && fits(found.bytes, header, limits)) {
    if (block?.mimeType === header.mimeType) return { image: block, bytes: found.bytes.length, done };
    if (image.mimeType !== header.mimeType)
      done.push(["image_retyped", `An image (${described(image)}) is ${header.mimeType} by its bytes.`]);
    return sent(found.bytes, header, done, block?.data);
  }
  const smaller = yield* shrunk(found.bytes, header, limits, port);
  if (smaller === "not_installed") return { reason: smaller };
  const after = smaller === null ? null : readImageHeader(smaller);
  if (smaller === null || after === null || !fits(smaller, after, limits))
    return { reason: isTaken ? "large" : "unsupported" };
  if (!isOfTakenKind(smaller, after, limits)) return { reason: "unsupported" };
  const size = `${header.width} × ${header.height}, ${sizeText(found.bytes.length)}`;
  const now = `${after.width} × ${after.height}, ${sizeText(smaller.length)}`;
  if (isTaken) done.push(["image_shrunk", `An image of ${size} was made smaller: ${now}.`]);
  else
    done.push([
      "image_converted",
      `An image (${header.mimeType}, ${size}) is ${after.mimeType} now: ${now}.`,
    ]);
  return sent(smaller, after, done);
}

function isOfTakenKind(bytes: Uint8Array, { mimeType }: ImageHeader, { gif }: ImageLimits): boolean {
  if (mimeType !== "image/gif" || gif === undefined) return true;
  return gif === "still" && !isAnimatedGif(bytes);
}

function fits(bytes: Uint8Array, { width, height }: ImageHeader, limits: ImageLimits): boolean {
  return Math.max(width, height) <= limits.maxSide && bytes.length <= limits.maxBytes;
}

function sent(bytes: Uint8Array, { mimeType }: ImageHeader, done: Found["done"], data?: string): Settled {
  const text = data ?? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("base64");
  return { image: { type: "image", data: text, mimeType }, bytes: bytes.length, done };
}

function decoded(block: ImageBlock): Found | Reason {
  const read = typeof block.data === "string" ? readBase64(block.data) : null;
  if (read === null) return "unreadable";
  if (read.isExact) return { bytes: read.bytes, done: [], block };
  const done: Found["done"] = [
    ["image_mended", `The base64 of an image (${described(block)}) was put right.`],
  ];
  return { bytes: read.bytes, done, block: null };
}

function* loaded(blob: BlobRef, port: ImagePort | undefined): Waiting<Found | Reason> {
  const bytes = yield* attempt(() => port?.blob?.(blob.sha256));
  if (!(bytes instanceof Uint8Array)) return "missing";
  const done: Found["done"] = [["image_loaded", `An image (${described(blob)}) was loaded from its blob.`]];
  return { bytes, done, block: null };
}

function* shrunk(
  bytes: Uint8Array,
  { mimeType }: ImageHeader,
  limits: ImageLimits,
  port: ImagePort | undefined,
): Waiting<Uint8Array | "not_installed" | null> {
  const result = yield* attempt(() => port?.shrink?.({ bytes, mimeType }, limits));
  if (result === "not_installed") return result;
  const smaller = (result as { readonly bytes?: unknown } | null | undefined)?.bytes;
  return smaller instanceof Uint8Array ? smaller : null;
}

/** Asks a port. One that fails has nothing to give: no request is lost over an image. */
function* attempt(ask: () => unknown): Waiting<unknown> {
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
