/** What the first bytes of an image say of it. */
export interface ImageHead {
  readonly mimeType: string;
  /** 0 where the format does not say it at its beginning. */
  readonly width: number;
  readonly height: number;
}

/** `null`: the bytes are no image of a kind that providers take. */
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

/** The size is in the first start-of-frame segment, wherever that is. */
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
