import type { Dirent } from "node:fs";
import fs, { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { SkeinError } from "../core/errors.ts";
import type { Calls } from "../protocol/calls.ts";
import type { FailedRow, IgnoredRow, ImportPayload } from "../protocol/interchange.ts";
import type { Params } from "../protocol/method-table.ts";
import type { ImportWish } from "../sessions/import.ts";
import type { GivenFile, Program, Source, Sources } from "../sessions/import-sources.ts";
import { failedRow, importPayload, listName, otherProgram, readList } from "../sessions/import-sources.ts";
import { refuseSpecialFile } from "../store/files/disk.ts";

export interface FoundSource extends Source {
  /** The OpenClaw session list that describes the transcript. */
  readonly list: string | null;
}

/** Folders that are skipped. */
const passedOver = new Set(["node_modules", ".git"]);

/** Finds the transcripts at a path: a file, a folder of transcripts, or an OpenClaw folder with its session list. */
export function findSources(path: string, agentId: string): Sources<FoundSource> {
  if (!statOf(path).isDirectory()) {
    refuseSpecialFile(path);
    if (basename(path) === listName) return openclawFolder(dirname(path), agentId);
    return { sources: [{ ...onDisk(path), isNamed: true }], failed: [] };
  }
  if (existsSync(join(path, listName))) return openclawFolder(path, agentId);
  const lists = fs.globSync(`agents/*/sessions/${listName}`, { cwd: path }).toSorted();
  if (lists.length > 0)
    return mergeSources(lists.map((list) => openclawFolder(join(path, dirname(list)), agentId)));
  return { sources: [...transcriptsIn(path)].map((file) => onDisk(file)), failed: [] };
}

export function mergeSources(found: readonly Sources<FoundSource>[]): Sources<FoundSource> {
  return {
    sources: found.flatMap((each) => each.sources),
    failed: found.flatMap((each) => each.failed),
  };
}

function onDisk(file: string, wish: ImportWish = {}, list: string | null = null): FoundSource {
  return { file, wish, isNamed: false, list, read: () => readFileSync(file) };
}

/** Returns the sessions in the list, then the transcripts that the list does not name. */
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
    // A transcript in an agent's folder belongs to that agent, even if the list does not name it.
    return { sources: [...named, ...others.map((file) => onDisk(file, { agentId }, list))], failed };
  } catch (error) {
    return { sources: [], failed: [failedRow(list, error)] };
  }
}

/** Yields all files that might be transcripts, ordered by name. Symbolic links are not followed. */
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

/** For a Skein session, the log is imported, not the working set. */
function isTranscript(name: string, siblings: ReadonlySet<string>): boolean {
  if (/^rollout-.*\.json$/.test(name)) return true;
  if (!name.endsWith(".jsonl")) return false;
  return name.endsWith(".log.jsonl") || !siblings.has(name.replace(/\.jsonl$/, ".log.jsonl"));
}

function statOf(path: string) {
  try {
    return statSync(path);
  } catch (error) {
    const advice = "Check the path; relative paths are resolved against the working directory";
    throw new SkeinError("not_found", { what: "File or folder", name: path, advice }, { cause: error });
  }
}

/** The limits for one call, measured as JSON. The maximum size of a frame is 25 MiB. */
const roomInACall = { bytes: 20 * 1024 * 1024, files: 1000 };

type About = Omit<Params<"sessions.import">, "files" | "from">;

/** Sends the contents of local files to a gateway in as many calls as needed. */
export async function importOverCalls(
  calls: Calls<"sessions.import">,
  found: Sources<FoundSource>,
  { from, about }: { readonly from: Program | null; readonly about: About },
  update: (done: number, total: number) => void,
  room = roomInACall,
): Promise<ImportPayload> {
  const imported: ImportPayload["imported"] = [];
  const skipped: NonNullable<ImportPayload["skipped"]> = [];
  const ignored: IgnoredRow[] = [];
  const failed: FailedRow[] = [...found.failed];
  const program = from === null ? {} : { from };
  const lists = new Set(found.sources.map(({ list }) => list));
  for (const { files, done } of batches(found.sources, from, { failed, ignored }, room)) {
    const answer = await calls.call("sessions.import", { ...about, ...program, files: [...files] });
    imported.push(...answer.imported);
    skipped.push(...(answer.skipped ?? []));
    // Errors in a list have already been reported here, and every call with the list repeats them.
    failed.push(...answer.failed.filter(({ file }) => !lists.has(file)));
    update(done, found.sources.length);
  }
  return importPayload({ imported, failed, skipped, ignored });
}

interface Batch {
  readonly files: readonly GivenFile[];
  /** The number of sources that are done once the batch has been sent. */
  readonly done: number;
}

interface LeftOut {
  readonly failed: FailedRow[];
  readonly ignored: IgnoredRow[];
}

/**
 * Each batch contains the lists that its transcripts need. Files that cannot be read or are too large are added to
 * `failed`.
 */
function* batches(
  sources: readonly FoundSource[],
  from: Program | null,
  leftOut: LeftOut,
  most: typeof roomInACall,
): Generator<Batch> {
  const readOnce = listReader();
  let batch = new Map<string, Weighed>();
  for (const [index, source] of sources.entries()) {
    const needed = weighed(source, from, readOnce, leftOut);
    if (needed.length === 0) continue;
    if (sizeOf(needed) > most.bytes) {
      leftOut.failed.push(tooLarge(source.file));
      continue;
    }
    const together = new Map([...batch, ...needed.map((each) => [each.name, each] as const)]);
    if (together.size <= most.files && sizeOf(together.values()) <= most.bytes) batch = together;
    else {
      yield { files: contents(batch), done: index };
      batch = new Map(needed.map((each) => [each.name, each]));
    }
  }
  if (batch.size > 0) yield { files: contents(batch), done: sources.length };
}

interface Weighed extends GivenFile {
  readonly bytes: number;
}

/** Returns a transcript and its list, or nothing if the transcript is not selected or cannot be read. */
function weighed(
  source: FoundSource,
  from: Program | null,
  readOnce: (list: string) => Weighed,
  { failed, ignored }: LeftOut,
): readonly Weighed[] {
  try {
    const content = source.read();
    const why = source.isNamed ? null : otherProgram(source, content, from);
    if (why !== null) {
      ignored.push({ file: source.file, why });
      return [];
    }
    const list = source.list === null ? [] : [readOnce(source.list)];
    return [...list, weigh(source.file, content)];
  } catch (error) {
    failed.push(failedRow(source.file, error));
    return [];
  }
}

function listReader(): (list: string) => Weighed {
  const known = new Map<string, Weighed>();
  return (list) => {
    const read = known.get(list) ?? weigh(list, readFileSync(list));
    known.set(list, read);
    return read;
  };
}

function weigh(name: string, bytes: Uint8Array): Weighed {
  const file = { name, content: new TextDecoder().decode(bytes) };
  return { ...file, bytes: Buffer.byteLength(JSON.stringify(file)) };
}

function sizeOf(files: Iterable<Weighed>): number {
  let sum = 0;
  for (const { bytes } of files) sum += bytes;
  return sum;
}

function contents(batch: ReadonlyMap<string, Weighed>): GivenFile[] {
  return [...batch.values()].map(({ name, content }) => ({ name, content }));
}

function tooLarge(file: string): FailedRow {
  const error = "The file is too large to send to a gateway. Stop the gateway and import the file again.";
  return { file, code: "too_large", error };
}
