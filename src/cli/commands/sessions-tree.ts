import { readLog, readSessionFile } from "../../compose.ts";
import { treeView } from "../../sessions/tree-view.ts";
import { findSession, isFileName } from "../folder/find-session.ts";
import { withFolder } from "../folder/with-folder.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import { printTree } from "../output/print-tree.ts";
import type { Terminal } from "../output/terminal.ts";
import { pathFrom, printJson } from "../output/terminal.ts";

/** Draws every branch of a session. */
export async function showTree(
  terminal: Terminal,
  name: string,
  options: GlobalOptions & { readonly all?: boolean },
): Promise<void> {
  const view = isFileName(name)
    ? treeView(await readSessionFile(pathFrom(terminal, name)))
    : await withFolder(terminal, options, async (folder) => {
        const record = await findSession(folder, name);
        return treeView(await readLog(folder.store, record), record.key);
      });
  if (options.json === true) {
    printJson(terminal, view);
    return;
  }
  printTree(terminal, view, options.all);
}
