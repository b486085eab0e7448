import type { SqlRow, SqlValue } from "../../core/script.ts";
import { runTables } from "./schema-runs.ts";
import { tokenTables } from "./schema-tokens.ts";

/** Parts of a statement outside of quotes. */
const quoted = /('(?:[^']|'')*'|"[^"]*")/;
const tableAfter = new RegExp(
  `\\b(FROM|JOIN|INTO|UPDATE)\\s+(${[...runTables, ...tokenTables].join("|")})\\b`,
  "g",
);

const translated = new Map<string, string>();

/**
 * Translates a statement of a script from SQLite to PostgreSQL: numbered parameters, names in their schema, the
 * quoted column `user`, JSON lists, and hints that PostgreSQL does not have.
 */
export function toPostgres(text: string): string {
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

/** Starts the code of a character that PostgreSQL does not store. */
const codeStart = "\uE000";
/** A zero byte, half of a surrogate pair, or the start of a code. */
const refused = /[\0\uE000]|[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g;

/** Encodes text so that PostgreSQL stores it. Different texts have different codes. */
export function encodeText<V extends SqlValue>(value: V): V {
  if (typeof value !== "string") return value;
  const encoded: string = value.replace(
    refused,
    (character) => `${codeStart}${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return encoded as V;
}

const codes = new RegExp(`${codeStart}([0-9a-f]{4})`, "g");

export function decodeRow(row: SqlRow): SqlRow {
  for (const [name, value] of Object.entries(row)) {
    if (typeof value !== "string" || !value.includes(codeStart)) continue;
    row[name] = value.replace(codes, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
  }
  return row;
}
