import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { gifOf, jpegOf, pngOf, webpOf } from "../../test/support/images.ts";
import { readImageHeader } from "./image-header.ts";

const side = fc.integer({ min: 1, max: 16_383 });
const makers = [
  ["image/png", pngOf],
  ["image/jpeg", jpegOf],
  ["image/gif", gifOf],
  ["image/webp", (width: number, height: number) => webpOf(width, height, "VP8X")],
  ["image/webp", (width: number, height: number) => webpOf(width, height, "VP8 ")],
  ["image/webp", (width: number, height: number) => webpOf(width, height, "VP8L")],
] as const;

describe("image headers", () => {
  test.each(makers)("%s is recognized by its bytes, with its size", (mimeType, make) => {
    fc.assert(
      fc.property(side, side, (width, height) => {
        expect(readImageHeader(make(width, height))).toEqual({ mimeType, width, height });
      }),
    );
  });

  test("the size of a JPEG may follow any number of other segments", () => {
    const many = [
      jpegOf(1, 1, 60_000).subarray(0, 60_004),
      ...[0xe2, 0xc4, 0xdb, 0xfe].map((marker) => segment(marker, 65_535)),
    ];
    const rest = jpegOf(640, 480).subarray(2);
    expect(readImageHeader(Buffer.concat([...many, Buffer.from([0xff, 0xff, 0xff]), rest]))).toMatchObject({
      width: 640,
      height: 480,
    });
  });

  test.each([
    ["nothing", ""],
    ["text", "hello, this is no image at all"],
    ["a bitmap", "BM\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"],
    ["another RIFF file", "RIFF\x20\0\0\0WAVEfmt \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"],
    ["a JPEG without a frame", "\xff\xd8\xff\xda\0\x08\0\0\0\0\0\0\0"],
    ["a JPEG whose segment is shorter than its length", "\xff\xd8\xff\xe0\0\x01\0\0\0\0\0\0\0"],
    ["SVG", '<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"/>'],
  ])("%s is not an image", (_, text) => {
    expect(readImageHeader(Buffer.from(text, "latin1"))).toBeNull();
  });

  test("a size of zero is invalid", () => {
    for (const bytes of [pngOf(0, 10), jpegOf(10, 0), gifOf(0, 0), webpOf(0, 7, "VP8 ")])
      expect(readImageHeader(bytes)).toBeNull();
  });
});

describe("hostile bytes", () => {
  const beginnings = makers.map(([, make]) => make(300, 700));

  test("for any bytes, reading gives a header or null, and never throws", () => {
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc
        .tuple(fc.constantFrom(...beginnings), fc.uint8Array({ maxLength: 60 }), fc.nat(64))
        .map(([begin, noise, at]) => Buffer.concat([begin.subarray(0, at), noise])),
    );
    fc.assert(
      fc.property(bytes, (each) => {
        const header = readImageHeader(each);
        if (header === null) return;
        expect(header.width).toBeGreaterThan(0);
        expect(header.height).toBeGreaterThan(0);
      }),
    );
  });

  test("a truncated image gives null or the same header", () => {
    for (const whole of beginnings) {
      const header = readImageHeader(whole);
      for (let length = 0; length < whole.length; length++) {
        const cut = readImageHeader(whole.subarray(0, length));
        if (cut !== null) expect({ ...cut, length }).toEqual({ ...header, length });
      }
    }
  });

  test("reads ten megabytes of markers once", () => {
    const fill = Buffer.alloc(10_000_000, 0xff);
    fill[1] = 0xd8;
    expect(readImageHeader(fill)).toBeNull();
    const restarts = Buffer.alloc(10_000_000).fill(Buffer.from([0xff, 0xd0]));
    restarts[1] = 0xd8;
    expect(readImageHeader(restarts)).toBeNull();
  });
});

function segment(marker: number, length: number): Buffer {
  const bytes = Buffer.alloc(length + 2);
  bytes.set([0xff, marker]);
  bytes.writeUInt16BE(length, 2);
  return bytes;
}
