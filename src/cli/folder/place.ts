import { join } from "node:path";
import type { GlobalOptions } from "../output/global-options.ts";
import type { Terminal } from "../output/terminal.ts";
import { pathFrom } from "../output/terminal.ts";

/** Where the sessions are, and who says so. */
export interface FolderPlace {
  readonly root: string;
  readonly from: "--dir" | "SKEIN_DIR" | "default";
}

export function folderPlace(terminal: Terminal, options: GlobalOptions): FolderPlace {
  const { dir } = options;
  if (dir !== undefined) return { root: pathFrom(terminal, dir), from: "--dir" };
  const set = terminal.env.SKEIN_DIR ?? "";
  if (set !== "") return { root: pathFrom(terminal, set), from: "SKEIN_DIR" };
  return { root: join(terminal.home, ".skein"), from: "default" };
}
