/** What a data URL says to be, and what its bytes are. */

export interface DataImage {
  /** As named in the URL; `image/jpg` counts as `image/jpeg`. */
  readonly mediaType: string;
  /** By the first bytes; `null`: no image that the providers take. */
  readonly actual: string | null;
  readonly bytes: number;
  readonly isAnimated: boolean;
}

const longestHead = 100;

/** `null`: not a data URL in base64. */
export function readDataUrl(url: string): DataImage | null {
  const comma = url.slice(0, longestHead).indexOf(",");
  const head = comma < 0 ? "" : url.slice("data:".length, comma).toLowerCase();
  if (!head.endsWith(";base64")) return null;
  const padding = url.endsWith("==") ? 2 : url.endsWith("=") ? 1 : 0;
  const data = url.slice(comma + 1, url.length - padding);
  if (data === "" || (data.length + padding) % 4 !== 0 || /[^A-Za-z0-9+/]/.test(data)) return null;
  const named = head.slice(0, head.indexOf(";"));
  const actual = actualType(Buffer.from(data.slice(0, 32), "base64"));
  return {
    mediaType: named === "image/jpg" ? "image/jpeg" : named,
    actual,
    bytes: Math.floor((data.length * 3) / 4),
    isAnimated: actual === "image/gif" && gifFrames(Buffer.from(data, "base64")) > 1,
  };
}

const signatures: readonly (readonly [type: string, signature: string])[] = [
  ["image/png", "\x89PNG\r\n\x1a\n"],
  ["image/jpeg", "\xff\xd8\xff"],
  ["image/gif", "GIF87a"],
  ["image/gif", "GIF89a"],
];

function actualType(head: Buffer): string | null {
  const text = head.toString("latin1");
  if (text.startsWith("RIFF") && text.slice(8, 12) === "WEBP") return "image/webp";
  return signatures.find(([, signature]) => text.startsWith(signature))?.[0] ?? null;
}

const imageMark = 0x2c;
const extensionMark = 0x21;

/** Frames of a GIF, two at most: more makes no difference. A damaged file ends where it can no longer be read. */
function gifFrames(gif: Buffer): number {
  let frames = 0;
  let at = 13 + colourTable(gif[10]);
  while (at < gif.length && frames < 2) {
    if (gif[at] === imageMark) {
      frames++;
      at = afterBlocks(gif, at + 11 + colourTable(gif[at + 9]));
    } else if (gif[at] === extensionMark) at = afterBlocks(gif, at + 2);
    else break;
  }
  return frames;
}

function colourTable(flags = 0): number {
  return (flags & 0x80) === 0 ? 0 : 3 * 2 ** ((flags & 7) + 1);
}

function afterBlocks(gif: Buffer, start: number): number {
  let at = start;
  for (let size = gif[at] ?? 0; size > 0; size = gif[at] ?? 0) at += size + 1;
  return at + 1;
}
