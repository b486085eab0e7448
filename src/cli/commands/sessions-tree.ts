import { readSessionFile } from "../../compose.ts";
import type { TreePayload } from "../../protocol/session-payloads.ts";
import { treeView } from "../../sessions/tree-view.ts";
import { isFileName } from "../folder/find-session.ts";
import { resolveRef } from "../folder/resolve-ref.ts";
import type { OpenCalls } from "../folder/with-calls.ts";
import { withCalls } from "../folder/with-calls.ts";
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
    : await withCalls(terminal, options, (open) => wholeTree(open, name));
  if (options.json === true) {
    printJson(terminal, view);
    return;
  }
  printTree(terminal, view, options.all);
}

/** Every page of it as one: a command answers once. */
async function wholeTree(open: OpenCalls, name: string): Promise<TreePayload> {
  const { key } = await resolveRef(open, name);
  const asked = { key, limit: 10_000, ...open.reader };
  let { nextAfter, ...view } = await open.calls.call("sessions.tree", asked);
  const entries = [...view.entries];
  while (nextAfter !== undefined) {
    ({ nextAfter, ...view } = await open.calls.call("sessions.tree", { ...asked, after: nextAfter }));
    for (const entry of view.entries) entries.push(entry);
  }
  return { ...view, entries };
}
