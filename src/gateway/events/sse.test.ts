import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { adminOfAll, hubWorld, updated, want } from "../../../test/support/event-hub.ts";
import { lastEventId, sseEvent, sseHeartbeat, sseOpening, sseSink } from "./sse.ts";

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

class Target {
  written = "";
  writableLength = 0;
  isDestroyed = false;
  #onClose: () => void = () => undefined;

  write(text: string): void {
    this.written += text;
  }

  destroy(): void {
    this.isDestroyed = true;
    this.#onClose();
  }

  once(_: "close", listener: () => void): void {
    this.#onClose = listener;
  }
}

describe("events over an answer", () => {
  test("[GEV22] an event is its number, its name and the frame in one line", () => {
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
  ])("[GEV22] Last-Event-ID %j resumes behind %j", (header, after) => {
    expect(lastEventId(header)).toBe(after);
  });

  test("[GEV22] a heartbeat comes while nothing waits, and nothing once it is closed", () => {
    const target = new Target();
    let beat: () => void = () => undefined;
    let isStopped = false;
    const every = (act: () => void) => {
      beat = act;
      return () => {
        isStopped = true;
      };
    };
    const sink = sseSink(target, { every });
    beat();
    target.writableLength = 3;
    beat();
    expect(sink.backlog()).toBe(3);
    expect(target.written).toBe(`${sseOpening()}${sseHeartbeat}`);
    sink.drop();
    sink.send("{}", 1, "gap");
    expect([target.isDestroyed, isStopped, sink.backlog()]).toEqual([true, true, 0]);
    expect(target.written).not.toContain("{}");
  });

  test("[GEV22] a reader over HTTP gets what is kept and what comes", async () => {
    const { hub, emit, settle } = hubWorld();
    emit(updated());
    const server = createServer((_, answer) => {
      answer.writeHead(200, { "content-type": "text/event-stream" });
      hub.subscribe(adminOfAll, want(), sseSink(answer), 0);
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
