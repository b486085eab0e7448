import { randomUUID } from "node:crypto";
import { basename, dirname, join } from "node:path";
import type { SessionHeader } from "../../core/entries.ts";
import { codeOf, SkeinError } from "../../core/errors.ts";
import { isRecord } from "../../core/is-record.ts";
import { stringifyJson } from "../../core/json.ts";
import { defaultNamespace } from "../../core/namespace.ts";
import type { SqlRow, SqlValue } from "../../core/script.ts";
import type { SessionMeta } from "../contract.ts";
import type {
  LedgerTable,
  MigrationTarget,
  StoredBlob,
  StoredSession,
  StoredState,
} from "../migrate/contract.ts";
import { deleteChannelFacts, tombstonePrefix, unfinishedFact } from "../migrate/ledger-tables.ts";
import { metaOf } from "../session-meta.ts";
import type { Disk } from "./disk.ts";
import { appendWhole, isWriteFailure, makeFolderDurably, removeTreeDurably, replaceWhole } from "./disk.ts";
import { homeOf, stateFolder, workDbName, writeOwner } from "./layout.ts";
import { FolderReader } from "./migration-reader.ts";
import { openReadOnly } from "./migration-source.ts";
import type { SessionRow } from "./work-db.ts";
import { WorkDb } from "./work-db.ts";

export interface FolderTargetOptions {
  /** A folder that does not exist yet or is empty. */
  readonly target: string;
  readonly disk: Disk;
  readonly now: number;
  /** Creates the tables of runs and tokens. */
  createTables(work: WorkDb): void;
}

/**
 * Writes a session folder next to its final location, and moves it there once it is complete. Until then, no process
 * can mistake it for a store.
 */
export class FolderTarget extends FolderReader implements MigrationTarget {
  override readonly name: string;
  readonly #options: FolderTargetOptions;
  readonly #work: WorkDb;
  readonly #homes = new Set<string>();
  #isClosed = false;

  static async open(options: FolderTargetOptions): Promise<FolderTarget> {
    const { target, disk } = options;
    const root = placeToWrite(target, disk);
    await makeFolderDurably(disk, root);
    const work = new WorkDb(join(root, workDbName));
    options.createTables(work);
    return new FolderTarget(root, work, options);
  }

  private constructor(root: string, work: WorkDb, options: FolderTargetOptions) {
    super(root, options.disk, (text, ...values) => work.ledger.sql(text).all(...values));
    this.name = `files:${options.target}`;
    this.#work = work;
    this.#options = options;
  }

  async checkIdle(): Promise<void> {
    // There is nothing to check, because no other process mistakes the folder for a store.
  }

  async begin(source: string): Promise<boolean> {
    const [fact] = this.query("SELECT value FROM facts WHERE name = ?", unfinishedFact);
    if (fact?.value === source) return true;
    if (fact !== undefined) {
      throw new SkeinError("conflict", {
        problem: `${this.root} contains an unfinished migration from another store`,
        advice: "Finish that migration, or delete the folder and run the same command again",
      });
    }
    const { now } = this.#options;
    this.#putFact(unfinishedFact, source);
    this.#work.begin(now);
    return false;
  }

