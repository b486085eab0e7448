import type { UIMessageChunk } from "ai";

/** How an answer ended. */
export interface AnswerEnd {
  readonly state: "finished" | "aborted" | "failed";
  /** The text of the step that was not finished. */
  readonly partialText: string;
}

/**
 * An answer that is being written. It keeps every chunk, so that any number of browsers can read the answer from the
 * beginning. The answer continues even if no browser reads it.
 */
export class Answer {
  readonly messageId: string;
  readonly #stopped = new AbortController();
  readonly #chunks: UIMessageChunk[];
  #isOpen = true;
  readonly #lastChunks: UIMessageChunk[] = [];
  #news = Promise.withResolvers<void>();

  /** `earlier` contains the chunks of steps that were finished before a crash. */
  constructor(messageId: string, earlier: readonly UIMessageChunk[] = []) {
    this.messageId = messageId;
    this.#chunks = [{ type: "start", messageId }, ...earlier];
  }

  /** Aborted when the answer is stopped. */
  get signal(): AbortSignal {
    return this.#stopped.signal;
  }

  stop(): void {
    this.#stopped.abort();
  }

  /**
   * Reads the model's answer to its end. The chunk that ends the answer and all chunks after it are held back until
   * `close`, so that everything is recorded by the time a browser sees the end.
   */
  async take(stream: ReadableStream<UIMessageChunk>): Promise<AnswerEnd> {
    let state: AnswerEnd["state"] = "finished";
    let partialText = "";
    for await (const chunk of stream) {
      if (chunk.type === "start-step" || chunk.type === "finish-step") partialText = "";
      if (chunk.type === "text-delta") partialText += chunk.delta;
      if (chunk.type === "abort") state = "aborted";
      if (chunk.type === "error") state = "failed";
      if (this.#lastChunks.length > 0 || isLast(chunk)) this.#lastChunks.push(chunk);
      else this.#push(chunk);
    }
    return { state, partialText };
  }

  #push(chunk: UIMessageChunk): void {
    this.#chunks.push(chunk);
    this.#wake();
  }

  /** Ends the streams of all readers. An error replaces the answer's own end. */
  close(error?: UIMessageChunk): void {
    this.#chunks.push(...(error === undefined ? this.#lastChunks : [error]));
    this.#isOpen = false;
    this.#wake();
  }

  /** Returns a stream of all chunks, including those that have been read before. */
  read(): ReadableStream<UIMessageChunk> {
    let next = 0;
    return new ReadableStream({
      pull: async (controller) => {
        while (next === this.#chunks.length && this.#isOpen) await this.#news.promise;
        const chunk = this.#chunks[next];
        next += 1;
        if (chunk === undefined) controller.close();
        else controller.enqueue(chunk);
      },
    });
  }

  #wake(): void {
    const { resolve } = this.#news;
    this.#news = Promise.withResolvers();
    resolve();
  }
}

function isLast({ type }: UIMessageChunk): boolean {
  return type === "finish" || type === "error" || type === "abort";
}
