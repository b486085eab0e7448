/**
 * A QR code for a link of at most 230 bytes (ISO/IEC 18004). Always uses version 9 in byte mode with error correction L
 * and mask 3. Readers accept any version and mask, and a gateway's links all have about the same length.
 */

const size = 53;
const blockData = 116;
const blockCheck = 30;
const mostBytes = 230;
/** The centers of the small squares. The large squares are in the other corners. */
const alignments = [
  [26, 6],
  [6, 26],
  [26, 26],
  [46, 26],
  [26, 46],
  [46, 46],
] as const;
/** Error correction L and mask 3, followed by the error correction of these bits. */
const formatBits = 0b111100010011101;
const versionBits = 0b001001101010011001;

/** Returns rows of modules, in which `true` is dark, or `null` if the text is too long. */
export function encodeQr(text: string): readonly (readonly boolean[])[] | null {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length > mostBytes) return null;
  const words = toCodewords(bytes);
  const generator = generatorPolynomial();
  const blocks = [words.slice(0, blockData), words.slice(blockData)];
  const checks = blocks.map((block) => remainder(block, generator));
  // Takes one byte from each block in turn.
  const turns = [...range(blockData).flatMap((at) => blocks.map((each) => each[at] ?? 0))];
  turns.push(...range(blockCheck).flatMap((at) => checks.map((each) => each[at] ?? 0)));
  return draw(turns.flatMap((byte) => toBits(byte, 8)));
}

function range(length: number): number[] {
  return Array.from({ length }, (_, at) => at);
}

function toBits(value: number, length: number): boolean[] {
  return range(length).map((at) => ((value >>> (length - 1 - at)) & 1) === 1);
}

/** The mode, the length, the bytes, and padding up to the capacity. */
function toCodewords(bytes: Uint8Array): number[] {
  // Mode 4 and the length take one and a half bytes, so every byte is split between two words.
  const nibbles = [
    4,
    bytes.length >> 4,
    bytes.length & 15,
    ...[...bytes].flatMap((byte) => [byte >> 4, byte & 15]),
    0,
  ];
  const words: number[] = [];
  for (let at = 0; at < nibbles.length; at += 2)
    words.push(((nibbles[at] ?? 0) << 4) | (nibbles[at + 1] ?? 0));
  for (let pad = 0xec; words.length < blockData * 2; pad ^= 0xec ^ 0x11) words.push(pad);
  return words;
}

/** Multiplies in the field of 256 elements with the polynomial 0x11d. */
function multiply(a: number, b: number): number {
  let product = 0;
  for (let bit = 7; bit >= 0; bit -= 1) {
    product = (product << 1) ^ ((product >>> 7) * 0x11d);
    product ^= ((b >>> bit) & 1) * a;
  }
  return product;
}

function generatorPolynomial(): readonly number[] {
  let result = [...range(blockCheck - 1).map(() => 0), 1];
  let root = 1;
  for (let step = 0; step < blockCheck; step += 1) {
    result = result.map((each, at) => multiply(each, root) ^ (result[at + 1] ?? 0));
    root = multiply(root, 2);
  }
  return result;
}

function remainder(data: readonly number[], generator: readonly number[]): number[] {
  let result = generator.map(() => 0);
  for (const byte of data) {
    const factor = byte ^ (result[0] ?? 0);
    result = generator.map((each, at) => multiply(each, factor) ^ (result[at + 1] ?? 0));
  }
  return result;
}

function draw(bits: readonly boolean[]): boolean[][] {
  const grid = range(size).map(() => range(size).map((): boolean | null => null));
  const set = (x: number, y: number, isDark: boolean) => {
    const row = grid[y];
    if (row !== undefined && x >= 0 && x < size) row[x] = isDark;
  };
  const square = (x: number, y: number, reach: number, isDark: (ring: number) => boolean) => {
    for (let dy = -reach; dy <= reach; dy += 1)
      for (let dx = -reach; dx <= reach; dx += 1)
        set(x + dx, y + dy, isDark(Math.max(Math.abs(dx), Math.abs(dy))));
  };
  for (const at of range(size)) {
    set(6, at, at % 2 === 0);
    set(at, 6, at % 2 === 0);
  }
  for (const [x, y] of alignments) square(x, y, 2, (ring) => ring !== 1);
  const isFinder = (ring: number) => ring !== 2 && ring !== 4;
  square(3, 3, 4, isFinder);
  square(size - 4, 3, 4, isFinder);
  square(3, size - 4, 4, isFinder);
  for (const at of range(15)) {
    const isDark = ((formatBits >>> at) & 1) === 1;
    if (at < 8) set(8, at < 6 ? at : at + 1, isDark);
    else set(at === 8 ? 7 : 14 - at, 8, isDark);
    if (at < 8) set(size - 1 - at, 8, isDark);
    else set(8, size - 15 + at, isDark);
  }
  set(8, size - 8, true);
  for (const at of range(18)) {
    const isDark = ((versionBits >>> at) & 1) === 1;
    set(size - 11 + (at % 3), Math.floor(at / 3), isDark);
    set(Math.floor(at / 3), size - 11 + (at % 3), isDark);
  }
  // Goes up and down in columns of two, starting on the right. The column with the timing marks is skipped.
  let next = 0;
  for (let right = size - 1; right >= 1; right -= right === 8 ? 3 : 2) {
    for (const step of range(size)) {
      const y = ((right + 1) & 2) === 0 ? size - 1 - step : step;
      for (const x of [right, right - 1]) {
        if (grid[y]?.[x] !== null) continue;
        set(x, y, (bits[next] ?? false) !== ((x + y) % 3 === 0));
        next += 1;
      }
    }
  }
  return grid as boolean[][];
}
