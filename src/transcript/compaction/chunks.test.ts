import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { textTokens } from "../text-tokens.ts";
import { chunkTokens, splitChunks, splitChunksBackwards, truncateText, truncateToTokens } from "./chunks.ts";

const texts = fc.array(fc.string({ unit: "grapheme", maxLength: 200 }), { maxLength: 30 });
const most = fc.integer({ min: 40, max: 300 });

async function* pagesOf(all: readonly string[], size: number): AsyncGenerator<readonly string[]> {
  for (let end = all.length; end > 0; end -= size) yield all.slice(Math.max(0, end - size), end);
}

describe("splitting a range", () => {
  test("[XRW10] no piece exceeds its limit, nothing is omitted, and the order stays", () => {
    fc.assert(
      fc.property(texts, most, (all, limit) => {
        const chunks = [...splitChunks(all, limit)];
        expect(chunks.flat()).toEqual(all.map((text) => truncateToTokens(text, limit - 1)));
        for (const chunk of chunks)
          expect(textTokens(chunk.join("\n\n"))).toBeLessThanOrEqual(limit + chunk.length);
        expect(chunks.every((chunk) => chunk.length > 0)).toBe(true);
      }),
    );
  });

  test("[CMP19] backwards, page by page, gives the same texts from the newest to the oldest", async () => {
    await fc.assert(
      fc.asyncProperty(texts, most, fc.integer({ min: 1, max: 7 }), async (all, limit, pageSize) => {
        const chunks: (readonly string[])[] = [];
        for await (const chunk of splitChunksBackwards(pagesOf(all, pageSize), limit)) chunks.push(chunk);
        expect(chunks.toReversed().flat()).toEqual(all.map((text) => truncateToTokens(text, limit - 1)));
      }),
    );
  });

  test("[CMP19] reads no more than the current piece needs", async () => {
    let read = 0;
    async function* endless(): AsyncGenerator<readonly string[]> {
      for (;;) {
        read += 1;
        yield ["word ".repeat(100)];
      }
    }
    const chunks = splitChunksBackwards(endless(), 300);
    await chunks.next();
    expect(read).toBeLessThan(6);
    await chunks.return(undefined);
  });

  test("[XRW10] in safeguard mode a request fills at most half of the window, otherwise up to the threshold", () => {
    for (const window of [16_000, 32_000, 128_000, 200_000, 1_000_000]) {
      expect(chunkTokens(window, "safeguard")).toBeLessThan(window * 0.5);
      expect(chunkTokens(window, "safeguard")).toBeGreaterThan(window * 0.1);
      expect(chunkTokens(window, "default")).toBeGreaterThan(chunkTokens(window, "safeguard"));
      expect(chunkTokens(window, "default")).toBeLessThan(window * 0.98);
    }
    expect(chunkTokens(0, "safeguard")).toBeGreaterThan(0);
    const shares = [0, 0.1, 0.3, 0.7, 5].map((share) => chunkTokens(200_000, "safeguard", share));
    expect(shares).toEqual(shares.toSorted((a, b) => a - b));
    expect(shares.at(-1)).toBeLessThanOrEqual(chunkTokens(200_000, "default"));
  });
});

describe("a shortened text", () => {
  test("[XRW10] keeps head and tail, states how much is gone, and splits no character", () => {
    expect(truncateText("abcdefghij", 10)).toBe("abcdefghij");
    expect(truncateText("abcdefghijk", 10)).toBe("abcdefg\n[… 1 characters left out …] ijk");
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme", maxLength: 60 }),
        fc.integer({ min: 1, max: 50 }),
        (text, longest) => {
          const short = truncateText(text.toWellFormed(), longest);
          expect(short.isWellFormed()).toBe(true);
          expect(short.replace(/\n\[… \d+ characters left out …\] /, "").length).toBeLessThanOrEqual(
            Math.max(longest, text.length <= longest ? text.length : 0),
          );
        },
      ),
    );
  });

  test("[XRW10] can be limited in tokens, down to nothing", () => {
    for (const text of ["word ".repeat(5000), "京都".repeat(5000), "a".repeat(50_000)]) {
      for (const limit of [1000, 100, 30]) {
        const short = truncateToTokens(text, limit);
        expect(textTokens(short)).toBeLessThanOrEqual(limit);
        expect(short).not.toBe("");
      }
      expect(truncateToTokens(text, 0)).toBe("");
    }
  });
});
