import { SkeinError } from "../core/errors.ts";
import { readAgentId } from "../core/names.ts";
import type { Steps } from "../core/slices.ts";
import { Slices } from "../core/slices.ts";
import { importClaudeCode } from "../interchange/import-claude-code.ts";
import { importCodex } from "../interchange/import-codex.ts";
import { importPi } from "../interchange/import-pi.ts";
import { importSession, recognizeSource } from "../interchange/import-session.ts";
import type { ImportedSession } from "../interchange/imported-session.ts";
import { planOpenclawFolder } from "../interchange/openclaw-folder.ts";
import type {
  FailedRow,
  IgnoredRow,
  ImportedRow,
  ImportPayload,
  SkippedRow,
} from "../protocol/interchange.ts";
import type { ImportSettings, ImportWish, SessionImporter } from "./import.ts";

/** A transcript to import. */
export interface Source {
  /** The name used in reports: a path, or a name from the caller. */
  readonly file: string;
  readonly wish: ImportWish;
  /** `true` if the user named this file, `false` if it was found in a folder. */
  readonly isNamed: boolean;
  /** Returns the content. Throws file system errors. */
  read(): Uint8Array;
}

export interface Sources<S extends Source = Source> {
  readonly sources: readonly S[];
  /** Problems found before any transcript was read. */
  readonly failed: readonly FailedRow[];
}

/** Throws if a key or label is given for several sessions. Called before any session is imported. */
export function checkNamesOne({ key, label }: ImportSettings, { sources }: Sources): void {
  if (sources.length < 2 || (key === undefined && label === undefined)) return;
  const problem = `A key or label can name only one session, but there are ${sources.length} files`;
  throw new SkeinError("invalid_arguments", {
    problem,
    advice: "Import one file at a time, or omit the key and label",
  });
}

/**
 * Imports the sources one after the other. If one source fails, the others are still imported. If `from` is `null`, the
 * source program is detected.
 */
export async function importAll(
  importer: SessionImporter,
  { sources, failed: before }: Sources,
  from: Program | null,
  update: (done: number, total: number) => void = () => undefined,
): Promise<ImportPayload> {
  const slices = new Slices();
  const imported: ImportedRow[] = [];
  const skipped: SkippedRow[] = [];
  const ignored: IgnoredRow[] = [];
  const failed: FailedRow[] = [...before];
  for (const [index, source] of sources.entries()) {
    update(index, sources.length);
    const { file } = source;
    try {
      const bytes = source.read();
      const why = otherProgram(source, bytes, from);
      if (why !== null && source.isNamed) throw wrongProgram(file, why);
      if (why !== null) {
        ignored.push({ file, why });
        continue;
      }
      const session = await slices.run(readSource(source, bytes, from));
      const outcome = await importer.import(session, source.wish);
      if ("imported" in outcome) imported.push({ file, ...outcome.imported });
      else skipped.push({ file, ...outcome.skipped });
    } catch (error) {
      failed.push(failedRow(file, error));
    }
    await slices.turn();
  }
  update(sources.length, sources.length);
  return importPayload({ imported, failed, skipped, ignored });
}

/** Omits optional lists that are empty. */
export function importPayload({
  imported,
  failed,
  skipped,
  ignored,
}: Required<ImportPayload>): ImportPayload {
  return {
    imported,
    failed,
    ...(skipped.length === 0 ? {} : { skipped }),
    ...(ignored.length === 0 ? {} : { ignored }),
  };
}

function wrongProgram(file: string, why: string): SkeinError {
  const advice = "Name the right program, or omit it to detect the format";
  return new SkeinError("invalid_arguments", { problem: `${splitPath(file).name} is a file ${why}`, advice });
}

/** The programs that sessions can be imported from, with the names that `--from` accepts. */
export const programs = ["pi", "openclaw", "claude-code", "codex"] as const;
export type Program = (typeof programs)[number];

const readers = {
  pi: importPi,
  openclaw: importPi,
  "claude-code": importClaudeCode,
  codex: importCodex,
} as const satisfies Record<Program, unknown>;

const programNames: Readonly<Record<Program | "skein", string>> = {
  skein: "Skein",
  pi: "pi",
  openclaw: "OpenClaw",
  "claude-code": "Claude Code",
  codex: "Codex",
};

interface NamedFile {
  readonly file: string;
  readonly isNamed: boolean;
}

/**
 * Returns why `--from` excludes a transcript, or `null` if it is imported. A transcript found in a folder must come
 * from the program in `--from`. A file that the user names is excluded only if it clearly belongs to another program.
 */
export function otherProgram({ isNamed }: NamedFile, bytes: Uint8Array, from: Program | null): string | null {
  if (from === null) return null;
  const found = recognizeSource(bytes);
  if (isOf(from, found) || (found === null && isNamed)) return null;
  if (found === null) return "from an unknown program";
  return `from ${programNames[found]}, not from ${programNames[from]}`;
}

/** Reads a transcript that {@link otherProgram} has not excluded. */
export function* readSource(
  { file, isNamed }: NamedFile,
  bytes: Uint8Array,
  from: Program | null,
): Steps<ImportedSession> {
  const options = { file: splitPath(file).name };
  if (from !== null && isNamed) return requireEntries(file, yield* readers[from](bytes, options));
  const imported = yield* importSession(bytes, options);
  if (imported === null) throw noSession(file, "its format is not recognized");
  return requireEntries(file, imported);
}

