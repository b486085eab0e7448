import fc from "fast-check";
import { countTokens as countCl100k } from "gpt-tokenizer/encoding/cl100k_base";
import { countTokens as countO200k } from "gpt-tokenizer/encoding/o200k_base";
import { describe, expect, test } from "vitest";
import { tokenSamples } from "../../test/support/token-samples.ts";
import { textTokens, tokenTable } from "./text-tokens.ts";
import { accented, classOf, computeTransition, firstState } from "./tokenizer-states.ts";

const samples = tokenSamples();
const real = { o200k: countO200k, cl100k: countCl100k };
const vocabularies = ["o200k", "cl100k"] as const;
const mostOff = 0.15;
const figures =
  "arabic -1 1, base64 -2 -7, chinese 3 1, english 2 2, french 1 -3, german -1 -4, hebrew 7 0, hex 5 7, hindi 0 -2, " +
  "japanese 3 4, json 1 1, korean -1 -5, markdown -2 -2, mixed 1 2, python 5 5, russian 1 1, spanish -3 -7, " +
  "thai -4 -3, traditional -1 -1, typescript 3 5, vietnamese -1 -4";

/** Returns the estimate's error relative to the real count. */
function off(text: string, vocabulary: "o200k" | "cl100k"): number {
  return textTokens(text, vocabulary) / real[vocabulary](text) - 1;
}

describe("compared with real tokenizers", () => {
  test("the samples cover every kind, several times, and are long enough", () => {
    const kinds = Map.groupBy(samples, ({ kind }) => kind);
    const several =
      "english chinese japanese korean russian typescript python json base64 markdown mixed".split(" ");
    for (const kind of several) expect(kinds.get(kind)?.length).toBeGreaterThanOrEqual(3);
    for (const kind of "arabic hebrew thai hindi traditional vietnamese german french spanish hex".split(" "))
      expect(kinds.has(kind)).toBe(true);
    expect(samples.filter(({ text }) => text.length < 1500).map(({ name }) => name)).toEqual([]);
  });

  test.each(samples)("$name is within 15 %", ({ text }) => {
    for (const vocabulary of vocabularies)
      expect(Math.abs(off(text, vocabulary)), vocabulary).toBeLessThanOrEqual(mostOff);
  });

  /** Contains the exact figures so that the test fails if any of them changes. */
  test("the deviation of each kind, in percent of o200k and of cl100k", () => {
    const rows = [...Map.groupBy(samples, ({ kind }) => kind)].map(([kind, some]) => {
      const all = some.map(({ text }) => text).join("\n");
      const percent = vocabularies.map((vocabulary) => Math.round(off(all, vocabulary) * 100));
      return `${kind} ${percent.join(" ")}`;
    });
    expect(rows.join(", ")).toBe(figures);
  });

  test.each([
    [
      "digits",
      Array.from({ length: 300 }, (_, index) => (index * 7919 + 13) ** 2 % 10 ** (index % 9)).join(" "),
    ],
    ["emoji", "😀 😂 👍 🎉 ❤️ 🙏 🔥 ✅ 🚀 😊 🤔 👀 💡 ⚠️ 📷 🙇 ⭐ 👇 🎂 🍎 🐱 🌸 🗾 🚄 🍣 ".repeat(10)],
    ["indentation", "if a:\n    if b:\n        if c:\n            d\n".repeat(40)],
    ["rules and boxes", "=====\n─────\n| a | b |\n|---|---|\n├── c\n└── d\n".repeat(30)],
    ["UUIDs", Array.from({ length: 60 }, (_, index) => uuid(index)).join("\n")],
    ["JSON in JSON", JSON.stringify(JSON.stringify({ a: [1, "b", { c: null }], d: { e: true } })).repeat(30)],
  ])("%s: within 25 %%", (_, text) => {
    for (const vocabulary of vocabularies)
      expect(Math.abs(off(text, vocabulary)), vocabulary).toBeLessThanOrEqual(0.25);
  });
});

function uuid(seed: number): string {
  const hex = Array.from({ length: 32 }, (_, index) =>
    ((seed * 31 + index * 17 + seed * index) % 16).toString(16),
  );
  return hex.join("").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

const classAt = (char: string) => classOf[char.charCodeAt(0)] as number;
const isPlain = (text: string) => !Array.from(text, classAt).includes(accented);

describe("any text", () => {
  const unit = fc.string({ unit: "binary", maxLength: 300 });

  test("the empty text has no token, any other at least one, and no more than its bytes", () => {
    expect(textTokens("")).toBe(0);
    fc.assert(
      fc.property(unit, fc.constantFrom(...vocabularies), (text, vocabulary) => {
        const tokens = textTokens(text, vocabulary);
        expect(Number.isInteger(tokens)).toBe(true);
        expect(tokens).toBeGreaterThanOrEqual(text === "" ? 0 : 1);
        expect(tokens).toBeLessThanOrEqual(Math.max(1, Buffer.byteLength(text)));
      }),
    );
  });

  test("the table agrees with the transitions, one by one", () => {
    const text = fc.oneof(unit, fc.constantFrom(...samples.map((each) => each.text))).filter(isPlain);
    fc.assert(
      fc.property(text, (text) => {
        let [tokens, state] = [0, firstState];
        for (let at = 0; at < text.length; at++) {
          const taken = computeTransition(state, classAt(text[at] as string), "o200k");
          tokens += taken.tokens;
          state = taken.state;
        }
        if (text !== "") expect(textTokens(text)).toBe(Math.max(1, Math.round(tokens)));
      }),
    );
    expect(tokenTable("o200k").next.length).toBeLessThan(0x10000);
  });

  test("Simplified and Traditional Chinese differ in the tokens per character", () => {
    expect(textTokens("们这说汉语国")).toBe(textTokens("人山水上下大"));
    expect(textTokens("們這說漢語國")).toBeGreaterThan(textTokens("们这说汉语国"));
  });

  test("half surrogate pairs, zeros and every single unit are counted", () => {
    const all = Array.from({ length: 0x10000 }, (_, unit) => String.fromCharCode(unit));
    expect(all.filter((text) => !(textTokens(text) > 0))).toEqual([]);
    expect(textTokens("\ud800".repeat(100))).toBeGreaterThan(10);
  });

  test("a long text is the sum of its parts, wherever it is split for counting", () => {
    for (const { text } of samples) {
      const times = 40;
      const parts = textTokens(text) * times;
      expect(Math.abs(textTokens(text.repeat(times)) - parts) / parts).toBeLessThan(0.02);
    }
  });
});