  async putSession(
    session: StoredSession,
    lines: () => AsyncIterable<readonly string[]>,
    states: readonly StoredState[],
  ): Promise<void> {
    const row = rowOf(session);
    await this.#orFull(async () => {
      await this.#claimHome(row);
      await this.#writeLog(this.pathsOf(row).log, session.header, lines());
      for (const { key, version, value } of states) {
        const path = join(stateFolder(this.root, row, row.sessionId), `${key}.json`);
        const bytes = Buffer.from(`{"version":${version},"value":${value}}\n`);
        await replaceWhole(this.disk, path, bytes, randomUUID());
      }
      // This comes last because it makes the session exist.
      this.#work.claim(row);
    });
  }

  async removeSession(session: StoredSession): Promise<void> {
    const row = rowOf(session);
    this.#work.ledger.run("DELETE FROM sessions WHERE uid = ?", session.uid);
    this.disk.unlink(this.pathsOf(row).log);
    await removeTreeDurably(this.disk, stateFolder(this.root, row, row.sessionId));
  }

  async putBlob(blob: StoredBlob, bytes: Uint8Array): Promise<void> {
    const { userId } = blob;
    await this.#orFull(async () => {
      await this.#claimHome({ userId, home: homeOf(defaultNamespace, userId) });
      await replaceWhole(this.disk, this.blobPath(blob), bytes, randomUUID());
    });
  }

  async insertRows(
    { name }: LedgerTable,
    columns: readonly string[],
    rows: readonly SqlRow[],
  ): Promise<void> {
    const places = columns.map(() => "?").join(", ");
    const text = `INSERT INTO ${name} (${columns.join(", ")}) VALUES (${places})`;
    this.#work.exclusively(() => {
      for (const row of rows)
        this.#work.ledger.run(text, ...columns.map((column) => row[column] as SqlValue));
    });
  }

  async deleteRows({ name }: LedgerTable): Promise<void> {
    this.#work.ledger.run(`DELETE FROM ${name}`);
  }

  async setLastNumber({ name }: LedgerTable, number: number): Promise<void> {
    this.#work.exclusively(() => {
      this.#work.ledger.run("DELETE FROM sqlite_sequence WHERE name = ?", name);
      if (number > 0)
        this.#work.ledger.run("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", name, number);
    });
  }

  async putFacts(facts: ReadonlyMap<string, string>): Promise<void> {
    const text = "INSERT OR REPLACE INTO tombstones (id, what, name, at) VALUES (?, ?, ?, ?)";
    this.#work.exclusively(() => {
      this.#work.ledger.run(deleteChannelFacts);
      for (const [name, value] of facts) {
        if (!name.startsWith(tombstonePrefix)) {
          this.#putFact(name, value);
          continue;
        }
        const { what, name: gone, at } = JSON.parse(value) as { what: string; name: string; at: number };
        this.#work.ledger.run(text, Number(name.slice(tombstonePrefix.length)), what, gone, at);
      }
    });
  }

  /** Moves the folder to its final location, then removes the mark that prevents the folder from being opened. */
  async finish(): Promise<void> {
    const { target } = this.#options;
    await this.close();
    if (this.root !== target) this.#moveTo(target);
    await this.disk.syncFolder(dirname(target));
    const work = new WorkDb(join(target, workDbName));
    work.ledger.run("DELETE FROM facts WHERE name = ?", unfinishedFact);
    work.close();
  }

  async close(): Promise<void> {
    if (!this.#isClosed) this.#work.close();
    this.#isClosed = true;
  }

  #moveTo(target: string): void {
    try {
      this.disk.rename(this.root, target);
    } catch (error) {
      if (codeOf(error) !== "ENOTEMPTY" && codeOf(error) !== "EEXIST") throw error;
      throw notEmpty(target);
    }
  }

  #putFact(name: string, value: string): void {
    this.#work.ledger.run("INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)", name, value);
  }

  async #claimHome({ home, userId }: Pick<SessionRow, "home" | "userId">): Promise<void> {
    if (this.#homes.has(home)) return;
    const { root, disk } = this;
    const lock = { exclusively: <T>(act: () => T) => this.#work.exclusively(act) };
    await writeOwner({ root, disk, lock, newId: randomUUID }, home, userId);
    this.#homes.add(home);
  }

  async #writeLog(
    path: string,
    header: SessionHeader,
    lines: AsyncIterable<readonly string[]>,
  ): Promise<void> {
    await makeFolderDurably(this.disk, dirname(path));
    // An earlier attempt might have been interrupted while it wrote this file.
    this.disk.unlink(path);
    const file = this.disk.create(path);
    try {
      appendWhole(file, Buffer.from(`${stringifyJson(header)}\n`));
      for await (const some of lines)
        if (some.length > 0) appendWhole(file, Buffer.from(`${some.join("\n")}\n`));
      await file.sync();
    } finally {
      file.close();
    }
    await this.disk.syncFolder(dirname(path));
  }

  async #orFull(act: () => Promise<void>): Promise<void> {
    try {
      await act();
    } catch (error) {
      if (error instanceof SkeinError || !isWriteFailure(error)) throw error;
      const advice = "Free up disk space, then run the same command again to continue";
      const problem = (error as Error).message;
      throw new SkeinError("write_failed", { file: this.root, problem, advice }, { cause: error });
    }
  }
}

/**
 * Returns the folder next to the target, or the target itself if an interrupted attempt had already moved the folder
 * there.
 */
function placeToWrite(target: string, disk: Disk): string {
  const isThere = disk.kind(target) !== null;
  if (isThere && isUnfinished(join(target, workDbName), disk)) return target;
  if (isThere && (disk.kind(target) !== "folder" || disk.list(target).length > 0)) throw notEmpty(target);
  return join(dirname(target), `.${basename(target)}.migrating`);
}

function isUnfinished(path: string, disk: Disk): boolean {
  if (disk.kind(path) !== "file") return false;
  const { query, close } = openReadOnly(path);
  try {
    return query("SELECT 1 FROM facts WHERE name = ?", unfinishedFact).length > 0;
  } finally {
    close();
  }
}

function notEmpty(folder: string): SkeinError {
  const problem = `The folder ${folder} is not empty`;
  return new SkeinError("conflict", { problem, advice: "Name a new or empty folder" });
}

function rowOf({ header, ...session }: StoredSession): SessionRow {
  const { uid, userId, agentId, key, sessionId, createdAt, removedAt, current } = session;
  const parent = header.parentSession === undefined ? {} : { parentSession: header.parentSession };
  const first = header.skein?.meta;
  return {
    ...{ uid, userId, agentId, key, sessionId, createdAt, removedAt },
    state: removedAt === null ? "live" : "trashed",
    home: homeOf(defaultNamespace, userId),
    label: (current?.meta ?? metaOf(header, []).meta).label ?? null,
    todo: null,
    first: { cwd: header.cwd ?? "", meta: isRecord(first) ? (first as SessionMeta) : {}, ...parent },
  };
}
