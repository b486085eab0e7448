import { Texts } from "./texts.ts";

interface Said {
  /** `null`: the agent gives its messages no ids, or this one has none. */
  readonly messageId: string | null;
  readonly words: Texts;
  isBlank: boolean;
}

const mostCharacters = 400_000;

/**
 * What a turn is answered with: the agent's last message since its last call, else the last that it said. A change of the
 * message's id begins another; words without one, said beside a message that has one, are a notice and no answer.
 */
export class Reply {
  #now: Said = begin(null);
  #before: Said | null = null;

  add(messageId: string | null, text: string): void {
    if (messageId !== this.#now.messageId) {
      if (messageId === null && !this.#now.isBlank) return;
      this.#next(messageId);
    }
    this.#now.words.add("text", null, text);
    if (text.trim() !== "") this.#now.isBlank = false;
  }

  /** A call has begun: what comes now is said since then. */
  callBegun(): void {
    this.#next(null);
  }

  toString(): string {
    const { words } = this.#now.isBlank && this.#before !== null ? this.#before : this.#now;
    return words.toString();
  }

  #next(messageId: string | null): void {
    if (!this.#now.isBlank) this.#before = this.#now;
    this.#now = begin(messageId);
  }
}

function begin(messageId: string | null): Said {
  return { messageId, words: new Texts(mostCharacters), isBlank: true };
}
