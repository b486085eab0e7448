import type { Diagnostic, DiagnosticCode } from "../core/diagnostics.ts";
import { parsingSession } from "../core/parse-session.ts";
import type { Steps } from "../core/slices.ts";
import { SessionTree } from "../core/tree.ts";
import type { ImportedSession, ImportOptions } from "./imported.ts";
import { Losses, ownSessionId, stemOf } from "./imported.ts";

/**
 * Sessions of pi and OpenClaw, versions 1 to 3, and our own: the same line format, so nothing is converted. What
 * reading found damaged is in `notKept`; what it read as it was meant is in `tree.diagnostics` alone.
 */
export function* importPi(source: string | Uint8Array, options: ImportOptions = {}): Steps<ImportedSession> {
  const session = yield* parsingSession(source);
  const stem = stemOf(options.file) ?? "imported";
  const tree = yield* SessionTree.growing(session, { lostHeader: { id: ownSessionId(stem) } });
  const losses = new Losses();
  for (const found of tree.diagnostics) {
    const what = lossOf[found.code];
    if (what !== undefined) losses.add(what, placeOf(found));
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

const lossOf: Partial<Record<DiagnosticCode, string>> = {
  corrupt_line: "A damaged line was passed over.",
  foreign_line: "A line before the header that belongs to another program was passed over.",
  header_missing: "The header is lost: the working directory is not known.",
  extra_header: "A second header was passed over.",
  invalid_entry: "An entry of a wrong shape keeps its place, but no model is shown it.",
  conflicting_id: "An entry whose id another one has was passed over.",
  missing_parent: "An entry whose parent is lost begins a branch of its own.",
  cycle_cut: "An entry that was its own ancestor begins a branch of its own.",
  unknown_leaf_target: "A move to an entry that is not there was passed over.",
};

function placeOf({ line, entryId }: Diagnostic): string | undefined {
  return line === undefined ? entryId : `line ${line}`;
}
