import type { Dirent } from "node:fs";
import fs, { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { refuseSpecialFile } from "../../app/folder.ts";
import { SkeinError } from "../../core/errors.ts";
import type { ImportWish } from "../../sessions/import.ts";
import type { Source, Sources } from "../../sessions/import-sources.ts";
import { failedRow, listName, readList } from "../../sessions/import-sources.ts";

/** A transcript on this machine. */
export interface FoundSource extends Source {
  /** The list beside it that says something of it. */
  readonly list: string | null;
}

/** Folders that hold no transcripts, however deep they are. */
const passedOver = new Set(["node_modules", ".git"]);

/** What a path holds: a transcript, a folder of transcripts, or a folder of OpenClaw with its list of sessions. */
export function findSources(path: string, agentId: string): Sources<FoundSource> {
  if (!statOf(path).isDirectory()) {
    refuseSpecialFile(path);
    if (basename(path) === listName) return openclawFolder(dirname(path), agentId);
    return { sources: [{ ...onDisk(path), isNamed: true }], failed: [] };
  }
  if (existsSync(join(path, listName))) return openclawFolder(path, agentId);
  const lists = fs.globSync(`agents/*/sessions/${listName}`, { cwd: path }).toSorted();
  const folders = lists.map((list) => openclawFolder(join(path, dirname(list)), agentId));
  if (folders.length > 0) {
    return {
      sources: folders.flatMap((each) => each.sources),
      failed: folders.flatMap((each) => each.failed),
    };
  }
  return { sources: [...transcriptsIn(path)].map((file) => onDisk(file)), failed: [] };
}

function onDisk(file: string, wish: ImportWish = {}, list: string | null = null): FoundSource {
  return { file, wish, isNamed: false, list, read: () => readFileSync(file) };
}

/** The rows of a list, then the transcripts that no row names. */
function openclawFolder(folder: string, defaultAgent: string): Sources<FoundSource> {
  const list = join(folder, listName);
  try {
    const { agentId, rows, failed } = readList({ file: list, folder }, readFileSync(list), defaultAgent);
    const named = rows.map(({ name, wish }) => ({
      ...onDisk(join(folder, name), wish, list),
      isNamed: true,
    }));
    const files = new Set(named.map(({ file }) => file));
    const others = [...transcriptsIn(folder)].filter((file) => !files.has(file));
    // A transcript in an agent's folder is that agent's, whether the list names it or not.
    return { sources: [...named, ...others.map((file) => onDisk(file, { agentId }, list))], failed };
  } catch (error) {
    return { sources: [], failed: [failedRow(list, error)] };
  }
}

/** Everything that may be a transcript, in the order of the names. Links are not followed. */
function* transcriptsIn(folder: string): Generator<string> {
  const entries: Dirent[] = readdirSync(folder, { withFileTypes: true });
  const names = new Set(entries.map(({ name }) => name));
  for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = join(folder, entry.name);
    const isTrash = entry.name === "trash" && names.has("work.db");
    if (entry.isDirectory() && !isTrash && !passedOver.has(entry.name)) yield* transcriptsIn(path);
    else if (entry.isFile() && isTranscript(entry.name, names)) yield path;
  }
}

/** Of a session of ours the log is taken, not the working set beside it. */
function isTranscript(name: string, beside: ReadonlySet<string>): boolean {
  if (/^rollout-.*\.json$/.test(name)) return true;
  if (!name.endsWith(".jsonl")) return false;
  return name.endsWith(".log.jsonl") || !beside.has(name.replace(/\.jsonl$/, ".log.jsonl"));
}

function statOf(path: string) {
  try {
    return statSync(path);
  } catch (error) {
    const advice = "Check the path; it is relative to the working directory";
    throw new SkeinError("not_found", { what: "File or folder", name: path, advice }, { cause: error });
  }
}
