import type { SessionRef } from "../core/session-ref.ts";
import type { AfterCommit, Ledger, WorkAttendant } from "../runs/contract.ts";
import type { Scope, SessionInit, SessionRecord, StoreChange } from "./contract.ts";

/** How runs are connected to a store's sessions. Not part of the store contract. */
export interface StoreWork {
  readonly ledger: Ledger;
  /** Registers the attendant that is called in transactions that reset, remove and purge sessions, and before a branch. */
  attend(attendant: WorkAttendant): void;
  /**
   * The session that has a key or session ID now; `null`: none. Synchronous, so it can be called inside a transaction.
   */
  find(
    userId: string | null,
    by: { readonly key: string } | { readonly sessionId: string },
  ): SessionRef | null;
  /** The session that has a key now, as the store itself knows it; `null`: none. Its log is not read. */
  locate(userId: string | null, key: string): Promise<SessionRef | null>;
  /**
   * Creates a session together with its first run. `act` runs in the transaction that claims the names; if it throws, nothing
   * is created. What it returns is called after the commit. If the log cannot be written then, it is created at first use, and
   * the record is returned anyway.
   */
  create(scope: Scope, init: SessionInit, act: (session: SessionRef) => AfterCommit): Promise<SessionRecord>;
  /** Changes made by this process, for sessions of all users. */
  watch(listener: (change: StoreChange) => void): () => void;
  /** The users with sessions; `null`: the unnamed user. */
  users(): readonly (string | null)[];
  /** Erases the bytes of deleted rows from the file of the ledger. */
  erase(): void;
  /** Completes changes that earlier processes did not finish. */
  settle(): Promise<void>;
}

export const doNothing: AfterCommit = () => undefined;

const noAttendant: WorkAttendant = {
  reset: () => doNothing,
  remove: () => doNothing,
  branch: () => undefined,
  redact: () => undefined,
  purge: () => undefined,
  discardFiles: async () => undefined,
  hasRuns: () => false,
  isBlobInUse: () => false,
};

/** Holds the attendant of a store. Does nothing until runs are attached. */
export class Attendance {
  attendant: WorkAttendant = noAttendant;
}
