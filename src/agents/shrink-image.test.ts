import sharp from "sharp";
import { describe, expect, test, vi } from "vitest";
import { pngOf } from "../../test/support/images.ts";
import { readImageHeader } from "../core/image-header.ts";
import { shrinkerWith, shrinkImage } from "./shrink-image.ts";

const limits = { maxSide: 300, maxBytes: 1_000_000 };
const colours = { red: { r: 220, g: 30, b: 20 }, blue: { r: 10, g: 40, b: 230 } };

/** Red on the left, blue on the right. */
function halves(width: number, height: number) {
  const right = { create: { width: width >> 1, height, channels: 3 as const, background: colours.blue } };
  return sharp({ create: { width, height, channels: 3, background: colours.red } }).composite([
    { input: right, left: width - (width >> 1), top: 0 },
  ]);
}

/** Noise, which does not compress in any format. */
function noise(width: number, height: number) {
  const create = { width, height, channels: 3 as const, background: "grey" };
  return sharp({ create: { ...create, noise: { type: "gaussian", mean: 128, sigma: 60 } } });
}

async function shrunk(bytes: Uint8Array, { maxSide, maxBytes } = limits) {
  const small = await shrinkImage({ bytes, mimeType: "image/png" }, { maxSide, maxBytes });
  if (small === null || small === "not_installed") throw new Error("nothing came back");
  const header = readImageHeader(small.bytes);
  expect(header?.mimeType).toBe(small.mimeType);
  expect(Math.max(header?.width ?? 0, header?.height ?? 0)).toBeLessThanOrEqual(maxSide);
  expect(small.bytes.length).toBeLessThanOrEqual(maxBytes);
  return { ...small, width: header?.width, height: header?.height };
}

async function pixel(bytes: Uint8Array, left: number, top: number): Promise<"red" | "blue" | "other"> {
  const [r = 0, , b = 0] = await sharp(bytes).extract({ left, top, width: 1, height: 1 }).raw().toBuffer();
  return r > 150 && b < 100 ? "red" : b > 150 && r < 100 ? "blue" : "other";
}

