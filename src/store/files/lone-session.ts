import { randomUUID } from "node:crypto";
import { statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { Mutex } from "../../core/concurrency.ts";
import type { ContextOptions, SessionContext } from "../../core/context.ts";
import type { Entry, SessionHeader } from "../../core/entries.ts";
import { currentVersion } from "../../core/entries.ts";
import { SkeinError } from "../../core/errors.ts";
import { parseSession } from "../../core/parse-session.ts";
import type { Plan } from "../../core/plan.ts";
import type { EntryDraft } from "../../core/seal.ts";
import { SessionTree } from "../../core/tree.ts";
import type { DiskFile } from "./disk.ts";
import { appendWhole, isRegularFile, readWhole, realDisk, writeTemporary } from "./disk.ts";
import { idFromName, notSessionReason, readSessionFile, withFileLock } from "./lone-file.ts";

/**
 * A session in its own file outside any store, from pi, OpenClaw or Skein. Every change is made under the file's lock,
 * after reading any entries that other programs have written. It is on disk when the promise resolves.
 *
 * @example
 * ```ts
 * import { openSession, type LoneSession } from "skein";
 * const session: LoneSession = await openSession("trip.jsonl", { create: { cwd: "/home/ann" } });
 * await session.append({ type: "message", message: { role: "user", content: "Tea or coffee?" } });
 * const { messages } = session.context();
 * ```
 */
export class LoneSession {
  readonly path: string;
  readonly #mutex = new Mutex();
  #tree: SessionTree;
  #version: number;
  /** The size of the file when it was last read. */
  #bytes: number;

  private constructor(path: string, read: ReadSession) {
    this.path = path;
    this.#tree = read.tree;
    this.#version = read.version;
    this.#bytes = read.bytes;
  }

  static async open(path: string, options: OpenSessionOptions = {}): Promise<LoneSession> {
    const whole = resolve(path);
    if (options.create !== undefined) await begin(whole, options.create);
    if (!isRegularFile(whole)) await readSessionFile(whole); // throws
    return new LoneSession(whole, readSession(whole));
  }

  /** The tree as of the last read or write. Do not modify it. */
  get tree(): SessionTree {
    return this.#tree;
  }

  /** Returns the model's context, starting from the leaf or from another entry. */
  context(entryId: string | null = this.#tree.tipId, options: ContextOptions = {}): SessionContext {
    return this.#tree.context(entryId, options);
  }

  /** Reads any entries that other programs have written. */
  refresh(): Promise<void> {
    return this.#mutex.run(async () => this.#catchUp());
  }

  /**
   * Appends entries after the current leaf. Either all of them are appended or none. An entry whose ID already exists
   * is not written again. Only the shape of entries is checked, not whether tool results match calls.
   */
  async append(
    drafts: EntryDraft | readonly (EntryDraft | { readonly draft: EntryDraft; readonly id?: string })[],
    options: { readonly expectedLeafId?: string | null } = {},
  ): Promise<readonly Entry[]> {
    const items = [drafts].flat().map((each) => ("draft" in each ? each : { draft: each }));
    return this.#write((tree) => tree.plan(items, options.expectedLeafId));
  }

  /** Moves the leaf and records the move. `null` moves the leaf before the root. */
  async branch(entryId: string | null): Promise<void> {
    await this.#write((tree) => tree.planBranch(entryId));
  }

  /** Moves the leaf and adds a summary of the abandoned branch. */
  async branchWithSummary(entryId: string | null, summary: string, details?: unknown): Promise<Entry> {
    const [entry] = await this.#write((tree) => tree.planBranchWithSummary(entryId, summary, details));
    return entry as Entry;
  }

  /** Creates a file with all branches under a new session ID. The file must not exist. */
  async copyTo(path: string): Promise<LoneSession> {
    await this.refresh();
    const [, ...lines] = this.#tree.encodeLines();
    const { skein: _, ...rest } = this.#tree.header;
    const header = { ...rest, id: randomUUID(), parentSession: this.path };
    return LoneSession.#create(path, `${JSON.stringify(header)}\n${lines.join("")}`);
  }

  static async #create(path: string, text: string): Promise<LoneSession> {
    const whole = resolve(path);
    await writeNew(whole, text);
    return new LoneSession(whole, readSession(whole));
  }

  /** Creates a file that contains the branch up to an entry. The file must not exist. */
  async fork(path: string, entryId: string | null = this.#tree.tipId): Promise<LoneSession> {
    await this.refresh();
    const tree = this.#tree.fork(entryId, { id: randomUUID(), parentSession: this.path });
    return LoneSession.#create(path, tree.encode());
  }

  #write(plan: (tree: SessionTree) => Plan): Promise<readonly Entry[]> {
    return this.#mutex.run(() =>
      withFileLock(this.path, async () => {
        this.#catchUp();
        if (this.#version < currentVersion) throw olderVersion(this.path, this.#version);
        const made = plan(this.#tree);
        if (made.lines.length > 0) await this.#put(made);
        return made.entries;
      }),
    );
  }

  /** Terminates a torn line first. A partial write is rolled back by truncating the file. */
  async #put(made: Plan): Promise<void> {
    const file = realDisk.openExisting(this.path);
    if (file === null) throw missingFile(this.path);
    try {
      const end = file.size();
      const isTorn = end > 0 && file.read(end - 1, 1)[0] !== 10;
      const bytes = Buffer.from(`${isTorn ? "\n" : ""}${made.lines.join("\n")}\n`);
      try {
        appendWhole(file, bytes);
        await file.sync();
      } catch (error) {
        throw undoWrite(this.path, file, end, error as Error);
      }
      this.#tree.commit(made);
      this.#bytes = end + bytes.length;
    } finally {
      file.close();
    }
  }

  #catchUp(): void {
    const size = realDisk.stat(this.path)?.size;
    if (size === undefined) throw missingFile(this.path);
    if (size === this.#bytes) return;
    const { tree, version, bytes } = readSession(this.path);
    this.#tree = tree;
    this.#version = version;
    this.#bytes = bytes;
  }
}

