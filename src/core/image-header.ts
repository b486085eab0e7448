/** The formats that every provider accepts. */
type ImageType = "image/png" | "image/jpeg" | "image/gif" | "image/webp";

export interface ImageHeader {
  readonly mimeType: ImageType;
  readonly width: number;
  readonly height: number;
}

/** Returns the format and size of an image, or `null` if the format is unknown or no size is found. Never throws. */
export function readImageHeader(bytes: Uint8Array): ImageHeader | null {
  const found = png(bytes) ?? jpeg(bytes) ?? gif(bytes) ?? webp(bytes);
  return found === null || found.width < 1 || found.height < 1 ? null : found;
}

/** Bytes past the end are read as 0, which is not a valid size. */
function byteAt(bytes: Uint8Array, at: number): number {
  return bytes[at] ?? 0;
}

/** Big-endian. */
function uint16(bytes: Uint8Array, at: number): number {
  return byteAt(bytes, at) * 0x100 + byteAt(bytes, at + 1);
}

function uint16Le(bytes: Uint8Array, at: number): number {
  return byteAt(bytes, at) + byteAt(bytes, at + 1) * 0x100;
}

function has(bytes: Uint8Array, at: number, text: string): boolean {
  for (let index = 0; index < text.length; index++)
    if (bytes[at + index] !== text.charCodeAt(index)) return false;
  return true;
}

function png(bytes: Uint8Array): ImageHeader | null {
  if (!has(bytes, 0, "\x89PNG\r\n\x1a\n") || !has(bytes, 12, "IHDR") || bytes.length < 24) return null;
  const side = (at: number) => uint16(bytes, at) * 0x10000 + uint16(bytes, at + 2);
  return { mimeType: "image/png", width: side(16), height: side(20) };
}

function gif(bytes: Uint8Array): ImageHeader | null {
  if (bytes.length < 10 || (!has(bytes, 0, "GIF87a") && !has(bytes, 0, "GIF89a"))) return null;
  return { mimeType: "image/gif", width: uint16Le(bytes, 6), height: uint16Le(bytes, 8) };
}

/** The first chunk can be lossy, lossless or extended. */
function webp(bytes: Uint8Array): ImageHeader | null {
  if (!has(bytes, 0, "RIFF") || !has(bytes, 8, "WEBP") || bytes.length < 30) return null;
  const mimeType = "image/webp";
  if (has(bytes, 12, "VP8 ") && has(bytes, 23, "\x9d\x01\x2a")) {
    return { mimeType, width: uint16Le(bytes, 26) & 0x3fff, height: uint16Le(bytes, 28) & 0x3fff };
  }
  if (has(bytes, 12, "VP8L") && byteAt(bytes, 20) === 0x2f) {
    const [low, high] = [uint16Le(bytes, 21), uint16Le(bytes, 23)];
    return { mimeType, width: (low & 0x3fff) + 1, height: (((high << 2) | (low >> 14)) & 0x3fff) + 1 };
  }
  if (!has(bytes, 12, "VP8X")) return null;
  const side = (at: number) => uint16Le(bytes, at) + byteAt(bytes, at + 2) * 0x10000 + 1;
  return { mimeType, width: side(24), height: side(27) };
}

/** Reads markers until it finds the one that contains the size. Each step advances, so the loop terminates. */
function jpeg(bytes: Uint8Array): ImageHeader | null {
  if (bytes[0] !== 0xff || bytes[1] !== 0xd8) return null;
  let at = 2;
  while (at + 9 <= bytes.length) {
    if (bytes[at] !== 0xff) return null;
    const marker = byteAt(bytes, at + 1);
    if (marker === 0xff) at++;
    else if (isFrame(marker))
      return { mimeType: "image/jpeg", width: uint16(bytes, at + 7), height: uint16(bytes, at + 5) };
    else if (marker === 0x01 || (marker >= 0xd0 && marker <= 0xd7)) at += 2;
    // Image data or the end of the file, so there is no size.
    else if (marker === 0xd9 || marker === 0xda || uint16(bytes, at + 2) < 2) return null;
    else at += 2 + uint16(bytes, at + 2);
  }
  return null;
}

/** Whether the marker starts a frame. Three markers in this range have other meanings. */
function isFrame(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
}

const imageMark = 0x2c;
const extensionMark = 0x21;

/** Whether a GIF has more than one frame. A damaged GIF is read up to the damage. Never throws. */
export function isAnimatedGif(bytes: Uint8Array): boolean {
  let frames = 0;
  let at = 13 + colourTable(bytes[10]);
  while (at < bytes.length) {
    if (bytes[at] === imageMark) {
      if (++frames > 1) return true;
      at = behindBlocks(bytes, at + 11 + colourTable(bytes[at + 9]));
    } else if (bytes[at] === extensionMark) at = behindBlocks(bytes, at + 2);
    else return false;
  }
  return false;
}

function colourTable(flags = 0): number {
  return (flags & 0x80) === 0 ? 0 : 3 * 2 ** ((flags & 7) + 1);
}

function behindBlocks(bytes: Uint8Array, from: number): number {
  let at = from;
  for (let size = bytes[at] ?? 0; size > 0; size = bytes[at] ?? 0) at += size + 1;
  return at + 1;
}
