import type { ScriptedReply, TwinRequest } from "../../src/entry-testing.ts";
import type { WireFormat } from "../../src/testing/twins/contract.ts";

/** A `fetch` function for a real client. A wire format answers it without a server. */
export interface TwinFetch {
  readonly fetch: typeof globalThis.fetch;
  /** The request bodies, including those of refused requests. */
  readonly bodies: unknown[];
}

export function twinFetch(
  format: WireFormat,
  replies: readonly ScriptedReply[],
  contextWindow = 100_000,
): TwinFetch {
  const bodies: unknown[] = [];
  const waiting = [...replies];
  const newId = countedIds();
  return {
    bodies,
    fetch: async (url, init) => {
      const request = requestOf(String(url), init);
      bodies.push(request.body);
      if (!format.serves(request)) return new Response("{}", { status: 404 });
      const refusal = format.check(request, { contextWindow });
      if (refusal !== null) return json(refusal.body, refusal.status);
      const reply = waiting.shift();
      if (reply === undefined) return json(format.errorBody(500, "The script has ended."), 500);
      if (!format.streams(request)) return json(format.answer(reply, request, newId), 200);
      return stream(format.events(reply, request, newId));
    },
  };
}

export function countedIds(): () => string {
  let count = 0;
  return () => `id${++count}`;
}

/** Returns a request in the form that the formats receive. */
export function posted(path: string, body: unknown): TwinRequest {
  return { method: "POST", path, headers: {}, body };
}

function requestOf(url: string, init: RequestInit | undefined): TwinRequest {
  const headers = Object.fromEntries(new Headers(init?.headers));
  const { pathname, search } = new URL(url);
  return {
    method: init?.method ?? "GET",
    path: `${pathname}${search}`,
    headers,
    body: JSON.parse(String(init?.body)),
  };
}

function json(body: unknown, status: number): Response {
  return Response.json(body, { status });
}

function stream(events: readonly string[]): Response {
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const event of events) controller.enqueue(encoder.encode(event));
      controller.close();
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

function dataUrl(type: string, bytes: Buffer): string {
  return `data:${type};base64,${bytes.toString("base64")}`;
}

/** A one-pixel GIF with this many frames. */
function gif(frames: number): Buffer {
  const head = Buffer.from("GIF89a\x01\0\x01\0\0\0\0", "latin1");
  const frame = Buffer.from("21f9040000000000" + "2c00000000010001000002024401" + "00", "hex");
  return Buffer.concat([head, ...Array.from({ length: frames }, () => frame), Buffer.from([0x3b])]);
}

/** Small images of each type, as data URLs. */
export const images = {
  png: dataUrl("image/png", Buffer.from("89504e470d0a1a0a0000000d49484452", "hex")),
  jpeg: dataUrl("image/jpeg", Buffer.from("ffd8ffe000104a46494600010100", "hex")),
  webp: dataUrl("image/webp", Buffer.from("RIFF\x10\0\0\0WEBPVP8 \x04\0\0\0\0\0\0\0", "latin1")),
  gif: dataUrl("image/gif", gif(1)),
  animatedGif: dataUrl("image/gif", gif(2)),
  of: dataUrl,
};
