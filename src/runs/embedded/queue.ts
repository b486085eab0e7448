import type { Lane } from "../contract.ts";
import type { Ready, Slot } from "../lanes.ts";
import { lanes, slots } from "../lanes.ts";
import type { Books } from "./books.ts";

/** Which run of which session could be claimed, kept with every change so that finding the next one costs two looks. */

/** What it takes to work out which run of a session goes next. */
export type QueueTables = Pick<Books, "get" | "run">;

/** Brings a session's line in `ready` in accord with its runs. After every change of a run of it. */
export function refreshQueue(books: QueueTables, uid: string): void {
  const before = books.get("SELECT slot, user, seq FROM ready WHERE uid = ?", uid);
  const after = headOf(books, uid);
  const isSame =
    after !== null && before !== undefined && before.slot === after.slot && Number(before.seq) === after.seq;
  if (isSame || (after === null && before === undefined)) return;
  if (before !== undefined) {
    books.run("DELETE FROM ready WHERE uid = ?", uid);
    const counted = "UPDATE ready_users SET count = count - 1 WHERE slot = ? AND user = ?";
    books.run(counted, String(before.slot), String(before.user));
  }
  if (after === null) return;
  const { slot, user, seq } = after;
  const turn = books.get("SELECT turn FROM turns WHERE uid = ? AND slot = ?", uid, slot)?.turn ?? 0;
  books.run(
    "INSERT INTO ready (uid, slot, user, turn, seq) VALUES (?, ?, ?, ?, ?)",
    uid,
    slot,
    user,
    Number(turn),
    seq,
  );
  books.run(
    `INSERT INTO ready_users (slot, user, turn, count) VALUES (?, ?, 0, 1)
     ON CONFLICT (slot, user) DO UPDATE SET count = count + 1`,
    slot,
    user,
  );
}

function headOf(books: QueueTables, uid: string): { slot: Slot; user: string; seq: number } | null {
  const busy = "SELECT 1 FROM runs WHERE uid = ? AND state IN ('running', 'waiting') LIMIT 1";
  if (books.get(busy, uid) !== undefined) return null;
  const head = books.get(
    `SELECT seq, user, lane, silent FROM runs WHERE uid = ? AND state = 'queued' AND kept_for IS NULL
     AND not_before IS NULL ORDER BY rank, seq LIMIT 1`,
    uid,
  );
  if (head === undefined) return null;
  const slot = Number(head.silent) === 1 ? "none" : (head.lane as Lane);
  return { slot, user: String(head.user), seq: Number(head.seq) };
}

/** For each slot the run that goes next, sessions left out that could not be had just now. */
export function readyHeads(books: Books, leftOut: ReadonlySet<string>): Ready[] {
  const isAny = books.get(anyReady) ?? {};
  return slots
    .filter((slot) => Number(isAny[slot]) === 1)
    .flatMap((slot) => firstReady(books, slot, leftOut) ?? []);
}

/** In which slots there is anything at all: asked again and again while there is nothing, so it is one look. */
const anyReady = `SELECT ${slots
  .map((slot) => `EXISTS (SELECT 1 FROM ready_users WHERE slot = '${slot}' AND count > 0) AS "${slot}"`)
  .join(", ")}`;

function firstReady(books: Books, slot: Slot, leftOut: ReadonlySet<string>): Ready | null {
  const most = leftOut.size + 1;
  const users = books.all(
    "SELECT user, turn FROM ready_users WHERE slot = ? AND count > 0 ORDER BY turn, user LIMIT ?",
    slot,
    most,
  );
  for (const { user, turn } of users) {
    const sql = "SELECT uid, turn, seq FROM ready WHERE slot = ? AND user = ? ORDER BY turn, seq LIMIT ?";
    const found = books.all(sql, slot, String(user), most).find((each) => !leftOut.has(String(each.uid)));
    if (found === undefined) continue;
    const { uid, turn: sessionTurn, seq } = found;
    return {
      uid: String(uid),
      user: String(user),
      slot,
      seq: Number(seq),
      userTurn: Number(turn),
      sessionTurn: Number(sessionTurn),
    };
  }
  return null;
}

/** This user and this session had their turn; the others come first now. */
export function tookTurn(books: Books, { slot, user, uid }: Pick<Ready, "slot" | "user" | "uid">): void {
  const last = Number(books.get("SELECT max(turn) AS turn FROM ready_users WHERE slot = ?", slot)?.turn ?? 0);
  books.run("UPDATE ready_users SET turn = ? WHERE slot = ? AND user = ?", last + 1, slot, user);
  books.run("INSERT OR REPLACE INTO turns (uid, slot, turn) VALUES (?, ?, ?)", uid, slot, last + 1);
}

/** Slots in use, and those that a run whose wait is over is to have before any new claim. */
export function takenSlots(books: Books, resuming: "and resuming" | "only running"): Record<Lane, number> {
  const also = resuming === "and resuming" ? "OR resuming = 1" : "";
  const counts = books.all(
    `SELECT lane, count(*) AS count FROM runs INDEXED BY runs_active
     WHERE state IN ('running', 'waiting') AND silent = 0 AND (state = 'running' ${also}) GROUP BY lane`,
  );
  const taken = Object.fromEntries(lanes.map((lane) => [lane, 0])) as Record<Lane, number>;
  for (const { lane, count } of counts) taken[lane as Lane] = Number(count);
  return taken;
}
