import type { Clock } from "../core/clock.ts";
import { SkeinError } from "../core/errors.ts";
import type { EventFeed } from "../core/events.ts";
import type { FenceScript, Script, ScriptEngine } from "../core/script.ts";
import { changeOn, runOn, valueScript } from "../core/script.ts";
import type { SessionRef } from "../core/session-ref.ts";
import type { AfterCommit, Ledger, WorkAttendant } from "../runs/contract.ts";
import type {
  Appended,
  AppendItem,
  AppendOptions,
  Backend,
  Json,
  Scope,
  SessionInit,
  SessionPage,
  SessionQuery,
  SessionRecord,
  SessionStore,
  StateStore,
  Store,
  StoreChange,
} from "./contract.ts";

/** Totals over a user's sessions, excluding the trash. */
export interface UserFigures {
  /** `null` for the unnamed user. */
  readonly userId: string | null;
  readonly sessions: number;
  readonly lastActiveAt: number;
  /** Total size of the logs. */
  readonly bytes: number;
  readonly totalTokens: number;
}

/** Lists across all users of a store. */
export interface EveryUser {
  /** Returns users in byte order. `null` is the unnamed user. Starts at the first user if `after` is `undefined`. */
  usersAfter(after: string | null | undefined, limit: number): Promise<readonly (string | null)[]>;
  /** Returns totals for these users' sessions. Users without sessions are omitted. */
  userFigures(
    userIds: readonly (string | null)[],
  ): Promise<{ readonly figures: readonly UserFigures[]; readonly behind: number }>;
  /** Lists all users' sessions in the same way that a store lists one user's. The query's reach is ignored. */
  listAllUsers(query: SessionQuery, agentId?: string): Promise<SessionPage>;
  countAllUsers(query: SessionQuery, agentId?: string): Promise<number>;
}

/** What processes on several machines need in addition to the database that they share. */
export interface SharedDatabase {
  /** Carries events between the processes. */
  readonly events: EventFeed;
  /** The time of the database, which is the same for all machines. */
  readonly clock: Clock;
  /** How long a process owns its runs after it last renewed its leases, in milliseconds. */
  readonly leaseMs: number;
  /** `false` while a process whose lease has expired might have lost its connection to the database only briefly. */
  canTakeOver(): boolean;
  /** Like the method of the back end. */
  findProblems(): Promise<readonly string[]>;
}

/** Connects runs to a store's sessions. Not part of the store contract. */
export interface StoreWork {
  /** Runs scripts on the database of the sessions' runs. */
  readonly engine: ScriptEngine;
  /** The database of the runs, if it is a local, synchronous one. */
  readonly ledger: Ledger | null;
  /** `null` if all processes that use the store run on one machine. */
  readonly shared: SharedDatabase | null;
  /** Absent if the store cannot list across users. */
  readonly everyUser?: EveryUser;
  /** Registers the attendant, which the store calls when it resets, removes, branches, redacts or purges a session. */
  attend(attendant: WorkAttendant): void;
  /**
   * Returns the session that currently has the given key or session ID, or `null`. Runs within a transaction on the
   * ledger.
   */
  find(
    userId: string | null,
    by: { readonly key: string } | { readonly sessionId: string },
  ): Script<SessionRef | null>;
  /** Like `find` with a key, but queries the store itself. Does not read the session's log. */
  locate(userId: string | null, key: string): Promise<SessionRef | null>;
  /**
   * Creates a session together with its first run. The script runs in the transaction that claims the names. If it
   * throws, nothing is created. The function that it returns is called after the commit. If the log cannot be written
   * at that point, it is created on first use, and the record is returned anyway.
   */
  create(
    scope: Scope,
    init: SessionInit,
    act: (session: SessionRef) => Script<AfterCommit>,
  ): Promise<SessionRecord>;
  /** Reports changes made by this process, for sessions of all users. */
  watch(listener: (change: StoreChange) => void): () => void;
  /** Returns the users with sessions. `null` is the unnamed user. */
  users(): Promise<readonly (string | null)[]>;
  /** Erases the bytes of deleted rows from the ledger's file. */
  erase(): void;
  /** Completes changes that earlier processes left unfinished. */
  settle(): Promise<void>;
}

