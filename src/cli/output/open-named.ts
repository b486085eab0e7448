import { readSessionFile } from "../../compose.ts";
import { SkeinError } from "../../core/errors.ts";
import type { SessionTree } from "../../core/tree.ts";
import type { Terminal } from "./terminal.ts";
import { pathFrom } from "./terminal.ts";

/** Opens what the user named: something with a slash or ending in .jsonl is a file. */
export async function openNamed(terminal: Terminal, name: string): Promise<SessionTree> {
  requireFileName(name);
  return readSessionFile(pathFrom(terminal, name));
}

/** Refuses what cannot be a file. */
export function requireFileName(name: string): void {
  if (!/[/\\]|\.jsonl$/.test(name)) {
    throw new SkeinError("invalid_arguments", {
      problem: `"${name}" does not look like a session file`,
      advice: "Give a path with a slash, or one that ends in .jsonl",
    });
  }
}

const shortestEnding = 4;

/** The entry that an id means: itself, or the one entry whose id ends so, as the tree prints it. */
export function entryIdOf(tree: SessionTree, text: string): string {
  if (tree.entry(text) !== null) return text;
  const ending = text.replace(/^…/, "");
  const found =
    ending.length < shortestEnding
      ? []
      : Array.from(tree.entries(), ({ id }) => id).filter((id) => id.endsWith(ending));
  if (found.length > 1) {
    throw new SkeinError("ambiguous", {
      name: text,
      what: "entry",
      candidates: found.slice(0, 5).join(", "),
    });
  }
  return found[0] ?? text;
}
