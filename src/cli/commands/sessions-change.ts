import { SkeinError } from "../../core/errors.ts";
import { displayKey } from "../../core/references.ts";
import { exactName, resolveRef } from "../connection/resolve-session.ts";
import { withCalls } from "../connection/with-calls.ts";
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
  await withCalls(terminal, options, async (open) => {
    const key = exactName(await resolveRef(open, ref));
    const called = name?.trim() ?? "";
    const wish = name === undefined ? { label: label ?? null } : { name: called === "" ? null : called };
    const done = await open.calls.call("sessions.rename", { key, ...wish, ...open.reader });
    const what =
      name === undefined
        ? label === undefined
          ? "has no label now"
          : `has the label ${label}`
        : called === ""
          ? "has no name now"
          : `is called ${name}`;
    answer(terminal, options, done, [`${displayKey(done.key, open.asker)} ${what}`]);
  });
}

export async function archiveCommand(
  terminal: Terminal,
  name: string,
  options: GlobalOptions & { readonly undo?: boolean },
): Promise<void> {
  await withCalls(terminal, options, async (open) => {
    const key = exactName(await resolveRef(open, name));
    const archived = options.undo !== true;
    const done = await open.calls.call("sessions.archive", { key, archived, ...open.reader });
    const shown = displayKey(done.key, open.asker);
    const lines: AnswerLine[] = archived
      ? [`${shown} is archived`, ["undo", open.toType("sessions", "archive", name, "--undo")]]
      : [`${shown} is in lists again`];
    answer(terminal, options, done, lines);
  });
}
