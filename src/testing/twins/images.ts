/** Decodes base64 and images in the same way as the providers' servers. */

/**
 * Accepts only the standard alphabet, with padding and no other characters. Returns `null` if the text is not base64.
 */
export function decodeBase64(text: string): Uint8Array | null {
  if (text.length % 4 !== 0 || text.includes("-") || text.includes("_")) return null;
  return decodeAll(text, text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0);
}

/** Accepts either alphabet, with or without padding, as for bytes in the JSON encoding of protocol buffers. */
export function decodeProtoBytes(text: string): Uint8Array | null {
  const bare = text.replace(/={1,2}$/, "");
  return bare.length % 4 === 1 ? null : decodeAll(bare, 0);
}

/** Node skips characters that are not base64, so the result has fewer bytes than the text's length implies. */
function decodeAll(text: string, padding: number): Uint8Array | null {
  const bytes = Buffer.from(text, "base64");
  return bytes.length === Math.floor((text.length * 3) / 4) - padding ? bytes : null;
}

/** An image's type and size, from its first bytes. */
export interface ImageHead {
  readonly mimeType: string;
  /** 0 if the format does not store it at the start. */
  readonly width: number;
  readonly height: number;
}

/** Returns `null` if the bytes are not an image type that providers accept. */
export function readImageHead(bytes: Uint8Array): ImageHead | null {
  return readPng(bytes) ?? readJpeg(bytes) ?? readGif(bytes) ?? readWebp(bytes) ?? readHeif(bytes);
}

function readPng(bytes: Uint8Array): ImageHead | null {
  if (bytes.length < 24 || ascii(bytes, 1, 3) !== "PNG" || ascii(bytes, 12, 4) !== "IHDR") return null;
  const view = viewOf(bytes);
  return { mimeType: "image/png", width: view.getUint32(16), height: view.getUint32(20) };
}

function readGif(bytes: Uint8Array): ImageHead | null {
  if (bytes.length < 10 || ascii(bytes, 0, 4) !== "GIF8") return null;
  const view = viewOf(bytes);
  return { mimeType: "image/gif", width: view.getUint16(6, true), height: view.getUint16(8, true) };
}

/** The size is in the first start-of-frame segment. */
function readJpeg(bytes: Uint8Array): ImageHead | null {
  if (bytes.length < 4 || bytes[0] !== 0xff || bytes[1] !== 0xd8 || bytes[2] !== 0xff) return null;
  const view = viewOf(bytes);
  for (let at = 2; at + 9 < bytes.length; at += 2 + view.getUint16(at + 2)) {
    const marker = bytes[at + 1] ?? 0;
    if (bytes[at] !== 0xff) return null;
    const isFrame = marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
    if (!isFrame) continue;
    return { mimeType: "image/jpeg", width: view.getUint16(at + 7), height: view.getUint16(at + 5) };
  }
  return null;
}

function readWebp(bytes: Uint8Array): ImageHead | null {
  if (bytes.length < 30 || ascii(bytes, 0, 4) !== "RIFF" || ascii(bytes, 8, 4) !== "WEBP") return null;
  const view = viewOf(bytes);
  const mimeType = "image/webp";
  const kind = ascii(bytes, 12, 4);
  if (kind === "VP8 ") {
    return { mimeType, width: view.getUint16(26, true) & 0x3fff, height: view.getUint16(28, true) & 0x3fff };
  }
  if (kind === "VP8L") {
    const packed = view.getUint32(21, true);
    return { mimeType, width: (packed & 0x3fff) + 1, height: ((packed >>> 14) & 0x3fff) + 1 };
  }
  if (kind !== "VP8X") return null;
  const uint24 = (at: number) => view.getUint16(at, true) + ((bytes[at + 2] ?? 0) << 16);
  return { mimeType, width: uint24(24) + 1, height: uint24(27) + 1 };
}

function readHeif(bytes: Uint8Array): ImageHead | null {
  if (bytes.length < 12 || ascii(bytes, 4, 4) !== "ftyp") return null;
  const brand = ascii(bytes, 8, 4);
  if (brand === "heic" || brand === "heix") return { mimeType: "image/heic", width: 0, height: 0 };
  return brand === "mif1" || brand === "msf1" ? { mimeType: "image/heif", width: 0, height: 0 } : null;
}

function ascii(bytes: Uint8Array, at: number, length: number): string {
  return String.fromCharCode(...bytes.subarray(at, at + length));
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** An image in a data URL. */
export interface DataImage {
  /** As given in the URL. `image/jpg` is treated as `image/jpeg`. */
  readonly mediaType: string;
  /** Determined from the first bytes, or `null` if it is not an image type that providers accept. */
  readonly actual: string | null;
  readonly bytes: number;
  readonly isAnimated: boolean;
}

const maxHeadLength = 100;

/** Returns `null` if the text is not a base64 data URL. */
export function readDataUrl(url: string): DataImage | null {
  const comma = url.slice(0, maxHeadLength).indexOf(",");
  const head = comma < 0 ? "" : url.slice("data:".length, comma).toLowerCase();
  if (!head.endsWith(";base64")) return null;
  const padding = url.endsWith("==") ? 2 : url.endsWith("=") ? 1 : 0;
  const data = url.slice(comma + 1, url.length - padding);
  if (data === "" || (data.length + padding) % 4 !== 0 || /[^A-Za-z0-9+/]/.test(data)) return null;
  const named = head.slice(0, head.indexOf(";"));
  const actual = sniffType(Buffer.from(data.slice(0, 32), "base64"));
  return {
    mediaType: named === "image/jpg" ? "image/jpeg" : named,
    actual,
    bytes: Math.floor((data.length * 3) / 4),
    isAnimated: actual === "image/gif" && countGifFrames(Buffer.from(data, "base64")) > 1,
  };
}

const fileSignatures: readonly (readonly [type: string, signature: string])[] = [
  ["image/png", "\x89PNG\r\n\x1a\n"],
  ["image/jpeg", "\xff\xd8\xff"],
  ["image/gif", "GIF87a"],
  ["image/gif", "GIF89a"],
];

function sniffType(head: Buffer): string | null {
  const text = head.toString("latin1");
  if (text.startsWith("RIFF") && text.slice(8, 12) === "WEBP") return "image/webp";
  return fileSignatures.find(([, signature]) => text.startsWith(signature))?.[0] ?? null;
}

const imageMark = 0x2c;
const extensionMark = 0x21;

/** Stops at the second frame, which makes the GIF animated, or where the file is damaged. */
function countGifFrames(gif: Buffer): number {
  let frames = 0;
  let at = 13 + colorTableSize(gif[10]);
  while (at < gif.length && frames < 2) {
    if (gif[at] === imageMark) {
      frames++;
      at = skipBlocks(gif, at + 11 + colorTableSize(gif[at + 9]));
    } else if (gif[at] === extensionMark) at = skipBlocks(gif, at + 2);
    else break;
  }
  return frames;
}

function colorTableSize(flags = 0): number {
  return (flags & 0x80) === 0 ? 0 : 3 * 2 ** ((flags & 7) + 1);
}

function skipBlocks(gif: Buffer, start: number): number {
  let at = start;
  for (let size = gif[at] ?? 0; size > 0; size = gif[at] ?? 0) at += size + 1;
  return at + 1;
}
