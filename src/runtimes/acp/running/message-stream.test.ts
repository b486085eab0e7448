import { once } from "node:events";
import { PassThrough } from "node:stream";
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
