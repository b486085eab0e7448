import { withProgress } from "../output/progress.ts";
import type { Terminal } from "../output/terminal.ts";
import type { Folder } from "./with-folder.ts";

/** A command answers once: it waits until the index has everything, where a server would say that it is behind. */
export async function bringUpIndex(terminal: Terminal, { store }: Folder): Promise<void> {
  await withProgress(terminal, "Indexing", (update) => store.upkeep.bringUpIndex(update));
}
