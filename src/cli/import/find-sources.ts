import type { Dirent } from "node:fs";
import { existsSync, globSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { SkeinError } from "../../core/errors.ts";
import { readAgentId } from "../../core/names.ts";
import { planOpenclawFolder } from "../../interchange/openclaw-folder.ts";
import type { FailedRow } from "../../protocol/interchange.ts";
import type { ImportWish } from "../../sessions/import-session.ts";
import { failedRow } from "./failed-row.ts";

/** A transcript to be read, and what is known of it from beside. */
export interface FoundSource {
  readonly file: string;
  readonly wish: ImportWish;
  /** Named by the user, not found in a folder. */
  readonly isNamed: boolean;
}

export interface FoundSources {
  readonly sources: readonly FoundSource[];
  readonly failed: readonly FailedRow[];
}

const listName = "sessions.json";
/** Folders that hold no transcripts, however deep they are. */
const passedOver = new Set(["node_modules", ".git"]);

/** What a path holds: a transcript, a folder of transcripts, or a folder of OpenClaw with its list of sessions. */
export function findSources(path: string, agentId: string): FoundSources {
  if (!statOf(path).isDirectory()) {
    if (basename(path) === listName) return openclawFolder(dirname(path), agentId);
    return { sources: [{ file: path, wish: {}, isNamed: true }], failed: [] };
  }
  if (existsSync(join(path, listName))) return openclawFolder(path, agentId);
  const lists = globSync(`agents/*/sessions/${listName}`, { cwd: path }).toSorted();
  const folders = lists.map((list) => openclawFolder(join(path, dirname(list)), agentId));
  if (folders.length > 0) {
    return {
      sources: folders.flatMap((each) => each.sources),
      failed: folders.flatMap((each) => each.failed),
    };
  }
  return {
    sources: [...transcriptsIn(path)].map((file) => ({ file, wish: {}, isNamed: false })),
    failed: [],
  };
}

/** The rows of a list, then the transcripts that no row names. */
function openclawFolder(folder: string, defaultAgent: string): FoundSources {
  const list = join(folder, listName);
  const inPath = /[\\/]agents[\\/]([^\\/]+)[\\/]sessions$/.exec(folder)?.[1] ?? "";
  const agentId = readAgentId(inPath) ?? defaultAgent;
  try {
    const { sessions, refused } = planOpenclawFolder(readFileSync(list), { agentId });
    const rows = sessions.map(({ key, keyNote, sessionId, file, meta, notKept }) => {
      const notes = keyNote === null ? [] : [{ what: keyNote, count: 1 }];
      return {
        file: join(folder, file),
        wish: { key, sessionId, meta, notKept: [...notes, ...notKept] },
        isNamed: true,
      };
    });
    const named = new Set(rows.map(({ file }) => file));
    const others = [...transcriptsIn(folder)].filter((file) => !named.has(file));
    return {
      // A transcript in an agent's folder is that agent's, whether the list names it or not.
      sources: [...rows, ...others.map((file) => ({ file, wish: { agentId }, isNamed: false }))],
      failed: refused.map(({ sourceKey, problem }) => ({
        file: list,
        code: "invalid_entry",
        error: `The row "${sourceKey}" was left out: ${problem}.`,
      })),
    };
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
    const advice = "Check the path; it is taken from where you stand";
    throw new SkeinError("not_found", { what: "File or folder", name: path, advice }, { cause: error });
  }
}
