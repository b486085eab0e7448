import { once } from "node:events";
import { PassThrough, Readable } from "node:stream";
import { setImmediate } from "node:timers";
import { describe, expect, test } from "vitest";
import { MessageLines } from "./message-lines.ts";
import { messageStream, RequestLimiter } from "./message-stream.ts";

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

test("[ARU7] a pipe that breaks off is an end, and no message that cannot be read", async () => {
  const { stdout, broken, readable } = streamOf();
  stdout.destroy();
  await once(stdout, "close");
  expect(await readable.getReader().read()).toEqual({ done: true, value: undefined });
  expect(broken).toEqual([]);
});

test("[ARU8] what cannot be read is told", async () => {
  const { stdout, broken, readable } = streamOf();
  stdout.write("{broken\n");
  await readable.getReader().read();
  expect(broken).toEqual(["it wrote an unreadable message: {broken"]);
});

test("[ARU58] however much an agent has written, the event loop gets a turn after each reading", async () => {
  const line = Buffer.from(`${JSON.stringify({ jsonrpc: "2.0", method: "session/update", params: {} })}\n`);
  const readings = 50;
  // All of it is there at once.
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

test("[OVF15] a long message is parsed in slices, and the one behind it comes after it", async () => {
  const line = (method: string, text: string) =>
    `${JSON.stringify({ jsonrpc: "2.0", method, params: { text } })}\n`;
  const long = line("session/update", '"\\'.repeat(2_000_000));
  // Both are there at once.
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

test("[OVF17] a stream that is cancelled while it parses delivers nothing more", async () => {
  const { stdout, broken, readable } = streamOf();
  const params = { text: "x".repeat(8_000_000) };
  stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "any", params })}\n`);
  await new Promise((resolve) => setImmediate(resolve));
  await readable.cancel();
  await once(stdout, "close");
  expect(broken).toEqual([]);
});

const read = (id: unknown) => ({ jsonrpc: "2.0", id, method: "fs/read_text_file" });
const ask = (id: unknown) => ({ jsonrpc: "2.0", id, method: "session/request_permission" });

describe("the requests of an agent at once", () => {
  test("[ATA1] files are read four at a time, the rest in their order as answers are written", () => {
    const limiter = new RequestLimiter();
    const begun = Array.from({ length: 10 }, (_, id) => limiter.admit(read(id), 100));
    expect(begun.map((each) => each.length)).toEqual([1, 1, 1, 1, 0, 0, 0, 0, 0, 0]);
    expect(limiter.release(2)).toEqual([read(4)]);
    expect(limiter.release(2)).toEqual([]);
    expect(limiter.release(0)).toEqual([read(5)]);
    expect(limiter.admit(ask("p"), 100)).toEqual([ask("p")]);
    expect(limiter.release("p")).toEqual([]);
  });

  test("[ATA1] an id that is under way, the 257th, and more than 64 MB are refused until there is room", () => {
    const limiter = new RequestLimiter();
    limiter.admit(ask(0), 1);
    expect(limiter.admit(ask(0), 1)).toMatch(/this ID is already pending/);
    for (let id = 1; id < 256; id++) limiter.admit(ask(id), 1);
    expect(limiter.admit(ask(256), 1)).toMatch(/More than 256 requests/);
    limiter.release(0);
    expect(limiter.admit(ask(256), 1)).toEqual([ask(256)]);
    const large = new RequestLimiter();
    expect(large.admit(ask(1), 90_000_000)).toEqual([ask(1)]);
    expect(large.admit(ask(2), 1)).toMatch(/more than 67108864 bytes/);
    large.release(1);
    expect(large.admit(ask(2), 1)).toEqual([ask(2)]);
  });
});
