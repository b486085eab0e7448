import type { Script, ScriptEngine } from "../../src/core/script.ts";
import { valueScript } from "../../src/core/script.ts";
import type { SessionRef } from "../../src/core/session-ref.ts";
import type { Run, SkeinEvent } from "../../src/index.ts";
import { SkeinError } from "../../src/index.ts";
import type { AcceptRequest, ChildRequest, ChildSequel, Claim, Ledger } from "../../src/runs/contract.ts";
import type { LedgerRunsOptions } from "../../src/runs/ledger/ledger-runs.ts";
import { LedgerRuns } from "../../src/runs/ledger/ledger-runs.ts";
import type { RunLedgerOptions } from "../../src/runs/ledger/run-ledger.ts";
import { migrateRuns } from "../../src/runs/ledger/schema.ts";
import { Database, inMemory } from "../../src/store/files/database.ts";
import { SqliteEngine } from "../../src/store/sqlite-engine.ts";

const facts = "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID";
const pragmas = "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;";

/** An engine that holds a database, until it is closed or the test ends. */
export interface TestEngine extends ScriptEngine {
  close(): Promise<void>;
}

let openEngine: ((path: string) => TestEngine) | null = null;

/**
 * Makes `RunBooks` keep its runs elsewhere. By default, they are in a database in memory or in a file. Engines with the
 * same path, except the one of memory, share their runs.
 */
export function openEnginesWith(open: ((path: string) => TestEngine) | null): void {
  openEngine = open;
}

/** A work store with a clock, owners and sessions that the test controls. */
export class RunBooks {
  now = 1_000_000;
  readonly events: SkeinEvent[] = [];
  readonly gone = new Set<string>();
  /** Sessions that are missing, locked by another process, or unreadable. */
  readonly removed = new Set<string>();
  readonly locked = new Set<string>();
  readonly broken = new Set<string>();
  /** Sessions that have received input or that the test declares to exist. */
  readonly sessions = new Map<string, SessionRef>();
  readonly db: Database;
  readonly runs: LedgerRuns;
  /** Called once, before the next session is locked. */
  beforeLock: (() => Promise<void>) | null = null;
  readonly #engine: ScriptEngine | TestEngine;
  #ids = 0;

