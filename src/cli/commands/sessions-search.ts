import { SkeinError } from "../../core/errors.ts";
import { present } from "../../core/present.ts";
import { displayKey } from "../../core/references.ts";
import type { SearchPayload } from "../../protocol/session-list.ts";
import { searchSessions } from "../../sessions/list-sessions.ts";
import { bringUpIndex } from "../folder/bring-up-index.ts";
import { findSession } from "../folder/find-session.ts";
import type { Folder } from "../folder/with-folder.ts";
import { withFolder } from "../folder/with-folder.ts";
import { counted } from "../output/amounts.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import type { Terminal } from "../output/terminal.ts";
import { oneLine, paint, printJson } from "../output/terminal.ts";
import { shownTime, timeOf } from "../output/times.ts";

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
  await withFolder(terminal, options, async (folder) => {
    const sessionId = session === undefined ? null : (await findSession(folder, session)).sessionId;
    await bringUpIndex(terminal, folder);
    const query = present({ text, sessionId, role, ...times, limit });
    const found = await searchSessions(folder.store, folder.scope, query);
    if (options.json === true) printJson(terminal, found);
    else printHits(terminal, folder, found);
  });
}

function printHits(terminal: Terminal, { asker }: Folder, { hits, indexing }: SearchPayload): void {
  if (hits.length === 0) terminal.out("nothing found\n");
  for (const [index, { key, entryId, role, time, snippet }] of hits.entries()) {
    const parts = [displayKey(key, asker), role, shownTime(time), `…${entryId.slice(-8)}`];
    const where = parts.join(" · ");
    terminal.out(`${index === 0 ? "" : "\n"}${paint(terminal, "bold", oneLine(where, terminal.columns))}\n`);
    terminal.out(`  ${oneLine(snippet, terminal.columns - 2)}\n`);
  }
  if (indexing !== undefined) {
    const text = `the index is behind for ${counted(indexing.behind, "session")}; there may be more`;
    terminal.out(`${paint(terminal, "dim", oneLine(text, terminal.columns))}\n`);
  }
}
