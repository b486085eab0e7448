import { displayKey } from "../../core/references.ts";
import { exactName, exactTrashedName, resolveRef, resolveTrashed } from "../connection/resolve-session.ts";
import type { OpenCalls } from "../connection/with-calls.ts";
import { withCalls } from "../connection/with-calls.ts";
import { answer, pendingLines } from "../output/answer.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import type { Terminal } from "../output/terminal.ts";
import { confirm } from "../output/terminal.ts";

export interface RemoveOptions extends GlobalOptions {
  readonly purge?: boolean;
  readonly yes?: boolean;
}

export async function removeCommand(terminal: Terminal, name: string, options: RemoveOptions): Promise<void> {
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
  const key = exactName(await resolveRef(open, name));
  const done = await open.calls.call("sessions.delete", { key, ...open.reader });
  answer(terminal, options, done, [
    `${displayKey(done.key, open.asker)} is in the trash`,
    ["undo", open.toType("sessions", "restore", exactTrashedName(done))],
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
  const params = { key: exactTrashedName(found), purge: true, ...open.reader };
  const done = await open.calls.call("sessions.delete", params);
  answer(terminal, options, done, [`${shown} is gone for good`, ...pendingLines(done)]);
}

export async function restoreCommand(
  terminal: Terminal,
  name: string,
  options: GlobalOptions,
): Promise<void> {
  await withCalls(terminal, options, async (open) => {
    const key = exactTrashedName(await resolveTrashed(open, name));
    const done = await open.calls.call("sessions.restore", { key, ...open.reader });
    answer(terminal, options, done, [`${displayKey(done.key, open.asker)} is back`, ["id", done.sessionId]]);
  });
}