function isOf(program: Program, source: ReturnType<typeof recognizeSource>): boolean {
  const known = program === "openclaw" ? "pi" : program;
  return source === known || (source === "skein" && known === "pi");
}

/** Throws if the file has no readable entry. */
function requireEntries(file: string, imported: ImportedSession): ImportedSession {
  if (imported.tree.size > 0) return imported;
  throw noSession(file, "it contains no entries");
}

function noSession(file: string, problem: string): SkeinError {
  return new SkeinError("not_a_session", { file, problem });
}

/** A file in the params of `sessions.import`. The name appears only in reports and is never opened. */
export interface GivenFile {
  readonly name: string;
  readonly content: string;
}

/**
 * Returns the transcripts among the files. Each comes with its row from a `sessions.json` in the same folder, if any.
 * Rows without a transcript are ignored, because the transcript might be part of the next call.
 */
export function sourcesAmong(files: readonly GivenFile[], agentId: string): Sources {
  const failed: FailedRow[] = [];
  const lists = new Map<string, { agentId: string; wishes: ReadonlyMap<string, ImportWish> }>();
  for (const { name: file, content } of files.filter(({ name }) => isList(name))) {
    const { folder } = splitPath(file);
    try {
      const list = readList({ file, folder }, new TextEncoder().encode(content), agentId);
      const wishes = new Map(list.rows.map(({ name, wish }) => [name, wish]));
      lists.set(folder, { agentId: list.agentId, wishes });
      failed.push(...list.failed);
    } catch (error) {
      failed.push(failedRow(file, error));
    }
  }
  const sources = files
    .filter(({ name }) => !isList(name))
    .map(({ name: file, content }): Source => {
      const { folder, name } = splitPath(file);
      const list = lists.get(folder);
      const wish = list?.wishes.get(name) ?? (list === undefined ? {} : { agentId: list.agentId });
      return { file, wish, isNamed: true, read: () => new TextEncoder().encode(content) };
    });
  return { sources: rowsFirst(sources), failed };
}

function isList(file: string): boolean {
  return splitPath(file).name === listName;
}

/** Puts listed transcripts first so that the others cannot take their keys. */
function rowsFirst(sources: readonly Source[]): Source[] {
  const isRow = ({ wish }: Source) => wish.sessionId !== undefined;
  return [...sources.filter(isRow), ...sources.filter((each) => !isRow(each))];
}

/** OpenClaw's list of one agent's sessions, which is stored next to their transcripts. */
export const listName = "sessions.json";

interface ListedSessions {
  /**
   * The agent derived from the folder's path, otherwise the default agent. Also applies to transcripts that are not
   * listed.
   */
  readonly agentId: string;
  readonly rows: readonly {
    /** The transcript's file name within the folder. */
    readonly name: string;
    readonly wish: ImportWish;
  }[];
  readonly failed: readonly FailedRow[];
}

/** Reads a folder's list. Throws if the file is not a list. */
export function readList(
  { file, folder }: { readonly file: string; readonly folder: string },
  content: Uint8Array,
  defaultAgent: string,
): ListedSessions {
  const inPath = /(?:^|[\\/])agents[\\/]([^\\/]+)[\\/]sessions$/.exec(folder)?.[1] ?? "";
  const agentId = readAgentId(inPath) ?? defaultAgent;
  const { sessions, refused } = planOpenclawFolder(content, { agentId });
  return {
    agentId,
    rows: sessions.map(({ key, keyNote, sessionId, file: name, meta, notKept }) => {
      const notes = keyNote === null ? [] : [{ what: keyNote, count: 1 }];
      return { name, wish: { agentId, key, sessionId, meta, notKept: [...notes, ...notKept] } };
    }),
    failed: refused.map(({ sourceKey, problem }) => ({
      file,
      code: "invalid_entry",
      error: `The row "${sourceKey}" was skipped: ${problem}.`,
    })),
  };
}

/** Returns the row for a file that could not be imported. */
export function failedRow(file: string, error: unknown): FailedRow {
  const { code, message } = error instanceof SkeinError ? error : asSkeinError(file, error as Error);
  return { file, code, error: message };
}

function asSkeinError(file: string, error: Error): SkeinError {
  const { code } = error as NodeJS.ErrnoException;
  if (code === "ENOENT") {
    const advice = "The list names it, but the file does not exist";
    return new SkeinError("not_found", { what: "File", name: file, advice }, { cause: error });
  }
  if (code === "ERR_FS_FILE_TOO_LARGE") return new SkeinError("too_large", { what: file }, { cause: error });
  if (code === undefined) return new SkeinError("internal", { problem: error.message }, { cause: error });
  const advice = "Check that you have permission to read it";
  return new SkeinError("unreadable_file", { file, problem: error.message, advice }, { cause: error });
}

/** Splits a path from any operating system. The folder of a bare name is "". */
function splitPath(path: string): { readonly folder: string; readonly name: string } {
  const end = Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\"));
  return { folder: path.slice(0, Math.max(0, end)), name: path.slice(end + 1) };
}
