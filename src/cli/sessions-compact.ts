import { readFile } from "node:fs/promises";
import type { Command } from "commander";
import { SkeinError } from "../core/errors.ts";
import { present } from "../core/present.ts";
import { displayKey } from "../core/references.ts";
import type { CompactedPayload } from "../protocol/session-changes.ts";
import { compactByHand } from "../sessions/compact.ts";
import type { CommandContext } from "./command.ts";
import { action, examples, sessionHelp } from "./command.ts";
import { findSession, resolveEntryInStore, resolveRef } from "./connection/resolve-session.ts";
import { withFolder } from "./connection/with-folder.ts";
import { withSkeinCalls } from "./connection/with-skein-calls.ts";
import { printAnswer } from "./output/answer.ts";
import type { Invocation } from "./output/invocation.ts";
import type { Terminal } from "./output/terminal.ts";
import { pathFrom } from "./output/terminal.ts";

export function registerSessionsCompact(command: Command, context: CommandContext): void {
  command
    .argument("<ref>", sessionHelp)
    .option("--instructions <text>", "instructions for the summary")
    .option("--summary <text>", "your own summary; @file reads it from a file")
    .option(
      "--keep-from <entryId>",
      "with --summary: the first entry to keep (its ID, or the last characters if they are unique)",
    )
    .addHelpText(
      "after",
      examples('skein sessions compact trip --summary "Goal: three calm days." --keep-from 52e90dd7'),
    )
    .action(action(context, compactCommand));
}

interface CompactOptions {
  readonly summary?: string;
  readonly keepFrom?: string;
  readonly instructions?: string;
}

async function compactCommand(cli: Invocation<CompactOptions>, name: string): Promise<void> {
  const { summary, keepFrom, instructions } = cli.options;
  if (summary === undefined && keepFrom === undefined) return compactByModel(cli, name);
  if (summary !== undefined && keepFrom !== undefined && instructions === undefined)
    return compactWithSummary(cli, name, { summary, keepFrom });
  throw new SkeinError("invalid_arguments", {
    problem: "Your own summary requires both --summary and --keep-from, without --instructions",
    advice: "Specify both, or neither to let the session's model write the summary",
  });
}

async function compactByModel(cli: Invocation<CompactOptions>, name: string): Promise<void> {
  await withSkeinCalls(cli, async (open) => {
    const { key } = await resolveRef(open, name);
    const params = { key, ...present({ instructions: cli.options.instructions }), ...open.reader };
    const done = await open.calls.call("sessions.compact", params);
    printCompacted(cli, done, displayKey(key, open.asker));
  });
}

/** Works on the folder directly because no method accepts a summary. This is safe while a gateway is running. */
async function compactWithSummary(
  cli: Invocation,
  name: string,
  given: { readonly summary: string; readonly keepFrom: string },
): Promise<void> {
  const summary = await textOrFile(cli.terminal, given.summary);
  await withFolder(cli, async (folder) => {
    const { store, scope, asker } = folder;
    const record = await findSession(folder, name);
    const keepFrom = await resolveEntryInStore(folder, record, given.keepFrom);
    const done = await compactByHand(store.sessions, scope, record, { summary, keepFrom });
    printCompacted(cli, done, displayKey(record.key, asker));
  });
}

function printCompacted(cli: Invocation, done: CompactedPayload, shown: string): void {
  const { entryId, firstKeptEntryId, tokensBefore, tokensAfter } = done;
  const now = tokensAfter === undefined ? "" : `, now ${tokensAfter}`;
  printAnswer(cli, done, [
    `${shown} has been compacted: about ${tokensBefore} tokens before${now}`,
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
    const advice = "Check the path after the @; relative paths are resolved against the working directory";
    const problem = (error as Error).message;
    throw new SkeinError("unreadable_file", { file, problem, advice }, { cause: error });
  }
}