  /** `ledger` replaces the database. */
  constructor(
    { ledger, ...options }: Partial<LedgerRunsOptions> & { readonly ledger?: Ledger } = {},
    path: string = inMemory,
    name = "id",
  ) {
    this.db = new Database(path, path === inMemory ? "" : pragmas, [facts]);
    const used = ledger ?? this.db;
    migrateRuns(used);
    const engine = ledger === undefined && openEngine !== null ? openEngine(path) : new SqliteEngine(used);
    this.#engine = engine;
    this.runs = new LedgerRuns({
      engine,
      clock: { now: () => this.now },
      newId: () => `${name}-${++this.#ids}`,
      emit: (event) => void this.events.push(event),
      isGone: (owner) => this.gone.has(owner),
      underLock: async ({ uid, sessionId, userId }, { durability = "unsynced", script, afterCommit }) => {
        const act = this.beforeLock;
        this.beforeLock = null;
        await act?.();
        if (this.removed.has(uid))
          throw new SkeinError("not_found", { what: "Session", name: uid, advice: "x" });
        if (this.locked.has(uid)) throw new SkeinError("locked", { file: uid, holder: "somebody" });
        if (this.broken.has(uid)) throw new Error(`EIO: ${uid}`);
        await engine.change(durability, { userId }, function* () {
          if (!(yield* script())) throw new SkeinError("fenced", { sessionId });
        });
        afterCommit?.();
        return { leafId: `leaf of ${uid}` };
      },
      planSequel: toldToParent,
      sessionAt: (userId, by) => valueScript(this.#sessionAt(userId, by)),
      ...options,
    });
  }

  /** Frees the database. A property that opens one for each of its cases must close it. */
  async close(): Promise<void> {
    this.db.close();
    if ("close" in this.#engine) await this.#engine.close();
  }

  #sessionAt(userId: string | null, by: { key: string } | { sessionId: string }): SessionRef | null {
    const isIt = (each: SessionRef) => ("key" in by ? each.key === by.key : each.sessionId === by.sessionId);
    const there = [...this.sessions.values()].filter(({ uid }) => !this.removed.has(uid));
    return there.find((each) => each.userId === userId && isIt(each)) ?? null;
  }

  /** Runs a script in a transaction on Ann's runs. */
  change<T>(script: () => Script<T>): Promise<T> {
    return this.#engine.change("synced", { userId: "ann" }, script);
  }

  /** Counts the statements that reading scripts execute from now on. */
  countReads(): { readonly count: number } {
    const reads = { count: 0 };
    const { read } = this.#engine;
    this.#engine.read = (script) => read.call(this.#engine, () => counted(script(), reads)) as never;
    return reads;
  }

  /** Accepts input for the session with this name. */
  async accept(uid: string, request: Partial<AcceptRequest> = {}): Promise<Run> {
    const message = { role: "user" as const, content: "hello" };
    const session = request.session ?? sessionNamed(uid);
    this.sessions.set(session.uid, session);
    const { run } = await this.runs.accept({ session, kind: "user", message, ...request });
    return run;
  }

  /** Accepts input and claims it. */
  async running(uid: string, request: Partial<AcceptRequest> = {}, owner = "me"): Promise<Claim> {
    const run = await this.accept(uid, request);
    const claim = await this.claim(owner);
    if (claim.run.runId !== run.runId) throw new Error(`claimed ${claim.run.runId}, not ${run.runId}`);
    return claim;
  }

  async claim(owner = "me"): Promise<Claim> {
    const claim = await this.runs.claim(owner);
    if (claim === null) throw new Error("nothing to claim");
    return claim;
  }

  async stateOf(runId: string): Promise<string> {
    return (await this.runs.get(runId))?.state ?? "unknown";
  }

  /** Returns the types of the events since the last call. */
  told(): string[] {
    return this.events.splice(0).map(({ type }) => type);
  }
}

function* counted<T>(script: Script<T>, reads: { count: number }): Script<T> {
  let step = script.next();
  while (step.done !== true) {
    reads.count += 1;
    step = script.next(yield step.value);
  }
  return step.value;
}

/** The options for a child that `parent` spawns. Its end is announced to that session. */
export function spawnedBy(parent: Run, child: Partial<ChildRequest> = {}): Partial<AcceptRequest> {
  const { key, sessionId } = parent.session;
  const sequel: ChildSequel = {
    type: "child",
    parent: { key, sessionId },
    childKey: "subagent:x",
    task: "work",
  };
  const spawnId = `spawn-${child.spawnId ?? ++spawned}`;
  return {
    kind: "spawn",
    startedBy: parent.runId,
    root: { rootId: parent.root.rootId, hops: parent.root.hops + 1 },
    options: { sequel },
    child: { parentKey: key, task: "work", mode: "run", cleanup: "keep", maxChildren: 5, ...child, spawnId },
  };
}

let spawned = 0;

/** A simple sequel. Reports a child's end to its parent in one line. Otherwise, delivers the reply to the requester. */
export const toldToParent: RunLedgerOptions["planSequel"] = (run, outcome) => {
  const { sequel } = run.options;
  if (sequel === undefined) return [];
  const isChild = sequel.type === "child";
  const { key } = isChild ? sequel.parent : sequel.asker;
  const content = `${run.session.sessionId}: ${outcome.state} ${outcome.reply ?? ""}`.trim();
  return [
    {
      to: { key },
      request: {
        kind: isChild ? "announce" : "ping_pong",
        message: { role: "user", content },
        idempotencyKey: `announce:${run.runId}`,
        arrivalOf: run.runId,
        root: run.root,
        ...(sequel.deliverTo === undefined ? {} : { options: { deliverTo: sequel.deliverTo } }),
      },
      isBetweenStrangers: !isChild,
    },
  ];
};

/** `ann/s1` is Ann's session s1. */
export function sessionNamed(uid: string): SessionRef {
  const [userId = "", sessionId = userId] = uid.includes("/") ? uid.split("/") : ["ann", uid];
  return { uid, userId, agentId: "main", key: `agent:main:session:${sessionId}`, sessionId };
}
