import type { Sharp } from "sharp";
import { readImageHeader } from "../core/image-header.ts";
import type { ImagePort } from "../transcript/contract.ts";

type Shrink = NonNullable<ImagePort["shrink"]>;
type LoadSharp = () => Promise<typeof import("sharp")["default"]>;
type Small = { readonly bytes: Uint8Array; readonly mimeType: string };

/** A file of a few bytes can declare billions of pixels. */
const maxPixels = 100_000_000;
const maxSeconds = 30;
const qualities = [85, 70, 50, 30];
const minSide = 16;
const shrinkFactor = 0.7;

/**
 * Shrinks an image to the limits for its longest side and its size in bytes. Only the first frame of an animation is
 * kept. Returns `null` if the image cannot be read, or `not_installed` if the optional package `sharp` is missing.
 */
export const shrinkImage: Shrink = shrinkerWith(async () => (await import("sharp")).default);

/** Creates the function that shrinks images. `load` loads `sharp` when it is first needed. */
export function shrinkerWith(load: LoadSharp): Shrink {
  return async ({ bytes }, { maxSide, maxBytes }) => {
    const header = readImageHeader(bytes);
    if (header === null || header.width * header.height > maxPixels) return null;
    const isDrawn = header.mimeType === "image/png" || header.mimeType === "image/gif";
    const sharp = await load().catch(() => null);
    if (sharp === null) return "not_installed";
    try {
      const { data, info } = await within(
        sharp(bytes, { limitInputPixels: maxPixels, failOn: "error" }),
        maxSide,
      )
        .timeout({ seconds: maxSeconds })
        .autoOrient()
        .toColourspace("srgb")
        .raw({ depth: "uchar" })
        .toBuffer({ resolveWithObject: true });
      const isClear = info.channels === 2 || info.channels === 4;
      const longest = Math.max(info.width, info.height);
      for (let side = longest; side >= Math.min(longest, minSide); side = Math.floor(side * shrinkFactor)) {
        const small = await encode(within(sharp(data, { raw: info }), side), maxBytes, isDrawn || isClear);
        if (small !== null) return small;
      }
      return null;
    } catch {
      // The image is unreadable or too large for sharp.
      return null;
    }
  };
}

function within(image: Sharp, side: number): Sharp {
  return image.resize({ width: side, height: side, fit: "inside", withoutEnlargement: true });
}

/** Encodes as PNG if requested and small enough, otherwise as JPEG at the highest quality that fits. */
async function encode(image: Sharp, maxBytes: number, asPng: boolean): Promise<Small | null> {
  if (asPng) {
    const bytes = await image.clone().png({ compressionLevel: 9 }).toBuffer();
    if (bytes.length <= maxBytes) return { bytes, mimeType: "image/png" };
  }
  for (const quality of qualities) {
    const bytes = await image.clone().flatten({ background: "white" }).jpeg({ quality }).toBuffer();
    if (bytes.length <= maxBytes) return { bytes, mimeType: "image/jpeg" };
  }
  return null;
}
