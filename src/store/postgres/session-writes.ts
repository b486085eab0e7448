import type { Entry } from "../../core/entries.ts";
import { currentVersion } from "../../core/entries.ts";
import type { IdSource } from "../../core/ids.ts";
import type { Plan, PlannedItem } from "../../core/plan.ts";
import { planEntries, refuseNewer } from "../../core/plan.ts";
import type { ListedSession, SessionRecord } from "../contract.ts";
import { addLineToDigest } from "../digest.ts";
import { lastSaid } from "../new-session.ts";
import { throwTaken } from "../rules.ts";
import type { Sql } from "./database.ts";
import { violatedIndex } from "./database-errors.ts";
import type { EntryPlace } from "./entry-places.ts";
import { placeAfter } from "./entry-places.ts";
import type { PlacedEntry } from "./entry-rows.ts";
import { entryRows } from "./entry-rows.ts";
import type { EntrySite } from "./entry-site.ts";
import { userKey } from "./lookup-text.ts";
import type { SessionRow } from "./session-row.ts";
import { columnsOf } from "./session-row.ts";

/** Plans new entries without the rest of the session. */
export function planAt(
  row: SessionRow,
  items: readonly PlannedItem[],
  { parent, find }: EntrySite,
  time: number,
  newId: IdSource,
): Plan {
  const { version, id } = row.header;
  if (items.length > 0 && (version ?? 1) > currentVersion) refuseNewer(id, version);
  return planEntries(items, {
    ...{ tip: parent?.node ?? null, size: row.session.digest.entries, time, newId },
    find: (wanted) => find(wanted)?.node,
  });
}

/** A session with its new entries. */
export interface Written {
  readonly row: SessionRow;
  readonly placed: readonly PlacedEntry[];
}

/** Returns the row after planned entries are added. `values` are other fields that change with them. */
export function withPlan(
  row: SessionRow,
  plan: Plan,
  { parent, find }: EntrySite,
  values: Partial<SessionRecord> = {},
): Written {
  const places = new Map<string, EntryPlace>();
  const placeById = (id: string) => places.get(id) ?? find(id)?.place;
  let { leafId = null, place = null }: { leafId?: string | null; place?: EntryPlace | null } = parent ?? {};
  let session: ListedSession = row.session;
  const placed: PlacedEntry[] = [];
  for (const [index, { entry, position }] of plan.nodes.entries()) {
    const keptId = entry.type === "compaction" ? entry.firstKeptEntryId : undefined;
    const keptSeq = keptId === undefined ? null : (placeById(keptId)?.seq ?? null);
    place = placeAfter(place, entry, position, keptSeq);
    places.set(entry.id, place);
    if (place.leafSeq === position) leafId = entry.id;
    placed.push({ entry, line: plan.lines[index] ?? "", place });
    session = { ...session, digest: addLineToDigest(session.digest, entry, session.createdAt) };
    if (entry.type === "session_info") session = { ...session, name: entry.name?.trim() || null };
  }
  const last = placed.at(-1);
  const moved = last === undefined ? {} : { leafId };
  const updatedAt = lastSaid(placed.map(({ entry }) => entry)) || session.updatedAt;
  return {
    row: {
      ...row,
      session: { ...session, updatedAt, ...values, ...moved },
      revision: row.revision + 1,
      bytes: row.bytes + sizeOf(placed),
      ...(last === undefined ? {} : { tip: last.place, tipId: last.entry.id }),
    },
    placed,
  };
}

/** Returns the size of entries in the log, each with its line break. */
export function sizeOf(placed: readonly PlacedEntry[]): number {
  return placed.reduce((size, { line }) => size + Buffer.byteLength(line) + 1, 0);
}

/** A run's right to write. It is checked with the session's row locked. */
export interface HeldFence {
  readonly runId: string;
  readonly fence: number;
}

export type WriteOutcome = "written" | "stale" | "fenced" | "gone";

/** The call that stores a changed row and its new entries, if the row is still the one that was read. */
export function writeCall(
  before: SessionRow,
  { row, placed }: Written,
  held: HeldFence | null = null,
): { readonly text: string; readonly values: (string | number | null)[] } {
  const { uid, userId } = row.session;
  const { entries, search } = entryRows(row.session, placed);
  const session = JSON.stringify(columnsOf(row, before));
  return {
    text: "SELECT skein.append($1, $2, $3, $4, $5, $6, $7, $8) AS outcome",
    values: [
      ...[userKey(userId), uid, before.revision, held?.runId ?? null, held?.fence ?? null],
      ...[session, entries, search],
    ],
  };
}

/** Stores a changed row whose lock this transaction holds. */
export async function writeLocked(sql: Sql, before: SessionRow, written: Written): Promise<void> {
  const { text, values } = writeCall(before, written);
  await orTaken(written.row, sql(text, values));
}

export async function insertSession(sql: Sql, row: SessionRow): Promise<void> {
  const values = [userKey(row.session.userId), JSON.stringify(columnsOf(row))];
  await orTaken(row, sql("SELECT skein.create_session($1, $2)", values));
}

/** Throws `conflict` if another of the user's sessions has the key, ID or label. */
async function orTaken({ session }: SessionRow, writing: Promise<unknown>): Promise<void> {
  try {
    await writing;
  } catch (error) {
    const index = violatedIndex(error);
    if (index === "sessions_id") throwTaken("session ID", session.sessionId, error);
    if (index === "sessions_key") throwTaken("session key", session.key, error);
    if (index === "sessions_label") throwTaken("label", session.meta.label ?? "", error);
    throw error;
  }
}

export function entriesOf({ placed }: Written): Entry[] {
  return placed.map(({ entry }) => entry);
}
