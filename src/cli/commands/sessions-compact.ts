import { readFile } from "node:fs/promises";
import { SkeinError } from "../../core/errors.ts";
import { displayKey } from "../../core/references.ts";
import { compactByHand } from "../../sessions/compact-by-hand.ts";
import { findEntryId } from "../folder/find-entry.ts";
import { findSession } from "../folder/find-session.ts";
import { withFolder } from "../folder/with-folder.ts";
import { answer } from "../output/answer.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import type { Terminal } from "../output/terminal.ts";
import { pathFrom } from "../output/terminal.ts";

export interface CompactOptions extends GlobalOptions {
  readonly summary: string;
  readonly keepFrom: string;
}

export async function compactCommand(
  terminal: Terminal,
  name: string,
  options: CompactOptions,
): Promise<void> {
  const summary = await textOrFile(terminal, options.summary);
  await withFolder(terminal, options, async (folder) => {
    const { store, scope, asker } = folder;
    const record = await findSession(folder, name);
    const keepFrom = await findEntryId(folder, record, options.keepFrom);
    const done = await compactByHand(store.sessions, scope, record, { summary, keepFrom });
    answer(terminal, options, done, [
      `${displayKey(record.key, asker)} is compacted: about ${done.tokensBefore} tokens before`,
      ["entry", done.entryId],
      ["kept", `from ${keepFrom} on`],
    ]);
  });
}

async function textOrFile(terminal: Terminal, text: string): Promise<string> {
  if (!text.startsWith("@")) return text;
  const file = pathFrom(terminal, text.slice(1));
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    const advice = "Check the path behind the @; it is taken from where you stand";
    const problem = (error as Error).message;
    throw new SkeinError("unreadable_file", { file, problem, advice }, { cause: error });
  }
}
