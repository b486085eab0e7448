import { SkeinError } from "../../core/errors.ts";
import type { Accepted, AcceptRequest } from "../contract.ts";
import { acceptInput } from "./accepting.ts";
import type { Books } from "./books.ts";

/** So much input goes into one transaction: nobody else gets a turn meanwhile. */
const mostAtOnce = 500;

interface Waiting {
  readonly request: AcceptRequest;
  resolve(accepted: Accepted): void;
  reject(error: unknown): void;
}

/** Input that comes at the same time is made durable together: one transaction and one sync for all who wait. */
export class Inbox {
  readonly #books: Books;
  #waiting: Waiting[] = [];

  constructor(books: Books) {
    this.#books = books;
  }

  /** Resolves once it is on the disk. What is wrong with one does not touch the others. */
  accept(request: AcceptRequest): Promise<Accepted> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.push({ request, resolve, reject }) === 1) setImmediate(() => this.#acceptSome());
    });
  }

  #acceptSome(): void {
    const some = this.#waiting.splice(0, mostAtOnce);
    if (this.#waiting.length > 0) setImmediate(() => this.#acceptSome());
    try {
      const settled = this.#books.change("synced", () => some.map((each) => this.#tryOne(each)));
      for (const settle of settled) settle();
    } catch (error) {
      for (const { reject } of some) reject(error);
    }
  }

  /** A part of the transaction. A refusal takes back its own part; any other error takes back all of it. */
  #tryOne({ request, resolve, reject }: Waiting): () => void {
    try {
      const accepted = this.#books.change("synced", () => acceptInput(this.#books, request));
      return () => resolve(accepted);
    } catch (error) {
      if (!(error instanceof SkeinError)) throw error;
      return () => reject(error);
    }
  }
}
