import type { SessionRef } from "../core/session-ref.ts";
import type { Ledger, TellLater, WorkAttendant } from "../runs/contract.ts";
import type { Scope, SessionInit, SessionRecord, StoreChange } from "./contract.ts";

/** Where the work of a store's sessions is kept, and who is asked when they change. Not part of what every store must do. */
export interface StoreWork {
  readonly ledger: Ledger;
  /** From now on it is called within the transactions that reset, remove and purge sessions, and before a branch. */
  attend(attendant: WorkAttendant): void;
  /** The session that has a key, or a session id, now; `null`: none. At once, inside a transaction too. */
  find(
    userId: string | null,
    by: { readonly key: string } | { readonly sessionId: string },
  ): SessionRef | null;
  /**
   * Makes a session together with the work that hangs on it: `act` is called in the very transaction that takes its names,
   * and what it throws keeps it from happening; what it gives is called once that is committed. From then on both are there:
   * a log that cannot be written now is made at first use, and the record is given all the same.
   */
  create(scope: Scope, init: SessionInit, act: (session: SessionRef) => TellLater): Promise<SessionRecord>;
  /** What this process changes, whoever's session it is. */
  watch(listener: (change: StoreChange) => void): () => void;
  /** The users that have sessions; `null` is the unnamed user. */
  users(): readonly (string | null)[];
  /** Erases the bytes of removed rows from the file of the ledger. */
  erase(): void;
  /** Finishes changes that earlier processes left half done. */
  settle(): Promise<void>;
}

const nothing: TellLater = () => undefined;

/** Nobody works on the sessions of this store. */
const nobody: WorkAttendant = {
  reset: () => nothing,
  remove: () => nothing,
  branch: () => undefined,
  redact: () => undefined,
  purge: () => undefined,
  discardFiles: async () => undefined,
  hasRuns: () => false,
  isBlobInUse: () => false,
};

/** Who is asked; there is one at the most. */
export class Attendance {
  #attendant: WorkAttendant = nobody;

  get attendant(): WorkAttendant {
    return this.#attendant;
  }

  attend(attendant: WorkAttendant): void {
    this.#attendant = attendant;
  }
}
