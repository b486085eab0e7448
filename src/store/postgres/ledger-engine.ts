import type {
  DurabilityChoice,
  Script,
  ScriptEngine,
  Statement,
  StatementResult,
  Whose,
} from "../../core/script.ts";

import type { PostgresDatabase, Sql } from "./database.ts";
import { decodeRow, encodeText, toPostgres } from "./ledger-sql.ts";

/** Runs the ledger's scripts on PostgreSQL. A transaction excludes other changes to the same user's runs. */
export class PostgresEngine implements ScriptEngine {
  /** Works for all users. */
  readonly #database: PostgresDatabase;
  #marks = 0;

  constructor(database: PostgresDatabase) {
    this.#database = database;
  }

  read<T>(script: () => Script<T>): Promise<T> {
    return this.#database.transact(null, (sql) => runScriptOn(sql, script()), { isRepeatable: true });
  }

  change<T>(_durability: DurabilityChoice, whose: Whose, script: () => Script<T>): Promise<T> {
    return this.#database.transact(null, async (sql) => {
      if (whose === "tokens") await lockTokens(sql);
      const user = await findUser(sql, whose);
      if (user !== null) await lockUser(sql, user);
      return runScriptOn(sql, script());
    });
  }

  changeEach<T>(
    changes: readonly { readonly whose: Whose; script(): Script<T> }[],
  ): Promise<readonly PromiseSettledResult<T>[]> {
    return Promise.allSettled(changes.map(({ whose, script }) => this.change("synced", whose, script)));
  }

  version(): number {
    return 0;
  }

  /** Different each time, because only a query can tell whether another process wrote. */
  mark(): string {
    return String(++this.#marks);
  }
}

/** Returns the user whose runs a transaction changes, as in the column `user`. `null` if it locks no user. */
async function findUser(sql: Sql, whose: Whose): Promise<string | null> {
  if (whose === null || whose === "tokens") return null;
  if ("userId" in whose) return encodeText(whose.userId ?? "");
  const [table, column, id] =
    "runId" in whose ? ["runs", "run_id", whose.runId] : ["approvals", "approval_id", whose.approvalId];
  const text = `SELECT "user" FROM skein.${table} WHERE ${column} = $1`;
  const [row] = await sql<{ user: string }>(text, [encodeText(id)]);
  return row?.user ?? null;
}

/** Excludes all other changes to the user's runs until the transaction ends. */
export async function lockUser(sql: Sql, user: string): Promise<void> {
  await sql(
    `SELECT set_config('skein.run_user', 'u' || $1::text, true),
       pg_advisory_xact_lock(hashtextextended('skein runs ' || $1::text, 0))`,
    [user],
  );
}

/** Excludes all other changes to tokens, so that a token that is being revoked cannot create another one. */
async function lockTokens(sql: Sql): Promise<void> {
  await sql("SELECT pg_advisory_xact_lock(hashtextextended('skein tokens', 0))");
}

/** Runs a script whose statements are executed one after the other. */
export async function runScriptOn<T>(sql: Sql, script: Script<T>): Promise<T> {
  let step = script.next();
  while (step.done !== true) {
    let result: StatementResult;
    try {
      result = await execute(sql, step.value);
    } catch (error) {
      step = script.throw(error);
      continue;
    }
    step = script.next(result);
  }
  return step.value;
}

async function execute(sql: Sql, { text, values, wants }: Statement): Promise<StatementResult> {
  const sent =
    wants === "changes"
      ? `WITH changed AS (${toPostgres(text)} RETURNING 1) SELECT count(*) AS count FROM changed`
      : toPostgres(text);
  const rows = await sql<Record<string, unknown>>(sent, values.map(encodeText));
  if (wants === "changes") return Number(rows[0]?.count ?? 0);
  const decoded = rows.map(decodeRow);
  return wants === "row" ? decoded[0] : decoded;
}
