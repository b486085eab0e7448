import { once } from "node:events";
import { PassThrough, Readable } from "node:stream";
import { setImmediate } from "node:timers";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { atOnce } from "../../core/slices.ts";
import { deepestNesting } from "../../protocol/nesting.ts";
import { findExcess, MessageLines, maxValues, messageStream, RequestLimiter } from "./message-stream.ts";

function streamOf() {
  const [stdin, stdout] = [new PassThrough(), new PassThrough()];
  const broken: string[] = [];
  const { readable } = messageStream(
    { stdin, stdout },
    {
      lines: new MessageLines(),
      onUpdate: () => undefined,
      onReadError: ({ message }) => void broken.push(message),
    },
  );
  return { stdout, broken, readable };
}

test("[ARU7] a broken pipe ends the stream and is not an unreadable message", async () => {
  const { stdout, broken, readable } = streamOf();
  stdout.destroy();
  await once(stdout, "close");
  expect(await readable.getReader().read()).toEqual({ done: true, value: undefined });
  expect(broken).toEqual([]);
});

test("[ARU8] unreadable output is reported", async () => {
  const { stdout, broken, readable } = streamOf();
  stdout.write("{broken\n");
  await readable.getReader().read();
  expect(broken).toEqual(["it wrote an unreadable message: {broken"]);
});

test("yields to the event loop after each read, however much an agent has written", async () => {
  const line = Buffer.from(`${JSON.stringify({ jsonrpc: "2.0", method: "session/update", params: {} })}\n`);
  const readings = 50;
  // All chunks arrive at the same time.
  const stdout = Readable.from(Array.from({ length: readings }, () => Buffer.concat(Array(20).fill(line))));
  let [turns, updates, isOver] = [0, 0, false];
  setImmediate(function turn() {
    turns++;
    if (!isOver) setImmediate(turn);
  });
  const { readable } = messageStream(
    { stdin: new PassThrough(), stdout },
    { lines: new MessageLines(), onUpdate: () => void updates++, onReadError: () => undefined },
  );
  await readable.getReader().read();
  isOver = true;
  expect(updates).toBe(readings * 20);
  expect(turns).toBeGreaterThanOrEqual(readings - 1);
});

test("parses a long message in slices, before the message that follows it", async () => {
  const line = (method: string, text: string) =>
    `${JSON.stringify({ jsonrpc: "2.0", method, params: { text } })}\n`;
  const long = line("session/update", '"\\'.repeat(2_000_000));
  // Both messages arrive at the same time.
  const stdout = Readable.from([Buffer.from(long + line("session/update", "short"))]);
  let [turns, isOver] = [0, false];
  setImmediate(function turn() {
    turns++;
    if (!isOver) setImmediate(turn);
  });
  const lengths: number[] = [];
  const { readable } = messageStream(
    { stdin: new PassThrough(), stdout },
    {
      lines: new MessageLines(),
      onUpdate: (params) => void lengths.push((params as { text: string }).text.length),
      onReadError: () => undefined,
    },
  );
  await readable.getReader().read();
  isOver = true;
  expect(lengths).toEqual([4_000_000, 5]);
  expect(turns).toBeGreaterThan(long.length / 1_000_000);
});

