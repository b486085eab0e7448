import { join } from "node:path";
import { SkeinError } from "../../core/errors.ts";
import { DatabaseSync, damagedError, isDamage } from "./database.ts";
import type { Disk } from "./disk.ts";
import { workDbName } from "./layout.ts";
import type { DamagedLines } from "./log-lines.ts";
import type { Query } from "./migration-reader.ts";
import { FolderReader } from "./migration-reader.ts";

/** Opens a `work.db` that this process must not change. */
export function openReadOnly(path: string): { readonly query: Query; close(): void } {
  const db = new DatabaseSync(path, { readOnly: true, timeout: 10_000 });
  const query: Query = (text, ...values) => {
    try {
      return db.prepare(text).all(...values);
    } catch (error) {
      throw isDamage(error) ? damagedError(path, (error as Error).message, error) : error;
    }
  };
  return { query, close: () => db.close() };
}

export interface FolderSourceOptions {
  readonly root: string;
  readonly disk: Disk;
  /** The schemas in `work.db` other than the sessions schema, with their versions. */
  readonly schemas: readonly { readonly fact: string; readonly version: number }[];
  readonly damagedLines: DamagedLines;
  /** Throws if a process uses the folder. */
  refuseInUse(): void;
}

/** A session folder that is read and never changed. */
export class FolderSource extends FolderReader {
  protected override readonly damagedLines: DamagedLines;
  readonly #options: FolderSourceOptions;
  readonly #close: () => void;

  static open(options: FolderSourceOptions): FolderSource {
    const { root, disk } = options;
    const path = join(root, workDbName);
    if (disk.kind(path) !== "file") {
      const advice = "Name a folder that contains sessions, as in files:./skein";
      throw new SkeinError("not_found", { what: "Sessions folder", name: root, advice });
    }
    options.refuseInUse();
    const { query, close } = openReadOnly(path);
    try {
      checkSchemas(options, query);
      return new FolderSource(options, query, close);
    } catch (error) {
      close();
      throw error;
    }
  }

  private constructor(options: FolderSourceOptions, query: Query, close: () => void) {
    super(options.root, options.disk, query);
    this.damagedLines = options.damagedLines;
    this.#options = options;
    this.#close = close;
  }

  /** A process that was killed can leave changes that the next process finishes. */
  async checkIdle(): Promise<void> {
    const { root, refuseInUse } = this.#options;
    refuseInUse();
    const text = "SELECT count(*) AS count FROM sessions WHERE todo IS NOT NULL OR state = 'forking'";
    const unfinished = Number(this.query(text)[0]?.count);
    if (unfinished === 0) return;
    throw new SkeinError("conflict", {
      problem: `Changes to ${unfinished} sessions in ${root} were interrupted`,
      advice: `Run \`skein doctor --dir ${root}\`, which finishes them, then run the same command again`,
    });
  }

  async close(): Promise<void> {
    this.#close();
  }
}

/**
 * Rejects a folder that another version of Skein wrote. A schema without a version does not exist yet and has no rows.
 */
function checkSchemas({ root, schemas }: FolderSourceOptions, query: Query): void {
  const facts = new Map(
    query("SELECT name, value FROM facts").map(({ name, value }) => [String(name), Number(value)]),
  );
  if (facts.has("external")) {
    const problem = `The folder ${root} contains only the runs of an external store`;
    throw new SkeinError("conflict", { problem, advice: "Move the sessions with that store's own tools" });
  }
  const other = schemas.find(({ fact, version }) => (facts.get(fact) ?? version) !== version);
  if (other === undefined) return;
  throw new SkeinError("conflict", {
    problem: `Another version of Skein wrote ${root}`,
    advice: `Run \`skein doctor --dir ${root}\` with this version, then run the same command again`,
  });
}
