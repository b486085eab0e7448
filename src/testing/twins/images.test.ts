import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { images } from "../../../test/support/twin-fetch.ts";
import { imageData } from "../../../test/support/twins.ts";
import { decodeBase64, decodeProtoBytes, readDataUrl, readImageHead } from "./images.ts";
import { measureRequest, splitInShortPieces, sseEvent } from "./shared.ts";

describe("bytes", () => {
  describe("bytes and texts", () => {
    test("valid base64 is decoded, in one alphabet or in both", () => {
      fc.assert(
        fc.property(fc.uint8Array(), fc.nat(), fc.constantFrom(" ", "!", "\n", "é"), (bytes, at, slip) => {
          const text = Buffer.from(bytes).toString("base64");
          const url = Buffer.from(bytes).toString("base64url");
          expect(decodeBase64(text)).toEqual(Buffer.from(bytes));
          expect(decodeProtoBytes(text)).toEqual(Buffer.from(bytes));
          expect(decodeProtoBytes(url)).toEqual(Buffer.from(bytes));
          if (url !== text) expect(decodeBase64(url)).toBeNull();
          const place = text.length === 0 ? 0 : at % text.replaceAll("=", "").length;
          const broken = `${text.slice(0, place)}${slip}${text.slice(place + 1)}`;
          if (text !== "") expect(decodeBase64(broken)).toBeNull();
        }),
      );
      for (const text of ["A=AA", "AAA", "=", "===="]) expect(decodeBase64(text)).toBeNull();
      expect(decodeProtoBytes("AAAAA")).toBeNull();
    });

    test.each(["png", "jpeg", "gif", "webp"] as const)(
      "the header of a %s gives its type and size",
      (kind) => {
        const bytes = Buffer.from(imageData(kind, 1234, 567), "base64");
        expect(readImageHead(bytes)).toEqual({ mimeType: `image/${kind}`, width: 1234, height: 567 });
        for (let length = 0; length < 10; length += 1)
          expect(readImageHead(bytes.subarray(0, length))).toBeNull();
      },
    );

    test("any bytes can be inspected", () => {
      const starts = ["png", "jpeg", "gif", "webp"].map((kind) =>
        Buffer.from(imageData(kind as "png", 9, 9), "base64"),
      );
      fc.assert(
        fc.property(
          fc.constantFrom(...starts),
          fc.nat(40),
          fc.uint8Array({ maxLength: 60 }),
          (start, keep, rest) => {
            readImageHead(Buffer.concat([start.subarray(0, keep), rest]));
          },
        ),
      );
    });

    test("text is split into at least two pieces that make it up, and no pair is split", () => {
      fc.assert(
        fc.property(fc.string({ unit: "grapheme" }), (text) => {
          const pieces = splitInShortPieces(text);
          expect(pieces.join("")).toBe(text);
          expect(pieces.every((piece) => piece !== "" && piece.isWellFormed())).toBe(true);
          if ([...text].length > 1) expect(pieces.length).toBeGreaterThan(1);
        }),
      );
      expect(sseEvent({ a: "b\n\nc" }, { name: "x" })).toBe('event: x\ndata: {"a":"b\\n\\nc"}\n\n');
    });

    test("a value is measured close to its JSON size, and half a pair is found anywhere", () => {
      fc.assert(
        fc.property(fc.jsonValue(), (value) => {
          const length = Buffer.byteLength(JSON.stringify(value));
          expect(measureRequest(value).bytes).toBeLessThan(length * 2 + 10);
          expect(measureRequest({ value, deep: [{ "\ud800": 1 }] }).isWellFormed).toBe(false);
        }),
      );
      expect(measureRequest(["\ude00"]).isWellFormed).toBe(false);
      expect(measureRequest({ text: "a".repeat(1000) }).text).toBe(1004);
    });
  });
});

describe("data URLs", () => {
  test.each([
    ["png", images.png, "image/png"],
    ["jpeg", images.jpeg, "image/jpeg"],
    ["jpg", images.jpeg.replace("jpeg", "JPG"), "image/jpeg"],
    ["webp", images.webp, "image/webp"],
    ["gif", images.gif, "image/gif"],
  ])("[TWA1] a %s is read from its data URL", (_, url, type) => {
    const bytes = Buffer.from(url.slice(url.indexOf(",") + 1), "base64").length;
    expect(readDataUrl(url)).toEqual({ mediaType: type, actual: type, bytes, isAnimated: false });
  });

  test("[TWA1] a file that is not an image is recognized by its bytes, an animated GIF by its frames", () => {
    expect(readDataUrl(images.of("image/png", Buffer.from("hello")))?.actual).toBeNull();
    expect(readDataUrl(images.animatedGif)?.isAnimated).toBe(true);
    const cut = Buffer.from(images.animatedGif.slice(22), "base64").subarray(0, 20);
    expect(readDataUrl(images.of("image/gif", cut))?.isAnimated).toBe(false);
  });

  test.each([
    ["not in base64", "data:image/png,iVBORw0KGgoA"],
    ["without a comma", "data:image/png;base64"],
    ["with an invalid length", "data:image/png;base64,AAAAA"],
    ["with other characters", "data:image/png;base64,AA-_"],
    ["with only padding", "data:image/png;base64,=="],
  ])("[TWA1] a data URL %s is invalid", (_, url) => {
    expect(readDataUrl(url)).toBeNull();
  });
});
