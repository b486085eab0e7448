import { SkeinError } from "../../core/errors.ts";
import type { TokenRecord } from "./token-table.ts";

/** Revocations that could not yet be written to the database. They are already in effect in this process. */
export class PendingRevocations {
  /** The time of each revocation, by token. */
  readonly #times = new Map<string, number>();

  has(tokenId: string): boolean {
    return this.#times.has(tokenId);
  }

  /** Returns the tokens that were not pending before. */
  add(tokenIds: readonly string[], at: number): string[] {
    const added = tokenIds.filter((id) => !this.#times.has(id));
    for (const id of added) this.#times.set(id, at);
    return added;
  }

  /** Returns the token as it will be in the database. */
  applyTo(token: TokenRecord): TokenRecord {
    const revokedAt = this.#times.get(token.tokenId);
    return revokedAt === undefined ? token : { ...token, revokedAt };
  }

  /** Passes the revocations to `write` and then drops them. Does nothing if no revocations are pending. */
  async save(write: (revocations: readonly (readonly [string, number])[]) => Promise<void>): Promise<void> {
    const pending = [...this.#times];
    if (pending.length === 0) return;
    await write(pending);
    for (const [tokenId] of pending) this.#times.delete(tokenId);
  }
}

const unwritten = ["write_failed", "store_damaged", "database_full", "database_read_only"];

/** Whether an error is a disk or database failure rather than the result of invalid arguments. */
export function isNotWritten(error: unknown): boolean {
  return error instanceof SkeinError && unwritten.includes(error.code);
}