/** Options for `openSession`. */
export interface OpenSessionOptions {
  /** If set, creates the file if it does not exist. If absent, the file must exist. */
  readonly create?: { readonly cwd: string; readonly id?: string };
}

interface ReadSession {
  readonly tree: SessionTree;
  readonly version: number;
  readonly bytes: number;
}

function readSession(path: string): ReadSession {
  const bytes = readWhole(realDisk, path);
  if (bytes === null) throw missingFile(path);
  const session = parseSession(bytes);
  const problem = notSessionReason(session);
  if (problem !== null) throw new SkeinError("not_a_session", { file: path, problem });
  const tree = SessionTree.from(session, { lostHeader: { id: idFromName(path) } });
  return { tree, version: session.version, bytes: bytes.length };
}

/** Creates a missing or empty file. If another process creates it first, that file is kept. */
async function begin(path: string, init: { readonly cwd: string; readonly id?: string }): Promise<void> {
  const text = SessionTree.create(init).encode();
  if (realDisk.stat(path) === null) {
    await writeNew(path, text).catch((error: unknown) => {
      if (!(error instanceof SkeinError && error.code === "conflict")) throw error;
    });
  }
  if (!isRegularFile(path) || realDisk.stat(path)?.size !== 0) return;
  await withFileLock(path, async () => {
    const file = realDisk.openExisting(path);
    try {
      if (file?.size() !== 0) return;
      appendWhole(file, Buffer.from(text));
      await file.sync();
    } finally {
      file?.close();
    }
  });
}

/** A session file found by `listSessionFiles`. */
export interface SessionFile {
  readonly path: string;
  readonly header: SessionHeader;
  /** Time of the last write, in milliseconds since 1970. */
  readonly updatedAt: number;
  readonly bytes: number;
}

const headerBytes = 64 * 1024;

/** Lists the session files in a folder, most recently written first. Reads only their headers. */
export function listFiles(folder: string): SessionFile[] {
  const files: SessionFile[] = [];
  for (const name of realDisk.list(resolve(folder))) {
    const path = join(resolve(folder), name);
    if (!name.endsWith(".jsonl") || !isRegularFile(path)) continue;
    const file = realDisk.openToRead(path);
    try {
      const bytes = file?.size() ?? 0;
      const { header } = parseSession(file?.read(0, Math.min(bytes, headerBytes)) ?? "");
      if (header !== null) files.push({ path, header, updatedAt: statSync(path).mtimeMs, bytes });
    } finally {
      file?.close();
    }
  }
  return files.toSorted((a, b) => b.updatedAt - a.updatedAt || (a.path < b.path ? 1 : -1));
}

/** Opens the most recently written session file in the folder, or creates one. */
export async function continueRecentFile(
  folder: string,
  create: NonNullable<OpenSessionOptions["create"]>,
): Promise<LoneSession> {
  const [recent] = listFiles(folder);
  if (recent !== undefined) return LoneSession.open(recent.path);
  const { id = randomUUID(), cwd } = create;
  realDisk.makeFolder(resolve(folder));
  return LoneSession.open(join(folder, `${id}.jsonl`), { create: { cwd, id } });
}

/** Creates a file atomically. Never replaces an existing file. */
async function writeNew(path: string, text: string): Promise<void> {
  const temporary = await writeTemporary(realDisk, path, [Buffer.from(text)], randomUUID(), true);
  try {
    realDisk.link(temporary, path);
    await realDisk.syncFolder(dirname(path));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    const advice = "Name a file that does not exist yet";
    throw new SkeinError(
      "conflict",
      { problem: `The file ${path} already exists`, advice },
      { cause: error },
    );
  } finally {
    realDisk.unlink(temporary);
  }
}

/** Truncates a partial write. If that also fails, a damaged line remains, which readers skip. */
function undoWrite(path: string, file: DiskFile, size: number, error: Error): SkeinError {
  let advice = "Nothing was changed. Free up disk space, or check that you have permission to write there";
  try {
    file.truncate(size);
  } catch (left) {
    advice = `Part of it remains at the end of the file (${(left as Error).message}). Repair the file`;
  }
  return new SkeinError("write_failed", { file: path, problem: error.message, advice }, { cause: error });
}

function olderVersion(file: string, version: number): SkeinError {
  const problem = `it has version ${version}, but new entries would have version ${currentVersion}`;
  return new SkeinError("read_only", { name: file, problem });
}

function missingFile(name: string): SkeinError {
  const advice = "The file existed before. Check whether it was moved";
  return new SkeinError("not_found", { what: "File", name, advice });
}
