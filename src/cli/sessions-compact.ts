import { readFile } from "node:fs/promises";
import type { Command } from "commander";
import { SkeinError } from "../core/errors.ts";
import { present } from "../core/present.ts";
import { displayKey } from "../core/references.ts";
import type { CompactedPayload } from "../protocol/session-changes.ts";
import { compactByHand } from "../sessions/compact.ts";
import type { CommandContext } from "./command.ts";
import { examples, sessionHelp } from "./command.ts";
import { findSession, resolveEntryInStore, resolveRef } from "./connection/resolve-session.ts";
import { withFolder } from "./connection/with-folder.ts";
import { withSkeinCalls } from "./connection/with-skein-calls.ts";
import { answer } from "./output/answer.ts";
import type { GlobalOptions } from "./output/global-options.ts";
import type { Terminal } from "./output/terminal.ts";
import { pathFrom } from "./output/terminal.ts";

export function registerSessionsCompact(command: Command, { terminal }: CommandContext): void {
  command
    .argument("<ref>", sessionHelp)
    .option("--mind <text>", "instructions for the summary")
    .option("--summary <text>", "your own summary; @file reads it from a file")
    .option(
      "--keep-from <entryId>",
      "with your own summary: the first entry that is kept (its id, or a unique ending of it)",
    )
    .addHelpText(
      "after",
      examples('skein sessions compact trip --summary "Goal: three calm days." --keep-from 52e90dd7'),
    )
    .action((ref: string) => compactCommand(terminal, ref, command.optsWithGlobals()));
}

interface CompactOptions extends GlobalOptions {
  readonly summary?: string;
  readonly keepFrom?: string;
  readonly mind?: string;
}

async function compactCommand(terminal: Terminal, name: string, options: CompactOptions): Promise<void> {
  const { summary, keepFrom, mind } = options;
  if (summary === undefined && keepFrom === undefined) return byModel(terminal, name, options);
  if (summary === undefined || keepFrom === undefined || mind !== undefined) {
    throw new SkeinError("invalid_arguments", {
      problem: "Your own summary needs --summary and --keep-from, without --mind",
      advice: "Give both, or neither to let the session's model write it",
    });
  }
  await byHand(terminal, name, options, { summary, keepFrom });
}

async function byModel(terminal: Terminal, name: string, options: CompactOptions): Promise<void> {
  await withSkeinCalls(terminal, options, { workers: false }, async (open) => {
    const { key } = await resolveRef(open, name);
    const params = { key, ...present({ instructions: options.mind }), ...open.reader };
    const done = await open.calls.call("sessions.compact", params);
    tellOf(terminal, options, done, displayKey(key, open.asker));
  });
}

/** Works on the folder itself, which is safe next to a gateway: no method accepts a summary. */
async function byHand(
  terminal: Terminal,
  name: string,
  options: CompactOptions,
  given: { readonly summary: string; readonly keepFrom: string },
): Promise<void> {
  const summary = await textOrFile(terminal, given.summary);
  await withFolder(terminal, options, async (folder) => {
    const { store, scope, asker } = folder;
    const record = await findSession(folder, name);
    const keepFrom = await resolveEntryInStore(folder, record, given.keepFrom);
    const done = await compactByHand(store.sessions, scope, record, { summary, keepFrom });
    tellOf(terminal, options, done, displayKey(record.key, asker));
  });
}

function tellOf(terminal: Terminal, options: GlobalOptions, done: CompactedPayload, shown: string): void {
  const { entryId, firstKeptEntryId, tokensBefore, tokensAfter } = done;
  const now = tokensAfter === undefined ? "" : `, ${tokensAfter} now`;
  answer(terminal, options, done, [
    `${shown} is compacted: about ${tokensBefore} tokens before${now}`,
    ["entry", entryId],
    ["kept", `from ${firstKeptEntryId} on`],
  ]);
}

async function textOrFile(terminal: Terminal, text: string): Promise<string> {
  if (!text.startsWith("@")) return text;
  const file = pathFrom(terminal, text.slice(1));
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    const advice = "Check the path behind the @; it is relative to the working directory";
    const problem = (error as Error).message;
    throw new SkeinError("unreadable_file", { file, problem, advice }, { cause: error });
  }
}
