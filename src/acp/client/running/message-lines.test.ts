import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MessageLines } from "./message-lines.ts";

async function read(lines: MessageLines, bytes: Buffer) {
  const messages: unknown[] = [];
  for await (const { message } of lines.take(bytes)) messages.push(message);
  return messages;
}

describe("messages out of bytes", () => {
  test("[ARU8] are the same however the bytes are cut", async () => {
    const messages = fc.array(
      fc.dictionary(fc.string({ unit: "grapheme" }), fc.string({ unit: "grapheme" })),
      { maxLength: 8 },
    );
    await fc.assert(
      fc.asyncProperty(messages, fc.array(fc.nat(60)), async (given, cuts) => {
        const all = Buffer.from(given.map((each) => `${JSON.stringify(each)}\n`).join(""));
        const lines = new MessageLines();
        const seen: unknown[] = [];
        let at = 0;
        for (const cut of cuts) {
          seen.push(...(await read(lines, all.subarray(at, at + cut))));
          at = Math.min(all.length, at + cut);
        }
        seen.push(...(await read(lines, all.subarray(at))));
        expect(JSON.stringify(seen)).toBe(
          JSON.stringify(given.map((each) => JSON.parse(JSON.stringify(each)))),
        );
      }),
    );
  });

  test("[ARU8] noise between them is passed by and told; too much of it, and a broken message, are not", async () => {
    const lines = new MessageLines();
    expect(await read(lines, Buffer.from('Welcome!\n\n{"a":1}\n42\n'))).toEqual([{ a: 1 }]);
    expect(lines.stray).toBe("Welcome!");
    await expect(read(lines, Buffer.from("noise\n".repeat(100)))).rejects.toThrow(
      "no message on its stdout: Welcome!",
    );
    await expect(read(new MessageLines(), Buffer.from('{"a":\n'))).rejects.toThrow("cannot be read");
    await expect(read(new MessageLines(), Buffer.from("[]\n"))).rejects.toThrow("cannot be read");
  });

  test.each(["[INFO] starting", "[dotenv@17.2.0] injecting env (0) from .env", "[", "[1/3] Linking"])(
    "[ARU54] a line of a log in brackets is noise: %s",
    async (line) => {
      const lines = new MessageLines();
      expect(await read(lines, Buffer.from(`${line}\n{"a":1}\n`))).toEqual([{ a: 1 }]);
      expect(lines.stray).toBe(line);
    },
  );

  test.each(['[{"a":', "[1]"])("[ARU54] what may be a message in brackets is not: %s", async (line) => {
    await expect(read(new MessageLines(), Buffer.from(`${line}\n`))).rejects.toThrow("cannot be read");
  });

  test("[ARU8] a message is bounded, ended or not", async () => {
    await expect(read(new MessageLines(10), Buffer.from("x".repeat(11)))).rejects.toThrow(
      "more than 10 bytes",
    );
    await expect(read(new MessageLines(10), Buffer.from(`${"x".repeat(11)}\n`))).rejects.toThrow(
      "more than 10 bytes",
    );
  });

  test("[ATA7] a byte at a time takes no more memory than all at once", async () => {
    const lines = new MessageLines();
    const text = "x".repeat(300_000);
    const bytes = Buffer.from(JSON.stringify({ text }));
    const before = process.memoryUsage().arrayBuffers;
    let count = 0;
    for (const byte of bytes) count += (await read(lines, Buffer.from([byte]))).length;
    expect(count).toBe(0);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(8_000_000);
    expect(await read(lines, Buffer.from("\n{}\n"))).toEqual([{ text }, {}]);
  });
});
