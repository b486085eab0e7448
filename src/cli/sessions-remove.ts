import type { Command } from "commander";
import { displayKey } from "../core/references.ts";
import type { RedactedPayload } from "../protocol/session-changes.ts";
import type { CommandContext } from "./command.ts";
import { action, examples, sessionHelp, yesOption } from "./command.ts";
import {
  exactKey,
  exactTrashedKey,
  resolveEntry,
  resolveRef,
  resolveTrashed,
} from "./connection/resolve-session.ts";
import type { OpenCalls } from "./connection/with-calls.ts";
import { withCalls } from "./connection/with-calls.ts";
import type { AnswerLine } from "./output/answer.ts";
import { erasePendingLines, printAnswer } from "./output/answer.ts";
import { pluralize } from "./output/format.ts";
import type { Invocation } from "./output/invocation.ts";
import { commandLine } from "./output/invocation.ts";
import { confirm } from "./output/terminal.ts";

export function registerSessionsRm(command: Command, context: CommandContext): void {
  command
    .argument("<ref>", sessionHelp)
    .option("--purge", "permanently delete a session that is in the trash")
    .addOption(yesOption())
    .addHelpText("after", examples("skein sessions rm trip", "skein sessions rm old-trip --purge --yes"))
    .action(action(context, removeSession));
}

export function registerSessionsRestore(command: Command, context: CommandContext): void {
  command
    .argument("<ref>", "a session in the trash: its key, session ID, label or ID prefix")
    .addHelpText("after", examples("skein sessions restore old-trip"))
    .action(action(context, restoreSession));
}

export function registerSessionsRedact(command: Command, context: CommandContext): void {
  command
    .argument("<ref>", sessionHelp)
    .argument("<entryId...>", "the entries' IDs, or their last characters if they are unique")
    .addOption(yesOption())
    .addHelpText("after", examples("skein sessions redact trip 48cf5c5e --yes"))
    .action(action(context, redactEntries));
}

interface RemoveOptions {
  readonly purge?: boolean;
  readonly yes?: boolean;
}

async function removeSession(cli: Invocation<RemoveOptions>, name: string): Promise<void> {
  await withCalls(cli, (open) =>
    cli.options.purge === true ? purge(cli, open, name) : moveToTrash(open, name),
  );
}

async function moveToTrash(open: OpenCalls, name: string): Promise<void> {
  const key = exactKey(await resolveRef(open, name));
  const done = await open.calls.call("sessions.delete", { key, ...open.reader });
  printAnswer(open, done, [
    `moved ${displayKey(done.key, open.asker)} to the trash`,
    ["undo", commandLine(open, "sessions", "restore", exactTrashedKey(done))],
  ]);
}

async function purge(cli: Invocation<RemoveOptions>, open: OpenCalls, name: string): Promise<void> {
  const found = await resolveTrashed(open, name);
  const shown = displayKey(found.key, open.asker);
  await confirm(cli, `Permanently delete ${shown} (${found.sessionId})?`);
  const params = { key: exactTrashedKey(found), purge: true, ...open.reader };
  const done = await open.calls.call("sessions.delete", params);
  printAnswer(open, done, [`permanently deleted ${shown}`, ...erasePendingLines(done)]);
}

async function restoreSession(cli: Invocation, name: string): Promise<void> {
  await withCalls(cli, async (open) => {
    const key = exactTrashedKey(await resolveTrashed(open, name));
    const done = await open.calls.call("sessions.restore", { key, ...open.reader });
    printAnswer(open, done, [`restored ${displayKey(done.key, open.asker)}`, ["id", done.sessionId]]);
  });
}

async function redactEntries(
  cli: Invocation<{ readonly yes?: boolean }>,
  name: string,
  entryIds: readonly string[],
): Promise<void> {
  await withCalls(cli, async (open) => {
    const key = exactKey(await resolveRef(open, name));
    const ids: string[] = [];
    for (const each of entryIds) ids.push(await resolveEntry(open, { key, ...open.reader }, each));
    const shown = displayKey(key, open.asker);
    const what = `the content of ${pluralize(ids.length, "entry", "entries")} in ${shown}`;
    await confirm(cli, `Permanently erase ${what}, in every copy?`);
    const done = await open.calls.call("sessions.redact", { key, entryIds: ids, ...open.reader });
    printAnswer(open, done, linesFor(done));
  });
}

function linesFor({ sessions, mayRepeat, erasePending }: RedactedPayload): AnswerLine[] {
  const pending = erasePendingLines({ erasePending });
  if (sessions.length === 0) return ["there was nothing left to erase", ...pending];
  const gone = sessions.map(
    ({ sessionId, entryIds }): AnswerLine => [sessionId, pluralize(entryIds.length, "entry", "entries")],
  );
  const repeats = mayRepeat.map(({ sessionId, entryId }): AnswerLine => [sessionId, entryId]);
  const advice =
    repeats.length === 0 ? [] : ["check these summaries, which may contain the erased content:", ...repeats];
  return ["permanently erased in:", ...gone, ...advice, ...pending];
}
