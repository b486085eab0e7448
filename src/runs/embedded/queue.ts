import type { Lane } from "../contract.ts";
import type { Ready, Slot } from "../lanes.ts";
import { lanes, ranks, slots } from "../lanes.ts";
import type { Books } from "./books.ts";

/** Which run of which session could be claimed, kept with every change so that finding the next one costs two looks. */

/** What it takes to work out which run of a session goes next. */
export type QueueTables = Pick<Books, "get" | "run" | "all">;

/** Updates the session's rows in `ready`. Call it after every change of one of its runs. */
export function refreshQueue(books: QueueTables, uid: string): void {
  const heads = headsOf(books, uid);
  const known = books.all("SELECT app, slot, user, seq FROM ready WHERE uid = ?", uid);
  const isSame = (a: Record<string, unknown>, b: Head) =>
    a.app === b.app && a.slot === b.slot && Number(a.seq) === b.seq;
  for (const before of known) {
    if (heads.some((head) => isSame(before, head))) continue;
    books.run("DELETE FROM ready WHERE uid = ? AND app = ?", uid, String(before.app));
    const counted = "UPDATE ready_users SET count = count - 1 WHERE app = ? AND slot = ? AND user = ?";
    books.run(counted, String(before.app), String(before.slot), String(before.user));
  }
  for (const head of heads) if (!known.some((before) => isSame(before, head))) insertHead(books, uid, head);
}

function insertHead(books: QueueTables, uid: string, { app, slot, user, seq }: Head): void {
  const turn = books.get("SELECT turn FROM turns WHERE uid = ? AND slot = ?", uid, slot)?.turn ?? 0;
  books.run(
    "INSERT INTO ready (uid, app, slot, user, turn, seq) VALUES (?, ?, ?, ?, ?, ?)",
    uid,
    app,
    slot,
    user,
    Number(turn),
    seq,
  );
  // A user who had a turn with one app has had it for all of them.
  books.run(
    `INSERT INTO ready_users (app, slot, user, turn, count)
     VALUES (?, ?, ?, coalesce((SELECT max(turn) FROM ready_users WHERE slot = ? AND user = ?), 0), 1)
     ON CONFLICT (app, slot, user) DO UPDATE SET count = count + 1`,
    app,
    slot,
    user,
    slot,
    user,
  );
}

interface Head {
  readonly app: string;
  readonly slot: Slot;
  readonly user: string;
  readonly seq: number;
}

/**
 * The next run of the session for each app: one that waits for its app does not block the others. A turn that lost its owner
 * midway goes before all of them.
 */
function headsOf(books: QueueTables, uid: string): Head[] {
  const busy = "SELECT 1 FROM runs WHERE uid = ? AND state IN ('running', 'waiting') LIMIT 1";
  if (books.get(busy, uid) !== undefined) return [];
  const heads: (Head & { readonly rank: number })[] = [];
  const nextApp = "SELECT min(app) AS app FROM runs WHERE uid = ? AND state = 'queued' AND app > ?";
  const first = books.get("SELECT min(app) AS app FROM runs WHERE uid = ? AND state = 'queued'", uid)?.app;
  for (let app = first; typeof app === "string"; app = books.get(nextApp, uid, app)?.app) {
    const head = books.get(
      `SELECT seq, user, lane, silent, rank FROM runs WHERE uid = ? AND app = ? AND state = 'queued'
       AND kept_for IS NULL AND not_before IS NULL ORDER BY rank, seq LIMIT 1`,
      uid,
      app,
    );
    if (head === undefined) continue;
    const slot = Number(head.silent) === 1 ? "none" : (head.lane as Lane);
    heads.push({ app, slot, user: String(head.user), seq: Number(head.seq), rank: Number(head.rank) });
  }
  const recovered = heads.find(({ rank }) => rank === ranks.recovered);
  return recovered === undefined ? heads : [recovered];
}

/** For each slot the next run of this app, and of none in particular; without sessions that could not be locked just now. */
export function readyHeads(books: Books, leftOut: ReadonlySet<string>): Ready[] {
  const isAny = books.get(anyReady) ?? {};
  const apps = new Set(["", books.options.app]);
  return slots
    .filter((slot) => Number(isAny[slot]) === 1)
    .flatMap((slot) => [...apps].flatMap((app) => firstReady(books, app, slot, leftOut) ?? []));
}

/** In which slots there is anything at all: asked again and again while there is nothing, so it is one look. */
const anyReady = `SELECT ${slots
  .map((slot) => `EXISTS (SELECT 1 FROM ready_users WHERE slot = '${slot}' AND count > 0) AS "${slot}"`)
  .join(", ")}`;

function firstReady(books: Books, app: string, slot: Slot, leftOut: ReadonlySet<string>): Ready | null {
  const most = leftOut.size + 1;
  const users = books.all(
    "SELECT user, turn FROM ready_users WHERE app = ? AND slot = ? AND count > 0 ORDER BY turn, user LIMIT ?",
    app,
    slot,
    most,
  );
  for (const { user, turn } of users) {
    const sql =
      "SELECT uid, turn, seq FROM ready WHERE app = ? AND slot = ? AND user = ? ORDER BY turn, seq LIMIT ?";
    const found = books
      .all(sql, app, slot, String(user), most)
      .find((each) => !leftOut.has(String(each.uid)));
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
