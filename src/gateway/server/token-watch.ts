import type { Principal } from "../auth/principal.ts";

/** Ends open sockets and pending HTTP requests once their token is revoked or expires. */
export class TokenWatch {
  readonly #findEnded: (tokenIds: readonly string[]) => Promise<ReadonlySet<string>>;
  readonly #ends = new Map<string, Set<() => void>>();
  #isChecking = false;

  constructor(findEnded: (tokenIds: readonly string[]) => Promise<ReadonlySet<string>>) {
    this.#findEnded = findEnded;
  }

  /** Calls `end` when the token is revoked or expires. Returns a function that stops watching. */
  add({ tokenId }: Principal, end: () => void): () => void {
    const ends = this.#ends.get(tokenId) ?? new Set();
    this.#ends.set(tokenId, ends);
    const entry = () => end();
    ends.add(entry);
    return () => {
      ends.delete(entry);
      if (ends.size === 0 && this.#ends.get(tokenId) === ends) this.#ends.delete(tokenId);
    };
  }

  /** Checks all tokens with one read. Does nothing while the previous check is waiting for the database. */
  async recheck(): Promise<void> {
    if (this.#isChecking || this.#ends.size === 0) return;
    this.#isChecking = true;
    try {
      const ended = await this.#findEnded([...this.#ends.keys()]);
      for (const tokenId of ended) for (const end of [...(this.#ends.get(tokenId) ?? [])]) end();
    } finally {
      this.#isChecking = false;
    }
  }
}
