import type { Clock } from "../../core/clock.ts";
import { systemClock } from "../../core/clock.ts";
import { SkeinError } from "../../core/errors.ts";
import type { IdSource } from "../../core/ids.ts";
import { createIdSource } from "../../core/ids.ts";
import type { Script } from "../../core/script.ts";
import { runOn, runScript, valueScript } from "../../core/script.ts";
import type { WorkAttendant } from "../../runs/contract.ts";
import { ChangeFeed } from "../change-feed.ts";
import type { AppendOptions, BlobStore, Json, Scope } from "../contract.ts";
import { Database, inMemory } from "../files/database.ts";
import {
  agentOfBlob,
  checkScope,
  checkStateKey,
  hashOf,
  nextVersion,
  stateText,
  withScopeChecks,
} from "../rules.ts";
import { SqliteEngine } from "../sqlite-engine.ts";
import type { FenceOption, LocalWork, WorkingState, WorkingStore } from "../work.ts";
import { Attendance, toFenceFunction } from "../work.ts";
import { MemorySearch } from "./search.ts";
import { SessionTable } from "./session-table.ts";
import type { ShareBlob, Together } from "./sessions.ts";
import { MemorySessions } from "./sessions.ts";

/** A store that lives as long as the process. Other stores are tested against it as the reference. */
export interface MemoryStore extends WorkingStore<LocalWork> {}

const facts = "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID";

export function createMemoryStore(options: { clock?: Clock; newId?: IdSource } = {}): MemoryStore {
  const table = new SessionTable();
  const watch = new ChangeFeed();
  const clock = options.clock ?? systemClock;
  const values: StateValues = new Map();
  const blobs: Blobs = new Map();
  const newId = options.newId ?? createIdSource(clock);
  const forgetState = (uid: string) => void values.delete(uid);
  const shareBlob: ShareBlob = ({ userId, agentId }, to, sha256) => {
    const ofUser = blobs.get(userId);
    const bytes = ofUser?.get(blobPlace(agentId, sha256));
    if (bytes !== undefined) ofUser?.set(blobPlace(to, sha256), bytes);
  };
  const work = new MemoryWork();
  const sessions = new MemorySessions(table, watch, clock, newId, forgetState, shareBlob, work);
  const store = withScopeChecks({
    sessions,
    search: new MemorySearch(table),
    state: memoryState(table, values, work),
    blobs: memoryBlobs(blobs),
    watch,
    purgeUser: async (userId) => {
      blobs.delete(userId);
      return { sessions: await sessions.forgetUser(userId) };
    },
    close: async () => work.close(),
  });
  const handle: LocalWork = {
    get engine() {
      return work.engine;
    },
    get ledger() {
      return work.ledger;
    },
    shared: null,
    attend: (attendant) => {
      work.attendant = attendant;
    },
    find: (userId, by) => valueScript(sessions.refAt(userId, by)),
    locate: async (userId, key) => sessions.refAt(userId, { key }),
    create: async (scope, init, act) => {
      checkScope(scope);
      return sessions.createWith(scope, init, act);
    },
    watch: (listener) => watch.subscribe("all users", listener),
    users: async () => table.users(),
    erase: () => undefined,
    settle: async () => undefined,
  };
  return { ...store, work: handle };
}

/** An in-memory database for run state. */
export function createMemoryLedger(): Database {
  return new Database(inMemory, "", [facts]);
}

/** The sessions' run state, in a database that is created on first use. */
class MemoryWork extends Attendance implements Together {
  #ledger: Database | null = null;
  #engine: SqliteEngine | null = null;

  get ledger(): Database {
    this.#ledger ??= createMemoryLedger();
    return this.#ledger;
  }

  get engine(): SqliteEngine {
    this.#engine ??= new SqliteEngine(this.ledger);
    return this.#engine;
  }

  together<T>(act: (attendant: WorkAttendant) => Script<T>): T {
    const script = () => act(this.attendant);
    return this.#ledger === null ? runScript(script(), refuseStatement) : this.inLedger(script);
  }

  inLedger<T>(script: () => Script<T>): T {
    return this.ledger.exclusively(() => runOn(this.ledger, script()));
  }

  fence(options: FenceOption): Pick<AppendOptions, "fence"> {
    return toFenceFunction(this, options);
  }

  close(): void {
    this.#ledger?.close();
    this.#ledger = null;
  }
}

function refuseStatement(): never {
  throw new SkeinError("internal", { problem: "a store without runs was asked for a run" });
}

type StateValues = Map<string, Map<string, { text: string; version: number }>>;

function memoryState(table: SessionTable, values: StateValues, work: MemoryWork): WorkingState {
  const of = (scope: Scope, sessionId: string) => {
    const session = table.get(scope, sessionId);
    return session === null ? undefined : values.get(session.record.uid);
  };
  return {
    async get(scope, sessionId, key) {
      const held = of(scope, sessionId)?.get(key);
      return held === undefined ? null : { value: JSON.parse(held.text) as Json, version: held.version };
    },
    async set(scope, sessionId, key, value, setOptions = {}) {
      checkStateKey(key);
      const text = stateText(key, value);
      const { uid } = table.require(scope, sessionId).record;
      if (work.fence(setOptions).fence?.() === false) throw new SkeinError("fenced", { sessionId });
      const ofSession = values.get(uid) ?? new Map();
      const version = nextVersion(key, ofSession.get(key)?.version ?? null, setOptions);
      ofSession.set(key, { text, version });
      values.set(uid, ofSession);
      return version;
    },
    async delete(scope, sessionId, key) {
      return of(scope, sessionId)?.delete(key) ?? false;
    },
    async keys(scope, sessionId) {
      return [...(of(scope, sessionId)?.keys() ?? [])].toSorted();
    },
  };
}

/** Keyed by user, then by agent and hash. */
type Blobs = Map<string | null, Map<string, Uint8Array>>;

function blobPlace(agentId: string | undefined, sha256: string): string {
  return `${agentId}/${sha256}`;
}

/** Two users who store the same bytes get two blobs so that neither user can probe for the other's blobs. */
function memoryBlobs(blobs: Blobs): BlobStore {
  return {
    async put(scope, bytes) {
      const sha256 = hashOf(bytes);
      const ofUser = blobs.get(scope.userId ?? null) ?? new Map();
      blobs.set(
        scope.userId ?? null,
        ofUser.set(blobPlace(agentOfBlob(scope), sha256), Uint8Array.from(bytes)),
      );
      return sha256;
    },
    async get(scope, sha256) {
      const bytes = blobs.get(scope.userId ?? null)?.get(blobPlace(scope.agentId, sha256));
      return bytes === undefined ? null : Uint8Array.from(bytes);
    },
  };
}
