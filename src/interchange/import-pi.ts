import type { DiagnosticCode } from "../core/diagnostics.ts";
import { parsingSession } from "../core/parse-session.ts";
import type { Steps } from "../core/slices.ts";
import { SessionTree } from "../core/tree.ts";
import type { ImportedSession, ImportOptions } from "./imported-session.ts";
import { fileStem, Losses, toSessionId } from "./imported-session.ts";

/**
 * Imports sessions from pi and OpenClaw, versions 1 to 3, and Skein's own. They share one line format, so nothing is
 * converted. `notKept` lists only damage. All problems found while reading are in `tree.diagnostics`.
 */
export function* importPi(source: string | Uint8Array, options: ImportOptions = {}): Steps<ImportedSession> {
  const session = yield* parsingSession(source);
  const stem = fileStem(options.file) ?? "imported";
  const tree = yield* SessionTree.growing(session, { lostHeader: { id: toSessionId(stem) } });
  const losses = new Losses();
  for (const { code, line, entryId } of tree.diagnostics) {
    const what = lossTexts[code];
    if (what !== undefined) losses.add(what, line === undefined ? entryId : `line ${line}`);
  }
  const { header } = tree;
  return {
    source: session.header?.skein === undefined ? "pi" : "skein",
    sessionId: session.header?.id ?? stem,
    cwd: header.cwd ?? "",
    startedAt: Date.parse(header.timestamp ?? "") || 0,
    name: tree.name,
    tree,
    notKept: losses.list(),
  };
}

const lossTexts: Partial<Record<DiagnosticCode, string>> = {
  corrupt_line: "A damaged line was skipped.",
  foreign_line: "A line from another program before the header was skipped.",
  header_missing: "The header is missing, so the working directory is unknown.",
  extra_header: "A second header was skipped.",
  invalid_entry: "An invalid entry keeps its position but is not sent to models.",
  conflicting_id: "An entry with a duplicate ID was skipped.",
  missing_parent: "An entry whose parent is missing starts a separate branch.",
  cycle_cut: "An entry that was its own ancestor starts a separate branch.",
  unknown_leaf_target: "A move to a missing entry was skipped.",
};
