import type { BackupPayload } from "../../protocol/upkeep.ts";
import { withFolder } from "../folder/with-folder.ts";
import { counted, shownBytes } from "../output/amounts.ts";
import { answer } from "../output/answer.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import { withProgress } from "../output/progress.ts";
import type { Terminal } from "../output/terminal.ts";
import { pathFrom } from "../output/terminal.ts";

/** Copies the folder as it is at one moment. */
export async function backupCommand(
  terminal: Terminal,
  target: string,
  options: GlobalOptions,
): Promise<void> {
  const folder = pathFrom(terminal, target);
  await withFolder(terminal, options, async ({ store }) => {
    const done = await withProgress(terminal, "Copying", (update) => store.upkeep.backup(folder, update));
    const payload: BackupPayload = { folder, files: done.files, bytes: done.bytes };
    answer(terminal, options, payload, [
      `copied ${counted(done.files, "file")}, ${shownBytes(done.bytes)}, to ${folder}`,
    ]);
  });
}
