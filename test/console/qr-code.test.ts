import { describe, expect, test } from "vitest";
import { encodeQr } from "../../console/src/ui/qr-code.ts";

/** Version 9 with error correction L, as in tables 7, 9 and D.1 of ISO/IEC 18004. */
const side = 53;
const centers = [6, 26, 46];
const blocks = { count: 2, data: 116, check: 30 };
const versionBits = "001001101010011001";
const linkOf = (length: number) => `http://127.0.0.1:8787/#code=skein_${"code".repeat(60)}`.slice(0, length);

/** Whether a module belongs to a finder, an alignment square, a timing line, or the format and version fields. */
function isReserved(x: number, y: number): boolean {
  const far = side - 9;
  if ((x <= 8 && y <= 8) || (x > far && y <= 8) || (x <= 8 && y > far)) return true;
  if (x === 6 || y === 6) return true;
  if ((y < 6 && x >= side - 11) || (x < 6 && y >= side - 11)) return true;
  return centers.some((cx) =>
    centers.some((cy) => {
      const isInFinder = (cx === 6 && cy !== 26) || (cy === 6 && cx !== 26);
      return !isInFinder && Math.abs(cx - x) <= 2 && Math.abs(cy - y) <= 2;
    }),
  );
}

/** Reads the codewords in the order in which a reader scans them, without the mask `(x + y) mod 3 = 0`. */
function readCodewords(rows: readonly (readonly boolean[])[]): number[] {
  const bits: string[] = [];
  const columns = [];
  for (let x = side - 1; x > 6; x -= 2) columns.push(x);
  for (let x = 5; x > 0; x -= 2) columns.push(x);
  for (const [index, right] of columns.entries())
    for (let step = 0; step < side; step += 1) {
      const y = index % 2 === 0 ? side - 1 - step : step;
      for (const x of [right, right - 1])
        if (!isReserved(x, y)) bits.push(rows[y]?.[x] === ((x + y) % 3 !== 0) ? "1" : "0");
    }
  return (bits.join("").match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2));
}

/** Powers of 2 in the field of 256 elements. */
const powers = Array.from({ length: 255 }, () => 1);
for (let at = 1; at < 255; at += 1) {
  const double = (powers[at - 1] ?? 0) * 2;
  powers[at] = double > 255 ? double ^ 0x11d : double;
}
const multiply = (a: number, b: number) =>
  a === 0 || b === 0 ? 0 : (powers[(powers.indexOf(a) + powers.indexOf(b)) % 255] ?? 0);

/** Returns what remains of a block at each root of its generator. All are 0 in a block without errors. */
const syndromes = (block: readonly number[]) =>
  powers.slice(0, blocks.check).map((root) => block.reduce((sum, word) => multiply(sum, root) ^ word, 0));

describe("the QR code of a link", () => {
  test.each([1, 40, 85, 116, 230])("of %i bytes is what a reader decodes, without errors", (length) => {
    const text = linkOf(length);
    const rows = encodeQr(text) ?? [];
    expect(rows.map((row) => row.length)).toEqual(Array.from({ length: side }, () => side));
    const words = readCodewords(rows);
    const at = (index: number, block: number) => words[index * blocks.count + block] ?? -1;
    const split = [0, 1].map((block) =>
      Array.from({ length: blocks.data + blocks.check }, (_, index) => at(index, block)),
    );
    for (const block of split) expect(new Set(syndromes(block))).toEqual(new Set([0]));
    const hex = Buffer.from(split.flatMap((block) => block.slice(0, blocks.data))).toString("hex");
    // Mode 4 is bytes. Their number takes 8 bits.
    expect(hex.slice(0, 3)).toBe(`4${length.toString(16).padStart(2, "0")}`);
    expect(Buffer.from(hex.slice(3, 3 + 2 * length), "hex").toString()).toBe(text);
  });

  test("has the finders, the timing lines, and the fields for version 9, level L and mask 3", () => {
    const rows = encodeQr(linkOf(85)) ?? [];
    const dark = (x: number, y: number) => (rows[y]?.[x] === true ? "1" : "0");
    const line = (points: readonly (readonly [number, number])[]) =>
      points.map(([x, y]) => dark(x, y)).join("");
    const count = (length: number) => Array.from({ length }, (_, index) => index);
    const finder = ["1111111", "1000001", "1011101", "1011101", "1011101", "1000001", "1111111"];
    for (const [left, top] of [
      [0, 0],
      [side - 7, 0],
      [0, side - 7],
    ] as const)
      expect(count(7).map((y) => line(count(7).map((x) => [left + x, top + y])))).toEqual(finder);
    for (const points of [
      count(side - 16).map((at) => [at + 8, 6] as const),
      count(side - 16).map((at) => [6, at + 8] as const),
    ])
      expect(line(points)).toBe("10".repeat(side).slice(0, side - 16));
    // The bits of level L and mask 3 in table C.1, once around the first finder and once at the other two.
    const format = "111100010011101";
    const aroundFirst = [...count(6), 7].map((x) => [x, 8] as const);
    expect(line([...aroundFirst, ...[8, 7, 5, 4, 3, 2, 1, 0].map((y) => [8, y] as const)])).toBe(format);
    expect(
      line([
        ...count(7).map((at) => [8, side - 1 - at] as const),
        ...count(8).map((at) => [side - 8 + at, 8] as const),
      ]),
    ).toBe(format);
    const version = count(18).map((at) => [Math.floor(at / 3), side - 11 + (at % 3)] as const);
    expect(line(version.toReversed())).toBe(versionBits);
    expect(line(version.toReversed().map(([x, y]) => [y, x] as const))).toBe(versionBits);
  });

  test("is absent if the link is too long", () => {
    expect(encodeQr("x".repeat(231))).toBe(null);
  });
});
