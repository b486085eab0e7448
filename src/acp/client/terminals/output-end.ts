const mostChunks = 256;

/** The end of an output, at most so many bytes of UTF-8, whole characters only. */
export class OutputEnd {
  readonly #limit: number;
  #chunks: Buffer[] = [];
  #size = 0;
  #isCut = false;

  constructor(limit: number) {
    this.#limit = limit;
  }

  take(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    if (this.#size <= 2 * this.#limit && this.#chunks.length <= mostChunks) return;
    // One more than is shown, so that what was cut off is known.
    const kept = Buffer.concat(this.#chunks).subarray(-(this.#limit + 1));
    this.#chunks = [Buffer.from(kept)];
    this.#size = kept.length;
  }

  /** A character whose bytes have not all come is not shown yet; bytes that are no text are replaced. */
  read(): { readonly output: string; readonly truncated: boolean } {
    const bytes = Buffer.concat(this.#chunks);
    const from = bytes.length > this.#limit ? startOfCharacter(bytes, bytes.length - this.#limit) : 0;
    const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(from), { stream: true });
    // What replaces a byte has three.
    const encoded = Buffer.from(text);
    const excess = Math.max(0, encoded.length - this.#limit);
    this.#isCut ||= from > 0 || excess > 0;
    const output = encoded.toString("utf8", startOfCharacter(encoded, excess));
    return { output, truncated: this.#isCut };
  }
}

function startOfCharacter(bytes: Buffer, from: number): number {
  let start = from;
  while (start > 0 && start < bytes.length && ((bytes[start] ?? 0) & 0xc0) === 0x80 && start < from + 3)
    start++;
  return start;
}
