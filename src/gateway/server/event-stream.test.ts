import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { adminOfAll, hubWorld, updated, want } from "../../../test/support/event-hub.ts";
import { HandTimers } from "../../../test/support/gateway-server.ts";
import { lastEventId, sseEvent, sseHeartbeat, sseOpening, sseSink } from "./event-stream.ts";

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

const patience = { beatMs: 15, closeMs: 2 };

class Target {
  written = "";
  writableLength = 0;
  isDestroyed = false;
  isEnded = false;
  #onClose: () => void = () => undefined;

  write(text: string): void {
    this.written += text;
  }

  end(): void {
    if (this.isEnded) throw new Error("ended twice");
    this.isEnded = true;
  }

  destroy(): void {
    this.isDestroyed = true;
    this.#onClose();
  }

  once(_: "close", listener: () => void): void {
    this.#onClose = listener;
  }
}

describe("server-sent events", () => {
  test("an event is its number, its name and the frame on one line", () => {
    const frame = JSON.stringify({ type: "event", event: "x", payload: { text: "a\nb\r\u2028" }, seq: 7 });
    const lines = sseEvent(frame, 7, "x").split("\n");
    expect(lines).toEqual(["id: 7", "event: x", `data: ${frame}`, "", ""]);
    expect(sseOpening()).toBe("retry: 1000\n\n");
  });

  test.each([
    [undefined, undefined],
    ["", undefined],
    ["12", 12],
    ["0", 0],
    ["-1", 0],
    ["1e3", 0],
    ["9999999999999999", 0],
    ["abc", 0],
  ])("Last-Event-ID %j resumes after %j", (header, after) => {
    expect(lastEventId(header)).toBe(after);
  });

  test("sends a heartbeat while idle, and nothing after close", () => {
    const [target, timers] = [new Target(), new HandTimers()];
    const sink = sseSink(target, { ...patience, timers });
    timers.fire(15);
    target.writableLength = 3;
    timers.fire(15);
    expect(sink.backlog()).toBe(3);
    expect(target.written).toBe(`${sseOpening()}${sseHeartbeat}`);
    sink.drop();
    sink.send("{}", 1, "gap");
    expect([target.isDestroyed, timers.count(15), sink.backlog()]).toEqual([true, 0, 0]);
    expect(target.written).not.toContain("{}");
  });

  test("an ended stream sends nothing more, and a client that does not read the rest is disconnected", () => {
    const [target, timers] = [new Target(), new HandTimers()];
    const sink = sseSink(target, { ...patience, timers });
    sink.end();
    sink.end();
    sink.send("{}", 1, "gap");
    timers.fire(15);
    expect([target.written, target.isEnded, target.isDestroyed]).toEqual([sseOpening(), true, false]);
    timers.fire(2);
    expect(target.isDestroyed).toBe(true);
    const [reading, others] = [new Target(), new HandTimers()];
    sseSink(reading, { ...patience, timers: others }).end();
    reading.destroy();
    expect([others.count(15), others.count(2)]).toEqual([0, 0]);
  });

  test("a reader over HTTP gets kept and new events", async () => {
    const { hub, emit, settle } = hubWorld();
    emit(updated());
    const server = createServer((_, answer) => {
      answer.writeHead(200, { "content-type": "text/event-stream" });
      hub.subscribe(adminOfAll, want(), sseSink(answer, { ...patience, timers: new HandTimers() }), 0);
      settle();
      emit(updated());
    });
    closing.push(
      () => server.close(),
      () => server.closeAllConnections(),
    );
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
    let text = "";
    while (!text.includes("id: 2\n")) text += new TextDecoder().decode((await reader.read()).value);
    expect(text).toContain('id: 1\nevent: session.updated\ndata: {"type":"event"');
    await reader.cancel();
  });
});
