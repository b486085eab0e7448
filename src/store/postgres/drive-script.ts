import type { Script, SqlRow, Statement, StatementResult } from "../../core/script.ts";
import type { Sql } from "./database.ts";
import { lockText } from "./database.ts";
import { decodeText, encodeText } from "./lookup-text.ts";
import { scriptedGatewayTables } from "./schema-gateway.ts";
import { runTables } from "./schema-runs.ts";

/**
 * Runs a script that does not depend on the kind of database, waiting for each statement. Unlike in SQLite, no
 * statement can follow one that failed, because PostgreSQL then rejects the rest of the transaction.
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

async function execute(sql: Sql, { text, values, wants, forEveryUser }: Statement): Promise<StatementResult> {
  if (wants === "lock") {
    await sql(lockText, [`skein ${text}`]);
    return undefined;
  }
  const { text: translated, lists } = toPostgres(
    forEveryUser === undefined
      ? text
      : `SELECT * FROM skein.${forEveryUser}(${values.map(() => "?").join()})`,
  );
  const sent =
    wants === "changes"
      ? `WITH changed AS (${translated} RETURNING 1) SELECT count(*) AS count FROM changed`
      : translated;
  const stored = values.map((value, index) => {
    if (typeof value !== "string") return value;
    return lists.has(index + 1) ? encodeList(value) : encodeText(value);
  });
  const rows = await sql<SqlRow>(sent, stored);
  if (wants === "changes") return Number(rows[0]?.count ?? 0);
  const decoded = rows.map(decodeRow);
  return wants === "row" ? decoded[0] : decoded;
}

/** Quoted parts of a statement, which are not translated. */
const quoted = /('(?:[^']|'')*'|"[^"]*")/;
const tableAfter = new RegExp(
  `\\b(FROM|JOIN|INTO|UPDATE)\\s+(${[...runTables, ...scriptedGatewayTables].join("|")})\\b`,
  "g",
);

interface Translated {
  readonly text: string;
  /** The numbers of the parameters that are JSON lists. */
  readonly lists: ReadonlySet<number>;
}

const translated = new Map<string, Translated>();

/**
 * Translates a statement from SQLite to PostgreSQL: numbers the parameters, qualifies the names of tables with the
 * schema, quotes the column `user`, rewrites JSON lists, and removes hints that PostgreSQL does not have.
 */
function toPostgres(text: string): Translated {
  const known = translated.get(text);
  if (known !== undefined) return known;
  let count = 0;
  const lists = new Set<number>();
  const parts = text.split(quoted).map((part, index) => {
    if (index % 2 === 1) return part;
    return part
      .replaceAll(/ INDEXED BY \w+/g, "")
      .replaceAll("CROSS JOIN", "JOIN")
      .replaceAll(/\buser\b/g, '"user"')
      .replaceAll(tableAfter, "$1 skein.$2")
      .replaceAll(/\?(\d*)/g, (_, number: string) => `$${number === "" ? ++count : number}`)
      .replaceAll(/json_each\(\$(\d+)\)/g, (_, number: string) => {
        lists.add(Number(number));
        return `json_array_elements_text($${number}::json)`;
      });
  });
  const made = { text: parts.join(""), lists };
  translated.set(text, made);
  return made;
}

/** In JSON, a zero byte and a lone surrogate are escape sequences, which PostgreSQL rejects when it reads the items. */
function encodeList(json: string): string {
  if (!json.includes("\\u")) return encodeText(json);
  const items = JSON.parse(json) as readonly unknown[];
  return JSON.stringify(items.map((item) => (typeof item === "string" ? encodeText(item) : item)));
}

function decodeRow(row: SqlRow): SqlRow {
  for (const [name, value] of Object.entries(row))
    if (typeof value === "string") row[name] = decodeText(value);
  return row;
}
