import { readSessionFile } from "../../app/folder.ts";
import { treeView } from "../../sessions/tree-view.ts";
import { isFileName, resolveRef, wholeTree } from "../connection/resolve-session.ts";
import { withCalls } from "../connection/with-calls.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import { printTree } from "../output/print-session.ts";
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
    : await withCalls(terminal, options, async (open) => {
        const { key } = await resolveRef(open, name);
        return wholeTree(open, { key, ...open.reader });
      });
  if (options.json === true) {
    printJson(terminal, view);
    return;
  }
  printTree(terminal, view, { all: options.all, option: "--all" });
}
