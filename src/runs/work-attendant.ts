import type { RemovedTexts } from "../core/removed-texts.ts";
import type { SessionRef } from "../core/session-ref.ts";

/** What became of the work of a session, to be told once the transaction is committed. */
export type TellLater = () => void;

/**
 * Work that hangs on sessions. A store calls it inside its own transaction, so that a session and its work change
 * together; what it throws keeps the change from happening.
 */
export interface WorkAttendant {
  /**
   * `conflict` while a run is running or waiting. Sleeping runs end, input that waits goes along to the new one.
   * `isOwner`: the owner of the run that goes on asks for it, and takes that run along.
   */
  reset(old: SessionRef, fresh: SessionRef, isOwner: boolean): TellLater;
  /** Runs end; what other sessions sent and nobody has read goes to the parent, or is a dead letter. */
  remove(session: SessionRef, parent: SessionRef | null): TellLater;
  /** `conflict` while a run is running or waiting. `act`: what is refused, where it is not a branch. */
  branch(session: SessionRef, act?: "reset"): void;
  /** Work that repeats redacted entries says nothing of them any more. */
  redact(removed: RemovedEntries): void;
  /**
   * Nothing of these sessions is left. With a user, nothing of that user either: all of the user's sessions are among these.
   */
  purge(uids: readonly string[], userId?: string): void;
  /**
   * Removes the files that these sessions were handed, or that redacted entries handed to children, where nobody has changed them.
   * Not in a transaction.
   */
  discardFiles(of: readonly string[] | RemovedEntries): Promise<void>;
  /** Whether a session has or had a run. */
  hasRuns(uid: string): boolean;
  /** Whether input that is yet to be read refers to a blob. */
  isBlobInUse(sha256: string): boolean;
}

/** Entries that are redacted, in the session and in the copies of it. */
export interface RemovedEntries {
  /** The sessions, by their internal ids. */
  readonly uids: readonly string[];
  readonly entryIds: ReadonlySet<string>;
  /** The calls that stood in them. */
  readonly toolCallIds: ReadonlySet<string>;
  readonly texts: RemovedTexts;
}
