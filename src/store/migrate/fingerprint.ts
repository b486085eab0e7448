import { createHash } from "node:crypto";
import type { Entry } from "../../core/entries.ts";
import { isCorrupt } from "../../core/entries.ts";
import { sameJson } from "../../core/link-entries.ts";
import { parseSession } from "../../core/parse-session.ts";
import type { SqlRow } from "../../core/script.ts";
import { applyMetaEntry, metaOf } from "../session-meta.ts";
import type { LedgerTable, MigrationSource, StoredSession } from "./contract.ts";

/** What a session or a table contains, in a form that is the same for every kind of store. */
export interface Fingerprint {
  /** The number of entries or rows. */
  readonly count: number;
  readonly sha256: string;
}

/** Reads a whole session. Returns `null` if it does not exist. */
export async function fingerprintSession(reader: MigrationSource, uid: string): Promise<Fingerprint | null> {
  const session = await reader.session(uid);
  if (session === null) return null;
  const { userId, agentId, key, sessionId, createdAt, removedAt, header } = session;
  const hash = createHash("sha256");
  const add = (part: unknown) => hash.update(`${JSON.stringify(part)}\n`);
  add([uid, userId, agentId, key, sessionId, createdAt, removedAt]);
  add(header);
  let count = 0;
  let versioned = metaOf(header, []);
  for await (const lines of reader.lines(session)) {
    for (const line of lines) {
      hash.update(line).update("\n");
      count += 1;
      if (line.includes('"skein.meta"'))
        for (const entry of parseEntries(line)) versioned = applyMetaEntry(versioned, header, entry);
    }
  }
  add(versioned.version);
  if (!matchesCurrent(session, versioned)) add("the metadata differs from the log");
  for (const { key: name, version, value } of await reader.states(session)) add([name, version, value]);
  return { count, sha256: hash.digest("hex") };
}

/** Returns an array that contains the entry on a line, or nothing if the line is damaged. */
export function parseEntries(line: string): Entry[] {
  return parseSession(line).lines.filter((entry): entry is Entry => !isCorrupt(entry));
}

function matchesCurrent({ current }: StoredSession, { meta, version }: ReturnType<typeof metaOf>): boolean {
  return current === undefined || (current.version === version && sameJson(current.meta, meta));
}

export const rowsAtOnce = 100;

/** Reads a whole table. The order of rows does not matter, because stores can order special characters differently. */
export async function fingerprintTable(
  reader: MigrationSource,
  table: LedgerTable,
  columns: readonly string[],
): Promise<Fingerprint> {
  const sum = Buffer.alloc(32);
  let count = 0;
  for (let after: SqlRow | null = null; ; ) {
    const rows: readonly SqlRow[] = await reader.rowsAfter(table, columns, after, rowsAtOnce);
    for (const row of rows) {
      const own = createHash("sha256")
        .update(JSON.stringify(columns.map((column) => row[column])))
        .digest();
      for (const [index, byte] of own.entries()) sum[index] = (sum[index] ?? 0) ^ byte;
      count += 1;
    }
    after = rows.at(-1) ?? null;
    if (rows.length < rowsAtOnce) return { count, sha256: sum.toString("hex") };
  }
}
