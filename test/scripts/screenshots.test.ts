import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { inflateSync } from "node:zlib";
import { describe, expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");

/** The images that the README and the docs show or link to. */
const images = new Set(
  globSync(["README.md", "docs/**/*.md"], { cwd: root }).flatMap((page) =>
    [...readFileSync(join(root, page), "utf8").matchAll(/\]\(([^)\s]+\.png)\)/g)].map(([, path = ""]) =>
      join(dirname(page), path),
    ),
  ),
);

/** Reads a PNG file. Throws if its pixels are incomplete. */
function readPng(file: string): { width: number; height: number; pixels: Buffer } {
  const bytes = readFileSync(file);
  expect(bytes.toString("latin1", 0, 8), file).toBe("\x89PNG\r\n\x1a\n");
  const data: Buffer[] = [];
  let name = "";
  for (let at = 8; name !== "IEND"; ) {
    const length = bytes.readUInt32BE(at);
    name = bytes.toString("latin1", at + 4, at + 8);
    if (name === "IDAT") data.push(bytes.subarray(at + 8, at + 8 + length));
    at += 12 + length;
  }
  return {
    width: bytes.readUInt32BE(16),
    height: bytes.readUInt32BE(20),
    pixels: inflateSync(Buffer.concat(data)),
  };
}

describe("the screenshots in the README and the docs", () => {
  test.each([...images])("%s is a whole image of a page", (image) => {
    const { width, height, pixels } = readPng(join(root, image));
    expect(width).toBeGreaterThanOrEqual(360);
    expect(height).toBeGreaterThanOrEqual(600);
    expect(pixels.length).toBeGreaterThan(width * height);
    // An empty page has hardly any different bytes.
    expect(new Set(pixels.filter((_, at) => at % 101 === 0)).size).toBeGreaterThan(32);
  });

  test("are all PNG files of their folder", () => {
    const files = globSync("docs/images/*.png", { cwd: root });
    expect(files.sort()).toEqual([...images].sort());
  });
});
