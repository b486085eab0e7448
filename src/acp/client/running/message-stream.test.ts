import { once } from "node:events";
import { PassThrough, Readable } from "node:stream";
import { setImmediate } from "node:timers";
import { expect, test } from "vitest";
import { MessageLines } from "./message-lines.ts";
import { messageStream } from "./message-stream.ts";

function streamOf() {
  const [stdin, stdout] = [new PassThrough(), new PassThrough()];
  const broken: string[] = [];
  const { readable } = messageStream(
    { stdin, stdout },
    {
      lines: new MessageLines(),
      onUpdate: () => undefined,
      onBroken: ({ message }) => void broken.push(message),
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
  expect(broken).toEqual(["it wrote a message that cannot be read: {broken"]);
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
    { lines: new MessageLines(), onUpdate: () => void updates++, onBroken: () => undefined },
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
      onBroken: () => undefined,
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
