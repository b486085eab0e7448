import { basename } from "node:path";
import type { Disk } from "./disk.ts";
import { readOwn } from "./disk-files.ts";
import type { LostRows, Salvage } from "./salvage.ts";

/** What waited in `work.db`, as it was last counted. */
export interface WorkCounts {
  /** Accepted, and not yet in their session's log. */
  readonly queuedInputs: number;
  /** Begun, and not answered yet. */
  readonly unfinishedRuns: number;
  /** Without the admin token, which lies in a file of its own. */
  readonly tokens: number;
}

/** Beside `work.db`, so that the next start can say what was lost with it. */
export const workCountsName = "work-counts.json";

/** What the last gateway counted, and when; `null`: there is no readable count. */
export function readWorkCounts(disk: Disk, path: string): (WorkCounts & { readonly at: number }) | null {
  const bytes = readOwn(disk, path);
  const at = disk.stat(path)?.modifiedAt;
  if (bytes === null || at === undefined) return null;
  try {
    const value = JSON.parse(Buffer.from(bytes).toString("utf8")) as Record<string, unknown>;
    const [queuedInputs, unfinishedRuns, tokens] = [
      value.queuedInputs,
      value.unfinishedRuns,
      value.tokens,
    ].map(Number);
    const counts = { queuedInputs, unfinishedRuns, tokens } as WorkCounts;
    return Object.values(counts).every(Number.isSafeInteger) ? { ...counts, at } : null;
  } catch {
    return null; // cut off by a crash
  }
}

/** What was lost with a whole `work.db`. */
export function describeRebuild(
  how: "missing" | "unreadable",
  sessions: number,
  counts: ReturnType<typeof readWorkCounts>,
): string {
  const from = `rebuilt from ${amount(sessions, "session log")}`;
  const begun =
    how === "missing" ? `work.db was missing and was ${from}` : `work.db could not be read and was ${from}`;
  if (counts === null)
    return `${begun}; queued inputs, unfinished runs and all tokens except the admin token are lost, in unknown numbers`;
  const { queuedInputs, unfinishedRuns, tokens, at } = counts;
  const gone = [
    amount(queuedInputs, "queued input"),
    amount(unfinishedRuns, "unfinished run"),
    amount(tokens, "token"),
  ];
  return `${begun}; lost: ${gone[0]}, ${gone[1]} and ${gone[2]}, as last counted at ${new Date(at).toISOString()}`;
}

/** What was lost of a `work.db` that was damaged in parts. */
export function describeSalvage({ problem, aside, saved, lost }: Salvage): string {
  const what = lost.length === 0 ? "nothing is lost" : `lost: ${lost.map(lostText).join(", ")}`;
  return `work.db was damaged (${problem}); rows saved into a new one: ${saved}; ${what}; the damaged file is kept as ${basename(aside)}`;
}

const shownAs: Readonly<Record<string, string>> = {
  gateway_tokens: "token",
  runs: "run",
  run_inputs: "input",
  sessions: "session",
  outbox: "outgoing message",
};

function lostText({ table, rows }: LostRows): string {
  const name = shownAs[table];
  if (rows === null)
    return name === undefined ? `an unknown number of rows of ${table}` : `an unknown number of ${name}s`;
  return name === undefined ? `${amount(rows, "row")} of ${table}` : amount(rows, name);
}

function amount(count: number, name: string): string {
  return `${count} ${name}${count === 1 ? "" : "s"}`;
}
