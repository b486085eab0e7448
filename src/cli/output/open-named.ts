import { readSessionFile } from "../../compose.ts";
import { SkeinError } from "../../core/errors.ts";
import type { SessionTree } from "../../core/tree.ts";
import type { Terminal } from "./terminal.ts";
import { pathFrom } from "./terminal.ts";

/** Opens what the user named: something with a slash or ending in .jsonl is a file. */
export async function openNamed(terminal: Terminal, name: string): Promise<SessionTree> {
  if (!/[/\\]|\.jsonl$/.test(name)) {
    throw new SkeinError("invalid_arguments", {
      problem: `"${name}" is not a session file`,
      advice: `Give a path with a slash or the ending .jsonl, such as ./${name}.jsonl`,
    });
  }
  return readSessionFile(pathFrom(terminal, name));
}
