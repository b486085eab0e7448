import type { Command } from "commander";
import { displayKey } from "../core/references.ts";
import type { RedactedPayload } from "../protocol/session-changes.ts";
import type { CommandContext } from "./command.ts";
import { examples, sessionHelp, yesOption } from "./command.ts";
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
import { answer, erasePendingLines } from "./output/answer.ts";
import { pluralize } from "./output/format.ts";
import type { GlobalOptions } from "./output/global-options.ts";
import type { Terminal } from "./output/terminal.ts";
import { confirm } from "./output/terminal.ts";

export function registerSessionsRm(command: Command, { terminal }: CommandContext): void {
  command
    .argument("<ref>", sessionHelp)
    .option("--purge", "delete a session that is in the trash for good")
    .addOption(yesOption())
    .addHelpText("after", examples("skein sessions rm trip", "skein sessions rm old-trip --purge --yes"))
    .action((ref: string) => removeCommand(terminal, ref, command.optsWithGlobals()));
}

export function registerSessionsRestore(command: Command, { terminal }: CommandContext): void {
  command
    .argument("<ref>", "a session in the trash: key, session id, label, or a beginning of the id")
    .addHelpText("after", examples("skein sessions restore old-trip"))
    .action((ref: string) => restoreCommand(terminal, ref, command.optsWithGlobals()));
}

export function registerSessionsRedact(command: Command, { terminal }: CommandContext): void {
  command
    .argument("<ref>", sessionHelp)
    .argument("<entryId...>", "entries (their ids, or unique endings of them)")
    .addOption(yesOption())
    .addHelpText("after", examples("skein sessions redact trip 48cf5c5e --yes"))
    .action((ref: string, entryIds: string[]) =>
      redactCommand(terminal, ref, entryIds, command.optsWithGlobals()),
    );
}

interface RemoveOptions extends GlobalOptions {
  readonly purge?: boolean;
  readonly yes?: boolean;
}

async function removeCommand(terminal: Terminal, name: string, options: RemoveOptions): Promise<void> {
  await withCalls(terminal, options, (open) =>
    options.purge === true ? purge(terminal, open, name, options) : toTrash(terminal, open, name, options),
  );
}

async function toTrash(
  terminal: Terminal,
  open: OpenCalls,
  name: string,
  options: RemoveOptions,
): Promise<void> {
  const key = exactKey(await resolveRef(open, name));
  const done = await open.calls.call("sessions.delete", { key, ...open.reader });
  answer(terminal, options, done, [
    `${displayKey(done.key, open.asker)} is in the trash`,
    ["undo", open.nextCommand("sessions", "restore", exactTrashedKey(done))],
  ]);
}

async function purge(
  terminal: Terminal,
  open: OpenCalls,
  name: string,
  options: RemoveOptions,
): Promise<void> {
  const found = await resolveTrashed(open, name);
  const { key, sessionId } = found;
  const shown = displayKey(key, open.asker);
  await confirm(terminal, `Delete ${shown} (${sessionId}) for good?`, options);
  const params = { key: exactTrashedKey(found), purge: true, ...open.reader };
  const done = await open.calls.call("sessions.delete", params);
  answer(terminal, options, done, [`${shown} is gone for good`, ...erasePendingLines(done)]);
}

async function restoreCommand(terminal: Terminal, name: string, options: GlobalOptions): Promise<void> {
  await withCalls(terminal, options, async (open) => {
    const key = exactTrashedKey(await resolveTrashed(open, name));
    const done = await open.calls.call("sessions.restore", { key, ...open.reader });
    answer(terminal, options, done, [`${displayKey(done.key, open.asker)} is back`, ["id", done.sessionId]]);
  });
}

async function redactCommand(
  terminal: Terminal,
  name: string,
  entryIds: readonly string[],
  options: GlobalOptions & { readonly yes?: boolean },
): Promise<void> {
  await withCalls(terminal, options, async (open) => {
    const found = await resolveRef(open, name);
    const key = exactKey(found);
    const ids: string[] = [];
    for (const each of entryIds) ids.push(await resolveEntry(open, { key, ...open.reader }, each));
    const shown = displayKey(key, open.asker);
    const what = `what ${pluralize(ids.length, "entry says", "entries say")} in ${shown}`;
    await confirm(terminal, `Erase ${what} for good, in every copy?`, options);
    const params = { key, entryIds: ids, ...open.reader };
    const done = await open.calls.call("sessions.redact", params);
    answer(terminal, options, done, linesFor(done));
  });
}

function linesFor({ sessions, mayRepeat, erasePending }: RedactedPayload): AnswerLine[] {
  const pending = erasePendingLines({ erasePending });
  if (sessions.length === 0) return ["nothing was left to erase", ...pending];
  const gone = sessions.map(
    ({ sessionId, entryIds }): AnswerLine => [sessionId, pluralize(entryIds.length, "entry", "entries")],
  );
  const repeats = mayRepeat.map(({ sessionId, entryId }): AnswerLine => [sessionId, entryId]);
  const advice = repeats.length === 0 ? [] : ["check these summaries, which may repeat it:", ...repeats];
  return ["erased for good in:", ...gone, ...advice, ...pending];
}
