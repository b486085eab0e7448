/** The minimum capacity, so that the buffer does not grow again for each small chunk at the beginning. */
const minCapacity = 1024;
const lineFeed = 0x0a;

interface GatherOptions {
  readonly maxBytes: number;
  /**
   * The declared length of the body. The buffer does not grow beyond it until more bytes than declared have arrived.
   */
  readonly declaredBytes?: number;
  /** Called before the buffer grows, with the number of bytes it grows by. If it throws, the buffer is unchanged. */
  readonly reserve?: (bytes: number) => void;
}

/**
 * Copies chunks into one buffer that doubles in size. Memory use depends only on the number of bytes, not on the chunk
 * size. An array of chunks would cost hundreds of bytes for each one-byte chunk.
 */
export class ByteGatherer {
  readonly #options: GatherOptions;
  #buffer = Buffer.alloc(0);
  #length = 0;

  constructor(options: GatherOptions) {
    this.#options = options;
  }

  get length(): number {
    return this.#length;
  }

  /** The size of the buffer, which is how much memory this gatherer uses. */
  get capacity(): number {
    return this.#buffer.length;
  }

  /** Returns `false` and ignores the whole chunk if it would exceed `maxBytes`. */
  append(chunk: Uint8Array): boolean {
    const length = this.#length + chunk.length;
    if (length > this.#options.maxBytes) return false;
    if (length > this.#buffer.length) this.#grow(length);
    this.#buffer.set(chunk, this.#length);
    this.#length = length;
    return true;
  }

  /** The bytes gathered so far. */
  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  /** Returns the bytes gathered so far and starts over with an empty buffer. */
  take(): Buffer {
    const { bytes } = this;
    this.clear();
    return bytes;
  }

  clear(): void {
    this.#buffer = Buffer.alloc(0);
    this.#length = 0;
  }

  #grow(needed: number): void {
    const { maxBytes, declaredBytes = maxBytes, reserve } = this.#options;
    const most = needed > declaredBytes ? maxBytes : Math.min(maxBytes, declaredBytes);
    const doubled = 2 ** Math.ceil(Math.log2(Math.max(minCapacity, needed)));
    const capacity = Math.max(needed, Math.min(most, doubled));
    reserve?.(capacity - this.#buffer.length);
    const wider = Buffer.allocUnsafeSlow(capacity);
    wider.set(this.#buffer.subarray(0, this.#length));
    this.#buffer = wider;
  }
}

interface LineOptions {
  readonly maxBytes: number;
  /** Creates the error to throw for a line that is too long. */
  tooLong(): Error;
}

/** Splits chunks into lines. Each chunk is searched once, and only an unfinished line is copied. */
export class LineGatherer {
  readonly #options: LineOptions;
  readonly #unfinished: ByteGatherer;

  constructor(options: LineOptions) {
    this.#options = options;
    this.#unfinished = new ByteGatherer(options);
  }

  /**
   * Yields each line that this chunk completes, without its line feed. Throws for a line that is too long, whether or
   * not it is complete.
   */
  *split(chunk: Buffer): Generator<Buffer> {
    let from = 0;
    for (let end = chunk.indexOf(lineFeed); end !== -1; end = chunk.indexOf(lineFeed, from)) {
      const part = chunk.subarray(from, end);
      from = end + 1;
      if (this.#unfinished.length === 0 && part.length <= this.#options.maxBytes) yield part;
      else yield this.#append(part).take();
    }
    if (from < chunk.length) this.#append(chunk.subarray(from));
  }

  /** The start of a line whose end has not arrived yet. */
  get unfinished(): Buffer {
    return this.#unfinished.bytes;
  }

  #append(part: Buffer): ByteGatherer {
    if (this.#unfinished.append(part)) return this.#unfinished;
    this.#unfinished.clear();
    throw this.#options.tooLong();
  }
}

/** Reads a stream to its end. Returns `null` and stops reading if there are more than `maxBytes`. */
export async function gatherStream(
  stream: AsyncIterable<Uint8Array> | null,
  maxBytes: number,
): Promise<Buffer | null> {
  const gathered = new ByteGatherer({ maxBytes });
  for await (const chunk of stream ?? []) if (!gathered.append(chunk)) return null;
  return gathered.take();
}
