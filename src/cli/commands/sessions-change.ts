import { SkeinError } from "../../core/errors.ts";
import { displayKey } from "../../core/references.ts";
import { sessionState } from "../../sessions/session-state.ts";
import type { SessionRecord } from "../../store/contract.ts";
import { findSession } from "../folder/find-session.ts";
import type { Folder } from "../folder/with-folder.ts";
import { withFolder } from "../folder/with-folder.ts";
import type { AnswerLine } from "../output/answer.ts";
import { answer } from "../output/answer.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import type { Terminal } from "../output/terminal.ts";

export interface RenameOptions extends GlobalOptions {
  readonly name?: string;
  readonly clear?: boolean;
}

export async function renameCommand(
  terminal: Terminal,
  ref: string,
  label: string | undefined,
  options: RenameOptions,
): Promise<void> {
  const { name, clear } = options;
  if ([label !== undefined, name !== undefined, clear === true].filter(Boolean).length !== 1) {
    throw new SkeinError("invalid_arguments", {
      problem: "A session is renamed by a label, by --name or by --clear",
      advice: "Give exactly one of them",
    });
  }
  await withFolder(terminal, options, async (folder) => {
    const found = await findSession(folder, ref);
    const record =
      name === undefined
        ? await folder.store.sessions.patch(folder.scope, found.sessionId, { label: label ?? null })
        : await setName(folder, found, name);
    const shown = displayKey(record.key, folder.asker);
    const what =
      name === undefined
        ? label === undefined
          ? "has no label now"
          : `has the label ${label}`
        : name.trim() === ""
          ? "has no name now"
          : `is called ${name}`;
    answer(terminal, options, sessionState(record), [`${shown} ${what}`]);
  });
}

/** The name is an entry, so that other programs show it too. */
async function setName(
  { store, scope }: Folder,
  record: SessionRecord,
  text: string,
): Promise<SessionRecord> {
  const name = text.trim();
  const draft = { type: "session_info", ...(name === "" ? {} : { name }) } as const;
  await store.sessions.append(scope, record.sessionId, [{ draft }]);
  return (await store.sessions.get(scope, record.sessionId)) ?? record;
}

export async function archiveCommand(
  terminal: Terminal,
  name: string,
  options: GlobalOptions & { readonly undo?: boolean },
): Promise<void> {
  await withFolder(terminal, options, async (folder) => {
    const { sessionId } = await findSession(folder, name);
    const archived = options.undo === true ? null : true;
    const record = await folder.store.sessions.patch(folder.scope, sessionId, { archived });
    const shown = displayKey(record.key, folder.asker);
    const lines: AnswerLine[] =
      archived === null
        ? [`${shown} is in lists again`]
        : [`${shown} is archived`, ["undo", folder.toType("sessions", "archive", name, "--undo")]];
    answer(terminal, options, sessionState(record), lines);
  });
}
