/** What goes along with input that one session accepts from another. */

/**
 * Who waits for the reply of a run. As long as they do, it is theirs: the end of the run sets nothing off. A waiter that is
 * gone (its run has ended, its process is dead) or whose time is over gets nothing any more, and the sequel takes its course.
 */
export interface Awaiting {
  readonly by: { readonly runId: string } | { readonly owner: string };
  readonly until: number;
}

/** How a wait for a reply stands. `taken`: the run has ended, and its reply is the waiter's. `late`: it goes as a sequel. */
export interface ReplyWait {
  readonly state: "open" | "taken" | "late";
  readonly until: number;
}

/** The ID of the entry with the result of the call that started a run: it tells whether the reply was written. */
export function resultEntryId(runId: string): string {
  return `${runId}-result`;
}

/** A session that another one spawned, for its first run. */
export interface ChildRequest {
  /** The key of the session that spawns. */
  readonly parentKey: string;
  readonly spawnId: string;
  readonly label?: string;
  readonly task: string;
  readonly mode: "run" | "session";
  readonly cleanup: "keep" | "delete";
  /** Of the parent's children whose first run is open; one more is `children_exceeded`. */
  readonly maxChildren: number;
  /** Where its attachments are, to be taken away with it; left out: nowhere, or they are to stay. */
  readonly attachments?: string;
  /** How long after its end it is archived; left out: never. */
  readonly archiveAfterMs?: number;
}
