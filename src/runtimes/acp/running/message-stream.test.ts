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
