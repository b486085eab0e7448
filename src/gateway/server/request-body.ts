import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import { ByteGatherer } from "../../core/gather-bytes.ts";
import { parseJson } from "../../core/parse-json.ts";
import { present } from "../../core/present.ts";
import { NestingMeter } from "../../protocol/nesting.ts";
import { RequestRefusedError } from "../methods/dispatch.ts";
import { malformed, notJsonType, tooDeep, tooLarge, tooManyChunks } from "./refusals.ts";

const jsonPattern = /^application\/json(?:\s*;\s*charset=(?:"utf-8"|utf-8))?\s*$/i;

export interface BodyLimits {
  readonly maxBytes: number;
  /** The number of chunks is limited because every chunk takes time to process, regardless of its size. */
  readonly maxChunks: number;
  /** Called before more memory is used. Throws if the budget is exceeded. */
  readonly reserve?: (bytes: number) => void;
}

/** Returns the body as JSON, or `undefined` if there is none. */
export async function jsonBody(request: IncomingMessage, limits: BodyLimits): Promise<unknown> {
  if (!hasBody(request)) return undefined;
  if (!jsonPattern.test(request.headers["content-type"] ?? "")) {
    throw new RequestRefusedError(notJsonType);
  }
  refuseEncoded(request);
  const bytes = await readBody(request, limits);
  return bytes.length === 0 ? undefined : await parsed(bytes);
}

export function hasBody({ headers }: IncomingMessage): boolean {
  const { "content-length": length, "transfer-encoding": encoding } = headers;
  return encoding !== undefined || (length !== undefined && length !== "0");
}

/**
 * Reads a body into one buffer. Chunks are consumed as the parser emits them, because a chunk that waits in the stream
 * costs hundreds of bytes. The rest of a rejected body is read and discarded so that the client receives the response,
 * unless the body has too many chunks.
 */
export function readBody(request: IncomingMessage, limits: BodyLimits): Promise<Buffer> {
  const { maxBytes, maxChunks, reserve } = limits;
  const { "content-length": declared } = request.headers;
  const declaredBytes = declared === undefined ? undefined : Number(declared);
  if ((declaredBytes ?? 0) > maxBytes) throw new RequestRefusedError(tooLarge("The body", maxBytes));
  return new Promise((resolve, reject) => {
    const gathered = new ByteGatherer({ maxBytes, ...present({ declaredBytes, reserve }) });
    const meter = new NestingMeter();
    let chunkCount = 0;
    const end = () => {
      leave();
      resolve(gathered.take());
    };
    const fail = () => {
      leave();
      reject(new RequestRefusedError(malformed("The body was truncated")));
    };
    const take = (chunk: Buffer) => {
      try {
        chunkCount += 1;
        if (chunkCount > maxChunks)
          throw new RequestRefusedError(tooManyChunks(maxChunks), { endsConnection: true });
        // Measured per chunk because measuring megabytes at the end would block the event loop.
        if (meter.take(chunk)) throw new RequestRefusedError(tooDeep);
        if (!gathered.append(chunk)) throw new RequestRefusedError(tooLarge("The body", maxBytes));
      } catch (error) {
        leave();
        request.resume();
        reject(error);
      }
    };
    const leave = () => request.off("data", take).off("end", end).off("close", fail);
    // A connection error is always followed by `close`.
    request
      .on("data", take)
      .once("end", end)
      .once("close", fail)
      .on("error", () => undefined);
  });
}

function refuseEncoded({ headers }: IncomingMessage): void {
  const { "content-encoding": content = "identity", "transfer-encoding": transfer = "chunked" } = headers;
  if (content.toLowerCase() === "identity" && transfer.trim().toLowerCase() === "chunked") return;
  throw new RequestRefusedError(malformed("The body must not be compressed"));
}

async function parsed(bytes: Buffer): Promise<unknown> {
  if (!isUtf8(bytes)) throw new RequestRefusedError(malformed("The body is not UTF-8"));
  try {
    return await parseJson(bytes.toString("utf8"));
  } catch {
    throw new RequestRefusedError(malformed("The body is not valid JSON"));
  }
}
