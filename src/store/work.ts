import type { SessionRef } from "../core/session-ref.ts";
import type { AfterCommit, Ledger, WorkAttendant } from "../runs/contract.ts";
import type { Scope, SessionInit, SessionRecord, StoreChange } from "./contract.ts";

/** Connects runs to a store's sessions. Not part of the store contract. */
export interface StoreWork {
  readonly ledger: Ledger;
  /** Registers the attendant, which is called in transactions that reset, remove and purge sessions, and before a branch. */
  attend(attendant: WorkAttendant): void;
  /**
   * Returns the session that currently has the given key or session ID, or `null`. Synchronous so that it can be called inside
   * a transaction.
   */
  find(
    userId: string | null,
    by: { readonly key: string } | { readonly sessionId: string },
  ): SessionRef | null;
  /** Like `find` with a key, but queries the store itself. Does not read the session's log. */
  locate(userId: string | null, key: string): Promise<SessionRef | null>;
  /**
   * Creates a session together with its first run. `act` runs in the transaction that claims the names. If it throws,
   * nothing is created. The function that it returns is called after the commit. If the log cannot be written at that
   * point, it is created on first use, and the record is returned anyway.
   */
  create(scope: Scope, init: SessionInit, act: (session: SessionRef) => AfterCommit): Promise<SessionRecord>;
  /** Reports changes made by this process, for sessions of all users. */
  watch(listener: (change: StoreChange) => void): () => void;
  /** Returns the users with sessions. `null` is the unnamed user. */
  users(): readonly (string | null)[];
  /** Erases the bytes of deleted rows from the ledger's file. */
  erase(): void;
  /** Completes changes that earlier processes left unfinished. */
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

/** Holds a store's attendant, if any. Does nothing until runs are attached. */
export class Attendance {
  attendant: WorkAttendant = noAttendant;
}
