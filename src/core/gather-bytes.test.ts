import { describe, expect, test } from "vitest";
import { ByteGatherer, gatherStream, LineGatherer } from "./gather-bytes.ts";

const tooLong = () => new Error("too long");

describe("collecting bytes", () => {
  test("byte by byte, the buffer is at most twice as large as its contents", () => {
    let reserved = 0;
    let grown = 0;
    const gathered = new ByteGatherer({
      maxBytes: 1_000_000,
      reserve: (bytes) => {
        reserved += bytes;
        grown += 1;
      },
    });
    for (let count = 1; count <= 300_000; count += 1) {
      gathered.append(Uint8Array.of(count % 251));
      if (gathered.capacity > Math.max(1024, 2 * count)) throw new Error(`${gathered.capacity} for ${count}`);
    }
    expect([gathered.length, reserved, grown]).toEqual([300_000, gathered.capacity, 10]);
    const bytes = gathered.take();
    expect(bytes.every((byte, index) => byte === (index + 1) % 251)).toBe(true);
    expect([gathered.length, gathered.capacity]).toEqual([0, 0]);
  });

  test("the buffer never exceeds the limit, nor the declared length before more arrives", () => {
    const gathered = new ByteGatherer({ maxBytes: 5000, declaredBytes: 3000 });
    expect(gathered.append(new Uint8Array(2100))).toBe(true);
    expect(gathered.capacity).toBe(3000);
    expect(gathered.append(new Uint8Array(2000))).toBe(true);
    expect(gathered.capacity).toBe(5000);
    expect(gathered.append(new Uint8Array(901))).toBe(false);
    expect(gathered.length).toBe(4100);
  });

  test("bytes that may not be reserved are not collected", () => {
    const reserve = () => {
      throw new Error("full");
    };
    const gathered = new ByteGatherer({ maxBytes: 5000, reserve });
    expect(() => gathered.append(new Uint8Array(1))).toThrow("full");
    expect([gathered.length, gathered.capacity]).toEqual([0, 0]);
  });

  test("a stream is read up to the limit, and stopped at the first byte beyond it", async () => {
    const pulled: number[] = [];
    async function* chunks() {
      for (let count = 0; count < 10; count += 1) {
        pulled.push(count);
        yield Uint8Array.of(count);
      }
    }
    expect(await gatherStream(chunks(), 10)).toEqual(Buffer.from([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]));
    pulled.length = 0;
    expect(await gatherStream(chunks(), 3)).toBe(null);
    expect(pulled).toEqual([0, 1, 2, 3]);
    expect(await gatherStream(null, 3)).toEqual(Buffer.alloc(0));
  });
});

describe("collecting lines", () => {
  test.each([1, 2, 3, 100])("are the same in chunks of %i bytes", (size) => {
    const text = Buffer.from("one\n\ntwo\nthr\u00e9e\nunfin");
    const lines = new LineGatherer({ maxBytes: 6, tooLong });
    const found: string[] = [];
    for (let from = 0; from < text.length; from += size)
      for (const line of lines.split(text.subarray(from, from + size))) found.push(line.toString("utf8"));
    expect(found).toEqual(["one", "", "two", "thr\u00e9e"]);
    expect(lines.unfinished.toString("utf8")).toBe("unfin");
  });

  test.each([
    ["complete", "1234567\n"],
    ["unfinished", "1234567"],
  ])("a line that is %s and too long is refused, and forgotten", (_, text) => {
    const lines = new LineGatherer({ maxBytes: 6, tooLong });
    expect([...lines.split(Buffer.from("12"))]).toEqual([]);
    expect(() => [...lines.split(Buffer.from(text))]).toThrow("too long");
    expect(() => [...lines.split(Buffer.from(text))]).toThrow("too long");
    expect(lines.unfinished.length).toBe(0);
  });
});