/** A store that also keeps its sessions' runs. */
export interface WorkingStore<Work extends StoreWork = StoreWork> extends Store {
  readonly sessions: WorkingSessions;
  readonly state: WorkingState;
  readonly work: Work;
}

/** The runs of a store on this machine. */
export type LocalWork = StoreWork & { readonly ledger: Ledger };

/**
 * Returns the database of the runs. Throws if it is not a local one. `what` names the feature that needs it, for
 * example `A gateway`.
 */
export function requireLedger({ ledger }: StoreWork, what: string): Ledger {
  if (ledger !== null) return ledger;
  throw new SkeinError("invalid_arguments", {
    problem: `${what} needs a store that keeps its sessions' runs in a folder or in memory`,
    advice: "Use a folder or memory: true",
  });
}

/** A back end with everything that runs and gateways need. */
export interface WorkingBackend extends Backend {
  openStore(options?: Parameters<Backend["openStore"]>[0]): WorkingStore;
  /** Runs scripts on the gateways' own tables. */
  readonly engine: ScriptEngine;
  readonly shared: SharedDatabase;
  /** Called with errors that no caller is waiting for. A repeated error is skipped until the database answers again. */
  onError: ((error: unknown) => void) | null;
}

/** Throws if this is not one of this package's back ends. */
export function requireWorking(backend: Backend): WorkingBackend {
  if ("engine" in backend && "shared" in backend) return backend as WorkingBackend;
  throw new SkeinError("invalid_arguments", {
    problem: "backend is not a database that Skein has opened",
    advice: "Pass the result of openPostgres from skein/postgres",
  });
}

export interface FenceOption {
  readonly fence?: NonNullable<AppendOptions["fence"]> | FenceScript;
}

export type FencedAppend = Omit<AppendOptions, "fence"> & FenceOption;

/**
 * Sessions whose writes can also be fenced by a script. If no caller passes a script, any `SessionStore` can be used.
 */
export interface WorkingSessions extends SessionStore {
  append(
    scope: Scope,
    sessionId: string,
    items: readonly AppendItem[],
    options?: FencedAppend,
  ): Promise<Appended>;
  branch(
    scope: Scope,
    sessionId: string,
    targetId: string | null,
    options?: FenceOption,
  ): Promise<SessionRecord>;
  reset(
    scope: Scope,
    sessionId: string,
    options?: { sessionId?: string } & FenceOption,
  ): ReturnType<SessionStore["reset"]>;
}

/** State values that a run can set only while it holds its session. The fence's script must not change anything. */
export interface WorkingState extends StateStore {
  set(
    scope: Scope,
    sessionId: string,
    key: string,
    value: Json,
    options?: { ifVersion?: number | null } & FenceOption,
  ): Promise<number>;
}

/** Converts a fence to the function in the store contract, for a synchronous ledger. */
export function toFenceFunction(
  work: { readonly ledger: Ledger },
  { fence }: FenceOption,
): Pick<AppendOptions, "fence"> {
  if (fence === undefined) return {};
  if (typeof fence === "function") return { fence };
  return { fence: () => passesFence(work.ledger, fence) };
}

function passesFence(ledger: Ledger, fence: FenceScript): boolean {
  if (fence.durability === undefined) return runOn(ledger, fence.script());
  try {
    changeOn(ledger, fence.durability, acceptOrThrow(fence.script()));
  } catch (error) {
    if (error instanceof RejectedWrite) return false;
    throw error;
  }
  fence.afterCommit?.();
  return true;
}

/** Thrown to roll back the changes that a fence made before it returned `false`. */
class RejectedWrite extends Error {}

function* acceptOrThrow(script: Script<boolean>): Script<void> {
  if (!(yield* script)) throw new RejectedWrite();
}

export const doNothing: AfterCommit = () => undefined;

const noAttendant: WorkAttendant = {
  reset: () => valueScript(doNothing),
  remove: () => valueScript(doNothing),
  branch: () => valueScript(undefined),
  redact: () => valueScript(undefined),
  purge: () => valueScript(undefined),
  discardFiles: async () => undefined,
  hasRuns: () => valueScript(false),
  isBlobInUse: () => valueScript(false),
};

/** Holds a store's attendant, if any. Does nothing until runs are attached. */
export class Attendance {
  attendant: WorkAttendant = noAttendant;
}
