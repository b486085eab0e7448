import type { ContextMessage } from "../../core/context.ts";
import { isRecord } from "../../core/is-record.ts";

/** The files that tool calls read or changed. Stored with every summary and passed on to the next one. */
export interface TouchedFiles {
  readonly readFiles: readonly string[];
  /** Includes files that were also read. */
  readonly modifiedFiles: readonly string[];
}

export const noFiles: TouchedFiles = { readFiles: [], modifiedFiles: [] };

const maxFiles = 500;
const maxPathCharacters = 1024;
const pathArguments = ["path", "file_path", "filePath", "filepath", "file", "filename", "notebook_path"];
/** Matched against the words in a tool's name. All other tools are assumed to read files. */
const modifying = "write edit create patch replace insert append delete remove move rename save".split(" ");
const searching = "ls list find glob grep search tree dir cd".split(" ");

export function collectFiles(messages: readonly ContextMessage[]): TouchedFiles {
  const read = new Set<string>();
  const modified = new Set<string>();
  for (const message of messages) {
    if (message.role !== "assistant") continue;
    for (const block of message.content) {
      if (block.type !== "toolCall") continue;
      const path = pathOf(block.arguments);
      const kind = path === null ? "none" : kindOf(block.name);
      if (path === null || kind === "none") continue;
      (kind === "modifies" ? modified : read).add(path);
    }
  }
  return toTouchedFiles(read, modified);
}

/** Merges the files of two ranges. If there are too many files, the newer ones are kept. */
export function mergeFiles(older: TouchedFiles, newer: TouchedFiles): TouchedFiles {
  const read = new Set([...newer.readFiles, ...older.readFiles]);
  return toTouchedFiles(read, new Set([...newer.modifiedFiles, ...older.modifiedFiles]));
}

/** Reads the `details` of a compaction by Skein or pi. For any other value, returns no files. */
export function readFilesOf(details: unknown): TouchedFiles {
  if (!isRecord(details)) return noFiles;
  const paths = (value: unknown) => (Array.isArray(value) ? value.filter(isPath) : []);
  return toTouchedFiles(new Set(paths(details.readFiles)), new Set(paths(details.modifiedFiles)));
}

function toTouchedFiles(read: ReadonlySet<string>, modified: ReadonlySet<string>): TouchedFiles {
  const first = (paths: Iterable<string>) => [...paths].slice(0, maxFiles).toSorted();
  return {
    readFiles: first([...read].filter((path) => !modified.has(path))),
    modifiedFiles: first(modified),
  };
}

function pathOf(given: unknown): string | null {
  if (!isRecord(given)) return null;
  const name = pathArguments.find((each) => Object.hasOwn(given, each) && isPath(given[each]));
  return name === undefined ? null : (given[name] as string);
}

function isPath(value: unknown): value is string {
  return (
    typeof value === "string" &&
    value.trim() !== "" &&
    value.length <= maxPathCharacters &&
    !/[\n\r\u2028\u2029]/.test(value)
  );
}

function kindOf(name: string): "reads" | "modifies" | "none" {
  const words = name.slice(0, 200).match(/[A-Z]?[a-z]+|[A-Z]+(?![a-z])/g) ?? [];
  const has = (known: readonly string[]) => words.some((word) => known.includes(word.toLowerCase()));
  if (has(modifying)) return "modifies";
  return has(searching) ? "none" : "reads";
}
