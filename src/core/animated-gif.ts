const imageMark = 0x2c;
const extensionMark = 0x21;

/** Whether a GIF has more than one frame. A damaged one ends where it can no longer be read. Never throws. */
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
