/** The first bytes of images of any size: the header without the pixel data. */

export function pngOf(width: number, height: number, length = 64): Buffer {
  const bytes = Buffer.alloc(Math.max(33, length));
  bytes.write("\x89PNG\r\n\x1a\n", 0, "latin1");
  bytes.writeUInt32BE(13, 8);
  bytes.write("IHDR", 12, "latin1");
  bytes.writeUInt32BE(width, 16);
  bytes.writeUInt32BE(height, 20);
  bytes.set([8, 6, 0, 0, 0], 24);
  return bytes;
}

/** Includes a segment before the frame, as cameras write it. */
export function jpegOf(width: number, height: number, before = 20): Buffer {
  const frame = Buffer.from([0xff, 0xc0, 0, 17, 8, 0, 0, 0, 0, 3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1]);
  frame.writeUInt16BE(height, 5);
  frame.writeUInt16BE(width, 7);
  const segment = Buffer.alloc(2 + before);
  segment.set([0xff, 0xe1]);
  segment.writeUInt16BE(before, 2);
  return Buffer.concat([Buffer.from([0xff, 0xd8]), segment, frame, Buffer.from([0xff, 0xda, 0, 8])]);
}

export function gifOf(width: number, height: number): Buffer {
  const bytes = Buffer.alloc(32);
  bytes.write("GIF89a", 0, "latin1");
  bytes.writeUInt16LE(width, 6);
  bytes.writeUInt16LE(height, 8);
  return bytes;
}

export function webpOf(width: number, height: number, kind: "VP8 " | "VP8L" | "VP8X" = "VP8X"): Buffer {
  const bytes = Buffer.alloc(40);
  bytes.write("RIFF", 0, "latin1");
  bytes.writeUInt32LE(32, 4);
  bytes.write(`WEBP${kind}`, 8, "latin1");
  if (kind === "VP8X") {
    bytes.writeUIntLE(width - 1, 24, 3);
    bytes.writeUIntLE(height - 1, 27, 3);
  } else if (kind === "VP8 ") {
    bytes.set([0x9d, 0x01, 0x2a], 23);
    bytes.writeUInt16LE(width, 26);
    bytes.writeUInt16LE(height, 28);
  } else {
    bytes[20] = 0x2f;
    bytes.writeUInt32LE((width - 1 + (height - 1) * 0x4000) >>> 0, 21);
  }
  return bytes;
}
