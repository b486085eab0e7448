/** The most that one answer may hold: text, thinking and the arguments of calls together. */
export const maxAnswerBytes = 32 * 1024 * 1024;
/** The most that one response may take on the wire. Each piece of an answer comes in a frame that is far larger than it. */
const maxResponseBytes = 256 * 1024 * 1024;

/** A model that does not stop would fill the memory of the process, and end the runs of everybody else. */
export class AnswerTooLong extends Error {
  override readonly name = "AnswerTooLong";

  constructor(what: "answer" | "response", maxBytes: number) {
    super(
      `the ${what} grew beyond ${maxBytes / 1024 / 1024} MB, the most that is accepted, and was cut off there`,
    );
  }
}

/** A `fetch` whose responses end with `AnswerTooLong` instead of growing without limit. */
export function limitResponses(fetch: typeof globalThis.fetch | undefined): typeof globalThis.fetch {
  return async (input, init) => {
    const response = await (fetch ?? globalThis.fetch)(input, init);
    if (response.body === null) return response;
    const body = response.body.pipeThrough(responseLimit(response.ok));
    const { status, statusText, headers } = response;
    return new Response(body, { status, statusText, headers });
  };
}

/**
 * Limits the whole response, and each event of a stream: parsers keep an event in memory until the blank line that ends
 * it. An error page is kept whole.
 */
function responseLimit(isStream: boolean): TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>> {
  let total = 0;
  let event = 0;
  let isLineEmpty = true;
  return new TransformStream({
    transform(chunk, controller) {
      total += chunk.length;
      if (total > maxResponseBytes) throw new AnswerTooLong("response", maxResponseBytes);
      for (let at = 0; at < chunk.length; at++) {
        event += 1;
        const byte = chunk[at];
        if (byte === carriageReturn) continue;
        if (byte === lineFeed && isLineEmpty && isStream) event = 0;
        isLineEmpty = byte === lineFeed;
      }
      if (event > maxAnswerBytes) throw new AnswerTooLong("answer", maxAnswerBytes);
      controller.enqueue(chunk);
    },
  });
}

const carriageReturn = 13;
const lineFeed = 10;
