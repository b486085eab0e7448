import { LineGatherer } from "../../core/gather-bytes.ts";
import { cutText, escapeToLine } from "../../core/text.ts";

/** More than an agent says before it has said what it is. */
const mostBytes = 8 * 1024 * 1024;
const shownChars = 200;

export interface Answer {
  readonly result?: unknown;
  readonly error?: unknown;
}

/** The answer to the request of an id, out of what a process writes; all else is passed over. */
export class FirstAnswer {
  readonly #id: number;
  readonly #answered = Promise.withResolvers<Answer>();
  readonly #lines = new LineGatherer({
    maxBytes: mostBytes,
    tooLong: () => new Error("a line of too many bytes"),
  });
  #bytes = 0;
  #garbage: string | null = null;

  constructor(id: number) {
    this.#id = id;
  }

  /** It may never come. */
  get answer(): Promise<Answer> {
    return this.#answered.promise;
  }

  /** The first line that was no message, as one line; `null`: there was none. */
  get garbage(): string | null {
    return this.#garbage ?? this.#noMessage(this.#lines.unfinished.toString("utf8"));
  }

  take(chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#bytes > mostBytes) return; // it goes on reading, so that the process is not held up, and keeps nothing
    for (const line of this.#lines.split(chunk)) this.#read(line.toString("utf8"));
  }

  #read(line: string): void {
    const message = messageIn(line);
    if (message === null) this.#garbage ??= this.#noMessage(line);
    else if (message.id === this.#id && ("result" in message || "error" in message)) {
      this.#answered.resolve(message);
    }
  }

  #noMessage(line: string): string | null {
    const text = escapeToLine(line.trim());
    return text === "" ? null : cutText(text, shownChars);
  }
}

function messageIn(line: string): (Answer & { readonly id?: unknown }) | null {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : null;
  } catch {
    return null; // no message: a banner, a log line
  }
}
