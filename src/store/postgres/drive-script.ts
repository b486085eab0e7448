import type { Script, SqlRow, Statement, StatementResult } from "../../core/script.ts";

/** Executes a statement with `$1` for its first value. */
export type ExecuteStatement = (
  text: string,
  values: readonly (string | number | null)[],
) => Promise<{ readonly rows: readonly unknown[]; readonly rowCount: number | null }>;

/**
 * Runs a script that does not depend on the kind of database, waiting for each statement. Unlike in SQLite, no statement
 * can follow one that failed, because PostgreSQL then rejects the rest of the transaction.
 */
export async function driveScript<T>(script: Script<T>, execute: ExecuteStatement): Promise<T> {
  let step = script.next();
  while (step.done !== true) {
    let result: StatementResult;
    try {
      result = await resultOf(step.value, execute);
    } catch (error) {
      step = script.throw(error);
      continue;
    }
    step = script.next(result);
  }
  return step.value;
}

async function resultOf(
  { text, values, wants }: Statement,
  execute: ExecuteStatement,
): Promise<StatementResult> {
  const { rows, rowCount } = await execute(withNumbers(text), values);
  if (wants === "changes") return rowCount ?? 0;
  return wants === "row" ? (rows[0] as SqlRow | undefined) : (rows as SqlRow[]);
}

/** Replaces each `?` with `$1`, `$2` and so on, except in quoted text. */
function withNumbers(text: string): string {
  let count = 0;
  return text.replace(/'(?:[^']|'')*'|"(?:[^"]|"")*"|\?/g, (found) =>
    found === "?" ? `$${++count}` : found,
  );
}
