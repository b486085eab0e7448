import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import { NestingMeter } from "../../../protocol/nesting.ts";
import { Refused } from "../../calls/dispatch.ts";
import { malformed, notJsonType, tooDeep, tooLarge } from "../door/refusals.ts";

/** Bodies of requests, never more of them than is allowed. What is left of one that is too large Node reads and drops. */

const jsonPattern = /^application\/json(?:\s*;\s*charset=(?:"utf-8"|utf-8))?\s*$/i;

/** Told of each piece before it is held; throws where that is too much. */
export type Hold = (bytes: number) => void;

/** The JSON of a body; `undefined`: there is none. */
export async function jsonBody(
  request: IncomingMessage,
  most: number,
  hold: Hold = () => undefined,
): Promise<unknown> {
  if (!hasBody(request)) return undefined;
  if (!jsonPattern.test(request.headers["content-type"] ?? "")) {
    throw new Refused(notJsonType);
  }
  refuseEncoded(request);
  const bytes = await readBody(request, most, hold);
  return bytes.length === 0 ? undefined : parsed(bytes);
}

export function hasBody({ headers }: IncomingMessage): boolean {
  const { "content-length": length, "transfer-encoding": encoding } = headers;
  return encoding !== undefined || (length !== undefined && length !== "0");
}

/** Piece by piece, for whoever looks at headers first. What is nested too deep ends there, before anybody parses it. */
export async function* bodyChunks(
  request: IncomingMessage,
  most: number,
  hold: Hold,
): AsyncGenerator<Uint8Array> {
  refuseDeclared(request, most);
  const meter = new NestingMeter();
  let length = 0;
  try {
    // The connection stays, so that whoever sent too much is told so.
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > most) throw new Refused(tooLarge("The body", most));
      if (meter.take(chunk)) throw new Refused(tooDeep);
      hold(chunk.length);
      yield new Uint8Array(chunk);
    }
  } finally {
    request.resume();
  }
}

function readBody(request: IncomingMessage, most: number, hold: Hold): Promise<Buffer> {
  refuseDeclared(request, most);
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const meter = new NestingMeter();
    let length = 0;
    const end = () => {
      leave();
      resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, length));
    };
    const fail = () => {
      leave();
      reject(new Refused(malformed("The body was cut off")));
    };
    const take = (chunk: Buffer) => {
      try {
        length += chunk.length;
        if (length > most) throw new Refused(tooLarge("The body", most));
        // As it comes: a body of megabytes, measured at its end, would keep everybody waiting.
        if (meter.take(chunk)) throw new Refused(tooDeep);
        hold(chunk.length);
        chunks.push(chunk);
      } catch (error) {
        leave();
        request.resume();
        reject(error);
      }
    };
    const leave = () => request.off("data", take).off("end", end).off("close", fail);
    // An error of the connection is followed by its close.
    request
      .on("data", take)
      .once("end", end)
      .once("close", fail)
      .on("error", () => undefined);
  });
}

function refuseDeclared({ headers }: IncomingMessage, most: number): void {
  if (Number(headers["content-length"] ?? 0) > most) throw new Refused(tooLarge("The body", most));
}

function refuseEncoded({ headers }: IncomingMessage): void {
  const { "content-encoding": content = "identity", "transfer-encoding": transfer = "chunked" } = headers;
  if (content.toLowerCase() === "identity" && transfer.trim().toLowerCase() === "chunked") return;
  throw new Refused(malformed("The body must not be compressed"));
}

function parsed(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw new Refused(malformed("The body is not UTF-8"));
  try {
    return JSON.parse(bytes.toString("utf8")) as unknown;
  } catch {
    throw new Refused(malformed("The body is no JSON"));
  }
}
