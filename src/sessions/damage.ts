import type { SessionTree } from "../core/tree.ts";
import type { RepairPayload } from "../protocol/session-views.ts";

/** What is damaged in a log, in the shape of a repair that changed nothing. */
export function damageIn(file: string, tree: SessionTree): RepairPayload {
  const found = (code: string) => tree.diagnostics.filter((each) => each.code === code);
  return {
    file,
    damaged: found("corrupt_line").map(({ line = 0, note }) => ({ line, reason: note })),
    headerRebuilt: false,
    bridged: found("bridged_parent").map(({ entryId = "" }) => entryId),
    kept: tree.size,
    backup: null,
  };
}