describe("an image that is too large", () => {
  test.each(["png", "jpeg", "gif", "webp"] as const)(
    "%s: fits the maximum sides, in proportion",
    async (format) => {
      const bytes = await halves(800, 400).toFormat(format).toBuffer();
      expect(readImageHeader(bytes)).toEqual({ mimeType: `image/${format}`, width: 800, height: 400 });
      const small = await shrunk(bytes);
      expect([small.width, small.height]).toEqual([300, 150]);
      expect(small.mimeType).toBe(format === "png" || format === "gif" ? "image/png" : "image/jpeg");
      expect(await pixel(small.bytes, 20, 75)).toBe("red");
      expect(await pixel(small.bytes, 280, 75)).toBe("blue");
    },
  );

  test("header and decoder agree on lossy, lossless and extended WebP", async () => {
    const make = [
      halves(33, 77).webp(),
      halves(33, 77).webp({ lossless: true }),
      halves(33, 77).ensureAlpha(0.5).webp(),
    ];
    for (const each of make)
      expect(readImageHeader(await each.toBuffer())).toEqual({
        mimeType: "image/webp",
        width: 33,
        height: 77,
      });
  });

  test("is rotated according to its EXIF data", async () => {
    const lying = await halves(800, 400).withMetadata({ orientation: 6 }).jpeg().toBuffer();
    const small = await shrunk(lying);
    expect([small.width, small.height]).toEqual([150, 300]);
    expect(await pixel(small.bytes, 75, 20)).toBe("red");
    expect(await pixel(small.bytes, 75, 280)).toBe("blue");
    expect((await sharp(small.bytes).metadata()).orientation).toBeUndefined();
  });

  test("too many bytes: reduces quality first, then size; a PNG becomes a JPEG if needed", async () => {
    const bytes = await noise(400, 400).png().toBuffer();
    const less = await shrunk(bytes, { maxSide: 400, maxBytes: 60_000 });
    expect([less.mimeType, less.width]).toEqual(["image/jpeg", 400]);
    const least = await shrunk(bytes, { maxSide: 400, maxBytes: 8000 });
    expect(least.width).toBeLessThan(400);
    expect(await shrinkImage({ bytes, mimeType: "image/png" }, { maxSide: 400, maxBytes: 100 })).toBeNull();
  });

  test("keeps transparency if it fits, otherwise uses a white background", async () => {
    const background = { r: 0, g: 0, b: 0, alpha: 0 };
    const clear = await sharp({ create: { width: 800, height: 400, channels: 4, background } })
      .webp()
      .toBuffer();
    const small = await shrunk(clear);
    expect(small.mimeType).toBe("image/png");
    expect((await sharp(small.bytes).metadata()).hasAlpha).toBe(true);
    const noisy = await noise(400, 400).ensureAlpha(0).png().toBuffer();
    const white = await shrunk(noisy, { maxSide: 400, maxBytes: 20_000 });
    expect(white.mimeType).toBe("image/jpeg");
    expect([
      ...(await sharp(white.bytes).extract({ left: 9, top: 9, width: 1, height: 1 }).raw().toBuffer()),
    ]).toEqual([255, 255, 255]);
  });

  test("reads greyscale, 16-bit and CMYK images", async () => {
    const all = [halves(800, 400).greyscale().png(), halves(800, 400).toColourspace("rgb16").png()];
    const cmyk = halves(800, 400).toColourspace("cmyk").jpeg();
    for (const each of [...all, cmyk]) expect((await shrunk(await each.toBuffer())).width).toBe(300);
  });

  test("uses the first frame of an animation", async () => {
    const frames = await Promise.all(
      [colours.red, colours.blue].map((background) =>
        sharp({ create: { width: 600, height: 600, channels: 3, background } })
          .png()
          .toBuffer(),
      ),
    );
    const moving = await sharp(frames, { join: { animated: true } })
      .gif()
      .toBuffer();
    expect((await sharp(moving).metadata()).pages).toBe(2);
    const small = await shrunk(moving);
    expect([small.width, small.height]).toEqual([300, 300]);
    expect(await pixel(small.bytes, 150, 150)).toBe("red");
  });

  test("the same image gives the same bytes, so that provider caches stay valid", async () => {
    const bytes = await noise(500, 500).jpeg().toBuffer();
    expect((await shrunk(bytes)).bytes).toEqual((await shrunk(bytes)).bytes);
  });
});

describe("images that cannot be shrunk", () => {
  test.each([
    ["no image", Buffer.from("hello")],
    ["a header without a picture", pngOf(2000, 2000)],
    ["SVG, which could load external files", Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>')],
  ])("%s: null", async (_, bytes) => {
    expect(await shrinkImage({ bytes, mimeType: "image/png" }, limits)).toBeNull();
  });

  test("a truncated picture gives null", async () => {
    const whole = await noise(600, 600).png().toBuffer();
    const bytes = whole.subarray(0, whole.length >> 1);
    expect(await shrinkImage({ bytes, mimeType: "image/png" }, limits)).toBeNull();
  });

  test("an image that claims to be enormous is refused before anything is loaded", async () => {
    const load = vi.fn();
    expect(
      await shrinkerWith(load)({ bytes: pngOf(60_000, 60_000), mimeType: "image/png" }, limits),
    ).toBeNull();
    expect(load).not.toHaveBeenCalled();
  });

  test("reports that sharp is missing", async () => {
    const missing = shrinkerWith(() => Promise.reject(new Error("Cannot find package 'sharp'")));
    const bytes = await halves(800, 400).png().toBuffer();
    expect(await missing({ bytes, mimeType: "image/png" }, limits)).toBe("not_installed");
  });
});
