import type { Sharp } from "sharp";
import { readImageHeader } from "../core/image-header.ts";
import type { ImagePort } from "../transcript/contract.ts";

type Shrink = NonNullable<ImagePort["shrink"]>;
type LoadSharp = () => Promise<typeof import("sharp")["default"]>;
type Small = { readonly bytes: Uint8Array; readonly mimeType: string };

/** More than any camera takes; a few bytes can claim to be billions. */
const mostPixels = 100_000_000;
const mostSeconds = 30;
const qualities = [85, 70, 50, 30];
const smallestSide = 16;
const nextSide = 0.7;

/**
 * Makes an image fit: upright, its longest side and its bytes within the limits, of an animation the first frame.
 * `null` where it cannot be read, `not_installed` where the optional package `sharp` is missing.
 */
export const shrinkImage: Shrink = shrinkerWith(async () => (await import("sharp")).default);

/** The same with another way to get at `sharp`, which is loaded when it is first needed. */
export function shrinkerWith(load: LoadSharp): Shrink {
  return async ({ bytes }, { maxSide, maxBytes }) => {
    const header = readImageHeader(bytes);
    if (header === null || header.width * header.height > mostPixels) return null;
    const isDrawn = header.mimeType === "image/png" || header.mimeType === "image/gif";
    const sharp = await load().catch(() => null);
    if (sharp === null) return "not_installed";
    try {
      const { data, info } = await within(
        sharp(bytes, { limitInputPixels: mostPixels, failOn: "error" }),
        maxSide,
      )
        .timeout({ seconds: mostSeconds })
        .autoOrient()
        .toColourspace("srgb")
        .raw({ depth: "uchar" })
        .toBuffer({ resolveWithObject: true });
      const isClear = info.channels === 2 || info.channels === 4;
      const longest = Math.max(info.width, info.height);
      for (let side = longest; side >= Math.min(longest, smallestSide); side = Math.floor(side * nextSide)) {
        const small = await encoded(within(sharp(data, { raw: info }), side), maxBytes, isDrawn || isClear);
        if (small !== null) return small;
      }
      return null;
    } catch {
      // Not readable, or too much for it: all the same to the caller.
      return null;
    }
  };
}

function within(image: Sharp, side: number): Sharp {
  return image.resize({ width: side, height: side, fit: "inside", withoutEnlargement: true });
}

/** As PNG where that is fitting and fits, else as JPEG, as good as fits. */
async function encoded(image: Sharp, maxBytes: number, asPng: boolean): Promise<Small | null> {
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
