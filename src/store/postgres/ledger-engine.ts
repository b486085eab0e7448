import { randomInt } from "node:crypto";
import { BoundedMap } from "../../core/bounded-map.ts";
import type { DurabilityChoice, Script, ScriptEngine, Whose } from "../../core/script.ts";
import { queryRow } from "../../core/script.ts";
import type { Actor, PostgresDatabase, TransactOptions } from "./database.ts";
import { everyUser } from "./database.ts";
import { driveScript } from "./drive-script.ts";
import type { WakeUps } from "./wake-ups.ts";

const mostKnown = 10_000;
/** So that a run's fence remains a safe integer for millions of claims. */
const largestStep = 2 ** 32;

/** Runs scripts on PostgreSQL. A change excludes other changes to the same user's runs. */
export class PostgresEngine implements ScriptEngine {
  /** Can read the rows of all users. */
  readonly #database: PostgresDatabase;
  readonly #wakeUps: WakeUps | null;
  /** The users of known runs and approvals, which never change. */
  readonly #users = new BoundedMap<{ readonly userId: string | null }>(mostKnown);
  #marks = 0;

  constructor(database: PostgresDatabase, wakeUps: WakeUps | null = null) {
    this.#database = database;
    this.#wakeUps = wakeUps;
  }

  read<T>(script: () => Script<T>): Promise<T> {
    return this.#database.transact(everyUser, (sql) => driveScript(sql, script()), { isRepeatable: true });
  }

  async change<T>(durability: DurabilityChoice, whose: Whose, script: () => Script<T>): Promise<T> {
    const chosen = typeof durability === "string" ? durability : await this.read(durability);
    const actor = await this.#actorFor(whose);
    return this.#database.transact(actor, (sql) => driveScript(sql, script()), {
      durability: chosen,
      ...locksFor(whose, actor),
    });
  }

  changeEach<T>(
    changes: readonly { readonly whose: Whose; script(): Script<T> }[],
  ): Promise<readonly PromiseSettledResult<T>[]> {
    return Promise.allSettled(changes.map(({ whose, script }) => this.change("synced", whose, script)));
  }

  version(): number {
    return this.#wakeUps?.version ?? 0;
  }

  watch(listener: () => void): () => void {
    return this.#wakeUps?.watch(listener) ?? (() => undefined);
  }

  /** Returns a different value each time, because only a query can tell whether another process wrote. */
  mark(): string {
    return String(++this.#marks);
  }

  /** A crash of the server, or a failover, can undo a claim that was not synced. */
  fenceStep(): number {
    return randomInt(1, largestStep);
  }

  /**
   * Returns the user whose rows are changed. If the run or approval does not exist, the script must handle the missing
   * row.
   */
  async #actorFor(whose: Whose): Promise<Actor> {
    if (whose === null || whose === "gateway") return everyUser;
    if ("userId" in whose) return whose.userId;
    const [table, column, id] =
      "runId" in whose
        ? (["runs", "run_id", whose.runId] as const)
        : (["approvals", "approval_id", whose.approvalId] as const);
    const name = `${table} ${id}`;
    const known = this.#users.get(name);
    if (known !== undefined) return known.userId;
    const row = await this.read(() => queryRow(`SELECT user FROM ${table} WHERE ${column} = ?`, id));
    if (row === undefined) return everyUser;
    const userId = row.user === "" ? null : String(row.user);
    this.#users.set(name, { userId });
    return userId;
  }
}

function locksFor(whose: Whose, actor: Actor): Pick<TransactOptions, "locks"> {
  if (whose === "gateway") return { locks: "gateway" };
  if (whose === null || actor === everyUser) return {};
  return { locks: "runs" };
}
