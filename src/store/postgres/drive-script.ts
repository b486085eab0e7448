import type { Script, SqlRow, Statement, StatementResult } from "../../core/script.ts";
import type { Sql } from "./database.ts";
import { codeStart, encodeText } from "./lookup-text.ts";
import { scriptedGatewayTables } from "./schema-gateway.ts";
import { runTables } from "./schema-runs.ts";

/**
 * Runs a script that does not depend on the kind of database, waiting for each statement. Unlike in SQLite, no statement
 * can follow one that failed, because PostgreSQL then rejects the rest of the transaction.
 */
export async function driveScript<T>(sql: Sql, script: Script<T>): Promise<T> {
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
  const translated = toPostgres(text);
  const sent =
    wants === "changes"
      ? `WITH changed AS (${translated} RETURNING 1) SELECT count(*) AS count FROM changed`
      : translated;
  const stored = values.map((value) => (typeof value === "string" ? encodeText(value) : value));
  const rows = await sql<SqlRow>(sent, stored);
  if (wants === "changes") return Number(rows[0]?.count ?? 0);
  const decoded = rows.map(decodeRow);
  return wants === "row" ? decoded[0] : decoded;
}

/** Parts of a statement outside of quotes. */
const quoted = /('(?:[^']|'')*'|"[^"]*")/;
const tableAfter = new RegExp(
  `\\b(FROM|JOIN|INTO|UPDATE)\\s+(${[...runTables, ...scriptedGatewayTables].join("|")})\\b`,
  "g",
);

const translated = new Map<string, string>();

/**
 * Translates a statement from SQLite to PostgreSQL: numbered parameters, names in their schema, the quoted column `user`,
 * JSON lists, and hints that PostgreSQL does not have.
 */
function toPostgres(text: string): string {
  const known = translated.get(text);
  if (known !== undefined) return known;
  let count = 0;
  const parts = text.split(quoted).map((part, index) => {
    if (index % 2 === 1) return part;
    return part
      .replaceAll(/ INDEXED BY \w+/g, "")
      .replaceAll("CROSS JOIN", "JOIN")
      .replaceAll(/\buser\b/g, '"user"')
      .replaceAll(tableAfter, "$1 skein.$2")
      .replaceAll(/\?(\d*)/g, (_, number: string) => `$${number === "" ? ++count : number}`)
      .replaceAll(/json_each\((\$\d+)\)/g, "json_array_elements_text($1::json)");
  });
  const made = parts.join("");
  translated.set(text, made);
  return made;
}

const codes = new RegExp(`${codeStart}([0-9a-f]{4})`, "g");

function decodeRow(row: SqlRow): SqlRow {
  for (const [name, value] of Object.entries(row)) {
    if (typeof value !== "string" || !value.includes(codeStart)) continue;
    row[name] = value.replace(codes, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
  }
  return row;
}
