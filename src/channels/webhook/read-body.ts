/** Bodies with a limit, of requests and responses alike. */

/** The bytes of a body; `null`: there are more than `most`, and the rest was not read. */
export async function readBody(
  body: ReadableStream<Uint8Array> | null,
  most: number,
): Promise<Uint8Array | null> {
  if (body === null) return new Uint8Array();
  const reader = body.getReader();
  const parts: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return Buffer.concat(parts);
    size += value.byteLength;
    if (size > most) {
      await reader.cancel();
      return null;
    }
    parts.push(value);
  }
}
