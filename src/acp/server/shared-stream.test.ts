import { expect, test } from "vitest";
import type { EventStream, ReceivedEvent } from "../../protocol/methods/calls.ts";
import { SharedStream } from "./shared-stream.ts";

/** Streams that are given events by hand. */
function sources() {
  const opened: { push(received: ReceivedEvent): void; end(error?: Error): void; isClosed: boolean }[] = [];
  const open = (): EventStream => {
    const { readable, writable } = new TransformStream<ReceivedEvent, ReceivedEvent>(undefined, {
      highWaterMark: Number.POSITIVE_INFINITY,
    });
    const writer = writable.getWriter();
    const one = {
      push: (received: ReceivedEvent) => void writer.write(received),
      end: (error?: Error) =>
        void (error === undefined ? writer.close() : writer.abort(error)).catch(() => 0),
      isClosed: false,
    };
    opened.push(one);
    const close = () => {
      one.isClosed = true;
      one.end();
    };
    return { ready: Promise.resolve(), close, [Symbol.asyncIterator]: () => readable.values() };
  };
  return { opened, open };
}

const event = (seq: number) => ({ event: "run.ended", payload: {}, seq }) as unknown as ReceivedEvent;
const take = async (stream: EventStream, count: number) => {
  const seen: number[] = [];
  for await (const { seq } of stream) if (seen.push(seq) === count) break;
  return seen;
};

test("[AAG43] everybody hears every event from when they came, over one stream, which ends with the last", async () => {
  const { opened, open } = sources();
  const shared = new SharedStream(open);
  const [one, other] = [shared.subscribe(), shared.subscribe()];
  opened[0]?.push(event(1));
  expect([await take(one, 1), await take(other, 1)]).toEqual([[1], [1]]);
  const late = shared.subscribe();
  opened[0]?.push(event(2));
  expect(await take(late, 1)).toEqual([2]);
  one.close();
  other.close();
  expect([opened.length, opened[0]?.isClosed]).toEqual([1, false]);
  late.close();
  expect(opened[0]?.isClosed).toBe(true);
  shared.subscribe();
  expect(opened).toHaveLength(2);
});

test("[AAG43] who is too slow is told that some are missing, and a stream that fails fails for all", async () => {
  const { opened, open } = sources();
  const shared = new SharedStream(open);
  const [quick, slow] = [shared.subscribe(), shared.subscribe()];
  const heard = take(quick, 1001);
  for (let seq = 1; seq <= 1001; seq++) opened[0]?.push(event(seq));
  expect(await heard).toHaveLength(1001);
  expect(await firstOf(slow)).toMatchObject({ event: "gap", seq: 1001 });
  opened[0]?.end(new Error("cut off"));
  await expect(take(quick, 1)).rejects.toThrow("cut off");
  await expect(take(slow, 1)).rejects.toThrow("cut off");
});

async function firstOf(stream: EventStream): Promise<ReceivedEvent | null> {
  for await (const each of stream) return each;
  return null;
}
