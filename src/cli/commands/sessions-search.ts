import { SkeinError } from "../../core/errors.ts";
import { present } from "../../core/present.ts";
import { displayKey } from "../../core/references.ts";
import type { SearchPayload } from "../../protocol/session-list.ts";
import { resolveRef } from "../connection/resolve-session.ts";
import type { OpenCalls } from "../connection/with-calls.ts";
import { bringUpIndex, withCalls } from "../connection/with-calls.ts";
import { counted, shownTime, timeOf } from "../output/format.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import type { Terminal } from "../output/terminal.ts";
import { oneLine, paint, printJson, wholeLine } from "../output/terminal.ts";

export interface SearchOptions extends GlobalOptions {
  readonly session?: string;
  readonly role?: string;
  readonly since?: string;
  readonly until?: string;
  readonly limit?: number;
}

export async function searchCommand(terminal: Terminal, text: string, options: SearchOptions): Promise<void> {
  const { session, role, since, until, limit } = options;
  if (text.trim() === "") {
    throw new SkeinError("invalid_arguments", {
      problem: "There is nothing to search for",
      advice: "Give a word",
    });
  }
  const now = terminal.now();
  const times = {
    since: since === undefined ? null : timeOf(since, now),
    until: until === undefined ? null : timeOf(until, now),
  };
  await withCalls(terminal, options, async (open) => {
    const key = session === undefined ? null : (await resolveRef(open, session)).key;
    await bringUpIndex(terminal, open);
    const asked = { query: text, ...present({ key, role, ...times, limit }), ...open.reader };
    const found = await open.calls.call("sessions.search", asked);
    if (options.json === true) printJson(terminal, found);
    else printHits(terminal, open, found);
  });
}

function printHits(terminal: Terminal, { asker }: OpenCalls, { hits, indexing }: SearchPayload): void {
  if (hits.length === 0) terminal.out("nothing found\n");
  for (const [index, { key, entryId, role, time, snippet }] of hits.entries()) {
    const parts = [displayKey(key, asker), role, shownTime(time), `…${entryId.slice(-8)}`];
    const where = parts.join(" · ");
    terminal.out(`${index === 0 ? "" : "\n"}${paint(terminal, "bold", wholeLine(where))}\n`);
    terminal.out(`  ${oneLine(snippet, terminal.columns - 2)}\n`);
  }
  if (indexing !== undefined) {
    const text = `the index is behind for ${counted(indexing.behind, "session")}; there may be more`;
    terminal.out(`${paint(terminal, "dim", oneLine(text, terminal.columns))}\n`);
  }
}
