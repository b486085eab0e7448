/** A value that a statement takes or returns. */
export type SqlValue = string | number | null;

/** A row of a result, by column name. */
export type SqlRow = Record<string, unknown>;

/** A statement that a script asks its database to execute, with `?` for each value. */
export interface Statement {
  readonly text: string;
  readonly values: readonly SqlValue[];
  /** `changes` is the number of rows that the statement changed. `lock` returns nothing: `text` names the lock. */
  readonly wants: "row" | "rows" | "changes" | "lock";
  /**
   * Set if the statement reads the rows of all users, which a database with row-level security hides from a user's
   * transaction. Such a database calls its function of this name with the same values.
   */
  readonly forEveryUser?: "taken_slots" | "last_turn";
}

/** What a database returns for a statement. */
export type StatementResult = SqlRow | undefined | readonly SqlRow[] | number;

/**
 * The steps of a transaction. A script yields its statements, so that the same steps run on a synchronous database and
 * on a database server. It must not have side effects, because a transaction can be repeated.
 */
export type Script<T> = Generator<Statement, T, StatementResult>;

export function* queryRow(text: string, ...values: SqlValue[]): Script<SqlRow | undefined> {
  return (yield { text, values, wants: "row" }) as SqlRow | undefined;
}

export function* queryRows(text: string, ...values: SqlValue[]): Script<SqlRow[]> {
  return (yield { text, values, wants: "rows" }) as SqlRow[];
}

/** Reads the rows of all users. */
export function* queryEveryUser(
  forEveryUser: NonNullable<Statement["forEveryUser"]>,
  text: string,
  ...values: SqlValue[]
): Script<SqlRow[]> {
  return (yield { text, values, wants: "rows", forEveryUser }) as SqlRow[];
}

/** Returns the number of changed rows. */
export function* changeRows(text: string, ...values: SqlValue[]): Script<number> {
  return Number(yield { text, values, wants: "changes" });
}

/**
 * Excludes all other transactions that take a slot of a lane, or rows of the outbox, until this one ends. A transaction
 * takes this lock last and holds it only briefly, because all users share it.
 */
export function* lockFor(what: "slots" | "outbox"): Script<void> {
  yield { text: what, values: [], wants: "lock" };
}

/** A script without statements. */
// biome-ignore lint/correctness/useYield: It has the type of a script, but its result is known.
export function* valueScript<T>(value: T): Script<T> {
  return value;
}

/**
 * `synced` changes are on disk before another process or a caller can see them. `unsynced` changes survive a process
 * crash, but a power failure can undo them.
 */
export type Durability = "synced" | "unsynced";

/** A script makes the choice based on the state of the database just before the transaction. */
export type DurabilityChoice = Durability | (() => Script<Durability>);

/** Decides on a write with a script that runs under the same lock. If it returns `false`, the write is rejected. */
export interface FenceScript {
  script(): Script<boolean>;
  /** Absent if the script only reads. */
  readonly durability?: DurabilityChoice;
  /** `true` to throw `locked` instead of waiting for another machine that is changing the user's runs. */
  readonly skipsLocked?: boolean;
  /** How long to wait for a session's lock file, in milliseconds, if the store would wait longer. */
  readonly lockTimeoutMs?: number;
  /** The run that writes, if the script does nothing but check that this run still holds its session. */
  readonly held?: { readonly runId: string; readonly fence: number };
  /** Called once the script has returned `true` and its changes are committed, before the write. */
  afterCommit?(): void;
}

/** A synchronous database. */
export interface SqlDatabase {
  /** Prepares each SQL statement once. */
  sql(text: string): {
    all(...values: SqlValue[]): SqlRow[];
    get(...values: SqlValue[]): SqlRow | undefined;
  };
  run(text: string, ...values: SqlValue[]): { readonly changes: number | bigint };
  /** Runs a transaction that excludes all other processes. Nested calls are savepoints. */
  exclusively<T>(act: () => T): T;
  /** Commits without waiting for the disk. The change survives a process crash, but can be lost in a power failure. */
  unsynced<T>(act: () => T): T;
}

/** Runs a script in the current transaction, or without a transaction if there is none. */
export function runOn<T>(database: SqlDatabase, script: Script<T>): T {
  return runScript(script, ({ text, values, wants }) => {
    // A transaction already excludes all others.
    if (wants === "lock") return undefined;
    if (wants === "changes") return Number(database.run(text, ...values).changes);
    return wants === "row" ? database.sql(text).get(...values) : database.sql(text).all(...values);
  });
}

/** Runs a script in its own transaction, or in a savepoint of the current transaction. */
export function changeOn<T>(database: SqlDatabase, durability: DurabilityChoice, script: Script<T>): T {
  const chosen = typeof durability === "string" ? durability : runOn(database, durability());
  const act = () => database.exclusively(() => runOn(database, script));
  return chosen === "synced" ? act() : database.unsynced(act);
}

/** Runs a script whose statements are executed synchronously. */
export function runScript<T>(script: Script<T>, execute: (statement: Statement) => StatementResult): T {
  let step = script.next();
  while (step.done !== true) {
    let result: StatementResult;
    try {
      result = execute(step.value);
    } catch (error) {
      step = script.throw(error);
      continue;
    }
    step = script.next(result);
  }
  return step.value;
}

/**
 * Whose rows a transaction changes. On a database that many machines share, the transaction excludes other transactions
 * of the same user. `gateway` excludes other changes to the gateway's tokens and event numbers. `null` is for a
 * transaction that can safely run concurrently with any other.
 */
export type Whose =
  | { readonly userId: string | null }
  | { readonly runId: string }
  | { readonly approvalId: string }
  | "gateway"
  | null;

/** Runs scripts on a database that several processes share. */
export interface ScriptEngine {
  /** Runs a script that only reads. */
  read<T>(script: () => Script<T>): Promise<T>;
  /** Runs a script in one transaction. It can be repeated if the database rejects the first attempt. */
  change<T>(durability: DurabilityChoice, whose: Whose, script: () => Script<T>): Promise<T>;
  /** Runs scripts, in one transaction if possible. A script that throws a SkeinError does not affect the others. */
  changeEach<T>(
    changes: readonly { readonly whose: Whose; script(): Script<T> }[],
  ): Promise<readonly PromiseSettledResult<T>[]>;
  /** A value that changes when another process writes. */
  version(): number;
  /**
   * Calls the listener when another process might have written. If the database does not report changes, the listener
   * is never called. Returns a function that unsubscribes.
   */
  watch(listener: () => void): () => void;
  /**
   * Returns equal values only if nothing was written in between, by this process or another one. `null` within a
   * transaction, because its changes can be rolled back.
   */
  mark(): string | null;
  /**
   * Returns by how much a claim raises a run's fence. If a claim can be undone while its owner continues, the number is
   * random, so that no other owner receives the same fence.
   */
  fenceStep(): number;
}
