import { SkeinError } from "../../core/errors.ts";
import { displayKey } from "../../core/references.ts";
import type { DeletedPayload } from "../../protocol/session-changes.ts";
import { removeSession } from "../../sessions/remove-session.ts";
import { sessionState } from "../../sessions/session-state.ts";
import { findSession, findTrashed } from "../folder/find-session.ts";
import type { Folder } from "../folder/with-folder.ts";
import { withFolder } from "../folder/with-folder.ts";
import { answer } from "../output/answer.ts";
import { confirm } from "../output/confirm.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import type { Terminal } from "../output/terminal.ts";

export interface RemoveOptions extends GlobalOptions {
  readonly purge?: boolean;
  readonly yes?: boolean;
}

export async function removeCommand(terminal: Terminal, name: string, options: RemoveOptions): Promise<void> {
  await withFolder(terminal, options, (folder) =>
    options.purge === true
      ? purge(terminal, folder, name, options)
      : toTrash(terminal, folder, name, options),
  );
}

async function toTrash(
  terminal: Terminal,
  folder: Folder,
  name: string,
  options: RemoveOptions,
): Promise<void> {
  const record = await findSession(folder, name);
  const payload = await removeSession(folder.store.sessions, folder.scope, record, folder.asker);
  answer(terminal, options, payload, [
    `${displayKey(record.key, folder.asker)} is in the trash`,
    ["undo", folder.toType("sessions", "restore", record.sessionId)],
  ]);
}

async function purge(
  terminal: Terminal,
  folder: Folder,
  name: string,
  options: RemoveOptions,
): Promise<void> {
  const { store, scope, asker } = folder;
  const { key, sessionId } = await findTrashed(folder, name);
  const shown = displayKey(key, asker);
  await confirm(terminal, `Delete ${shown} (${sessionId}) for good?`, options);
  if (!(await store.sessions.purge(scope, sessionId))) {
    const problem = `${sessionId} is no longer in the trash`;
    throw new SkeinError("conflict", { problem, advice: "`skein sessions ls` shows whether somebody restored it" });
  }
  const payload: DeletedPayload = { key, sessionId, state: "purged" };
  answer(terminal, options, payload, [`${shown} is gone for good`]);
}

export async function restoreCommand(
  terminal: Terminal,
  name: string,
  options: GlobalOptions,
): Promise<void> {
  await withFolder(terminal, options, async (folder) => {
    const { sessionId } = await findTrashed(folder, name);
    const record = await folder.store.sessions.restore(folder.scope, sessionId);
    const shown = displayKey(record.key, folder.asker);
    answer(terminal, options, sessionState(record), [`${shown} is back`, ["id", record.sessionId]]);
  });
}