test("a stream that is cancelled while it parses delivers nothing more", async () => {
  const { stdout, broken, readable } = streamOf();
  const params = { text: "x".repeat(8_000_000) };
  stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "any", params })}\n`);
  await new Promise((resolve) => setImmediate(resolve));
  await readable.cancel();
  await once(stdout, "close");
  expect(broken).toEqual([]);
});

const readRequest = (id: unknown) => ({ jsonrpc: "2.0", id, method: "fs/read_text_file" });
const ask = (id: unknown) => ({ jsonrpc: "2.0", id, method: "session/request_permission" });

describe("concurrent requests of an agent", () => {
  test("reads four files at a time, and the rest in order as responses are written", () => {
    const limiter = new RequestLimiter();
    const begun = Array.from({ length: 10 }, (_, id) => limiter.admit(readRequest(id), 100));
    expect(begun.map((each) => each.length)).toEqual([1, 1, 1, 1, 0, 0, 0, 0, 0, 0]);
    expect(limiter.release(2)).toEqual([readRequest(4)]);
    expect(limiter.release(2)).toEqual([]);
    expect(limiter.release(0)).toEqual([readRequest(5)]);
    expect(limiter.admit(ask("p"), 100)).toEqual([ask("p")]);
    expect(limiter.release("p")).toEqual([]);
  });

  test("refuses a pending ID, the 257th request, and more than 64 MB until there is room", () => {
    const limiter = new RequestLimiter();
    limiter.admit(ask(0), 1);
    expect(limiter.admit(ask(0), 1)).toMatch(/this ID is already pending/);
    for (let id = 1; id < 256; id++) limiter.admit(ask(id), 1);
    expect(limiter.admit(ask(256), 1)).toMatch(/More than 256 requests/);
    limiter.release(0);
    expect(limiter.admit(ask(256), 1)).toEqual([ask(256)]);
    const large = new RequestLimiter();
    expect(large.admit(ask(1), 90_000_000)).toEqual([ask(1)]);
    expect(large.admit(ask(2), 1)).toMatch(/exceed 67108864 bytes/);
    large.release(1);
    expect(large.admit(ask(2), 1)).toEqual([ask(2)]);
  });
});

async function read(lines: MessageLines, bytes: Buffer) {
  const messages: unknown[] = [];
  for await (const { message } of lines.take(bytes)) messages.push(message);
  return messages;
}

describe("messages from bytes", () => {
  test("[ARU8] are the same however the bytes are split", async () => {
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

  test("[ARU8] skips and reports noise between messages, but fails on too much noise or a broken message", async () => {
    const lines = new MessageLines();
    expect(await read(lines, Buffer.from('Welcome!\n\n{"a":1}\n42\n'))).toEqual([{ a: 1 }]);
    expect(lines.stray).toBe("Welcome!");
    await expect(read(lines, Buffer.from("noise\n".repeat(100)))).rejects.toThrow(
      "text that is not a message: Welcome!",
    );
    await expect(read(new MessageLines(), Buffer.from('{"a":\n'))).rejects.toThrow("unreadable message");
    await expect(read(new MessageLines(), Buffer.from("[]\n"))).rejects.toThrow("unreadable message");
  });

  test.each(["[INFO] starting", "[dotenv@17.2.0] injecting env (0) from .env", "[", "[1/3] Linking"])(
    "a log line in brackets is noise: %s",
    async (line) => {
      const lines = new MessageLines();
      expect(await read(lines, Buffer.from(`${line}\n{"a":1}\n`))).toEqual([{ a: 1 }]);
      expect(lines.stray).toBe(line);
    },
  );

  test.each(['[{"a":', "[1]"])("a possible message in brackets is not noise: %s", async (line) => {
    await expect(read(new MessageLines(), Buffer.from(`${line}\n`))).rejects.toThrow("unreadable message");
  });

  test("[ARU8] limits the size of a message, complete or not", async () => {
    await expect(read(new MessageLines(10), Buffer.from("x".repeat(11)))).rejects.toThrow(
      "more than 10 bytes",
    );
    await expect(read(new MessageLines(10), Buffer.from(`${"x".repeat(11)}\n`))).rejects.toThrow(
      "more than 10 bytes",
    );
  });

  test("one byte at a time takes no more memory than all at once", async () => {
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

const long = "x".repeat(70_000);
const update = (value: string) => `{"text":"${long}","value":${value}}`;
const nested = (levels: number) => update("[".repeat(levels) + "]".repeat(levels));
const heavy = (text: string) => atOnce(findExcess(Buffer.from(text)));

describe("the contents of a message", () => {
  test.each([
    ["the maximum depth", nested(deepestNesting - 1), null],
    ["deeper", nested(deepestNesting), "of more than 1000 levels"],
    ["the maximum number of values", update(`[${"1,".repeat(maxValues - 3)}1]`), null],
    ["one value more", update(`[${"1,".repeat(maxValues)}1]`), "of more than 250000 values"],
    [
      "the maximum number in objects",
      update(`[${"{},".repeat(maxValues / 2)}{}]`),
      "of more than 250000 values",
    ],
    ["brackets inside a string", update(JSON.stringify('[{,"\\'.repeat(100_000))), null],
    ["a text that ends in backslashes", update(`"\\\\\\\\",${"[".repeat(2000)}`), "of more than 1000 levels"],
    ["an unterminated string", `{"text":"${long}${"[".repeat(2000)}`, null],
    ["megabytes of text", update(JSON.stringify("y".repeat(5_000_000))), null],
    ["a short text of any depth", "[".repeat(60_000), null],
  ])("%s", (_, text, expected) => {
    expect(heavy(text)).toBe(expected);
  });

  test("a string cannot hide the structure after it, and its own contents are not structure", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('"', "\\", "[", "{", ",", "a", "\n", "é") }), (text) => {
        const said = JSON.stringify(text);
        expect(heavy(update(said))).toBe(null);
        expect(heavy(update(`${said},${"[".repeat(deepestNesting + 1)}`))).toBe("of more than 1000 levels");
      }),
      { numRuns: 50 },
    );
  });

  test("stops reading a message that exceeds the limit", async () => {
    const lines = new MessageLines();
    const line = (text: string) => Buffer.from(`${text}\n`);
    expect(await lines.take(line(nested(10))).next()).toMatchObject({ done: false });
    await expect(lines.take(line(nested(5_000_000))).next()).rejects.toThrow(
      "it wrote a message of more than 1000 levels",
    );
  });
});
