import { join } from "node:path";
import { KeyedMutex } from "../../core/concurrency.ts";
import { SkeinError } from "../../core/errors.ts";
import { isRecord } from "../../core/is-record.ts";
import { sessionIdProblem } from "../../core/names.ts";
import type { Json, Scope, StateValue } from "../contract.ts";
import { checkStateKey, inScope, nextVersion, noSuchSession, stateText } from "../rules.ts";
import type { FenceOption, WorkingState } from "../work.ts";
import { toFenceFunction } from "../work.ts";
import type { Disk } from "./disk.ts";
import { parseJson, readWhole, replaceWhole } from "./disk.ts";
import { stateFolder } from "./layout.ts";
import type { SessionRow, WorkDb } from "./work-db.ts";
import { isVisible } from "./work-db.ts";
import type { LockSettings } from "./write-lock.ts";
import { underLock } from "./write-lock.ts";

/** State in `context/<sessionId>/<key>.json` with `{version, value}`, replaced atomically. */
export class FileState implements WorkingState {
  readonly #root: string;
  readonly #disk: Disk;
  readonly #work: WorkDb;
  readonly #newToken: () => string;
  readonly #lock: LockSettings;
  readonly #mutex = new KeyedMutex();

  constructor(root: string, work: WorkDb, lock: LockSettings) {
    this.#root = root;
    this.#disk = lock.disk;
    this.#work = work;
    this.#newToken = lock.newToken;
    this.#lock = lock;
  }

  async get(scope: Scope, sessionId: string, key: string): Promise<StateValue | null> {
    const row = this.#row(scope, sessionId);
    return row === null || sessionIdProblem(key) !== null ? null : this.#read(row, key);
  }

  set(
    scope: Scope,
    sessionId: string,
    key: string,
    value: Json,
    options: { ifVersion?: number | null } & FenceOption = {},
  ): Promise<number> {
    return this.#alone(scope, sessionId, key, async (row) => {
      checkStateKey(key);
      const text = stateText(key, value);
      if (row === null) return noSuchSession(sessionId);
      const next = nextVersion(key, this.#read(row, key)?.version ?? null, options);
      const bytes = Buffer.from(`{"version":${next},"value":${text}}\n`);
      const { fence } = toFenceFunction(this.#work, options);
      const around = (rename: () => void) => {
        if (fence === undefined) return rename();
        // No other process can claim the run between the check and the rename.
        this.#work.exclusively(() => {
          if (!fence()) throw new SkeinError("fenced", { sessionId });
          rename();
        });
      };
      await replaceWhole(this.#disk, this.#path(row, key), bytes, this.#newToken(), around);
      return next;
    });
  }

  delete(scope: Scope, sessionId: string, key: string): Promise<boolean> {
    return this.#alone(scope, sessionId, key, async (row) => {
      if (row === null || sessionIdProblem(key) !== null || !this.#disk.unlink(this.#path(row, key)))
        return false;
      await this.#disk.syncFolder(stateFolder(this.#root, row, row.sessionId));
      return true;
    });
  }

  /** Runs `act` while holding the lock on the session's state so that versions can be compared safely. */
  #alone<T>(
    scope: Scope,
    sessionId: string,
    key: string,
    act: (row: SessionRow | null) => Promise<T>,
  ): Promise<T> {
    const name = JSON.stringify([scope.userId ?? null, sessionId.toLowerCase()]);
    return this.#mutex.run(name, async () => {
      const row = this.#row(scope, sessionId);
      if (row === null || sessionIdProblem(key) !== null) return act(row);
      const path = join(stateFolder(this.#root, row, row.sessionId), ".lock");
      return underLock(path, this.#lock, () => act(this.#row(scope, sessionId)));
    });
  }

  async keys(scope: Scope, sessionId: string): Promise<readonly string[]> {
    const row = this.#row(scope, sessionId);
    if (row === null) return [];
    return this.#disk
      .list(stateFolder(this.#root, row, row.sessionId))
      .filter((name) => name.endsWith(".json") && !name.startsWith("."))
      .map((name) => name.slice(0, -".json".length))
      .toSorted();
  }

  #row(scope: Scope, sessionId: string): SessionRow | null {
    const row = this.#work.byId(scope.userId ?? null, sessionId);
    return row !== null && isVisible(row) && inScope(scope, row) ? row : null;
  }

  #path(row: SessionRow, key: string): string {
    return join(stateFolder(this.#root, row, row.sessionId), `${key}.json`);
  }

  #read(row: SessionRow, key: string): StateValue | null {
    const path = this.#path(row, key);
    const bytes = readWhole(this.#disk, path);
    if (bytes === null) return null;
    const saved = parseJson(bytes);
    if (!isRecord(saved) || typeof saved.version !== "number" || saved.value === undefined) {
      const advice = "Repair it manually, or delete it to start without this state";
      throw new SkeinError("unreadable_file", { file: path, problem: "it is not a saved state", advice });
    }
    return { value: saved.value as Json, version: saved.version };
  }
}
