import type { Run, RunState } from "../contract.ts";
import type { Books } from "./books.ts";

/** Tells the run that spawned this one how it stands. */
export function tellStarter(
  books: Books,
  { kind, startedBy, session, runId }: Pick<Run, "kind" | "startedBy" | "session" | "runId">,
  state: RunState,
): void {
  if (kind !== "spawn" || startedBy === null) return;
  const starter = books.row(startedBy);
  if (starter === null) return;
  books.note("run.child", starter.session, startedBy, {
    childSessionKey: session.key,
    childRunId: runId,
    state,
  });
}
