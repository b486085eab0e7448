import type { Script } from "../../core/script.ts";
import { changeRows, queryEveryUser, queryRow, queryRows } from "../../core/script.ts";
import type { Lane } from "../contract.ts";
import type { Ready, Slot } from "../lanes.ts";
import { lanes, ranks, slots } from "../lanes.ts";
import type { RunTransaction } from "./run-ledger.ts";

/** Updates the session's rows in `ready`. Must be called after every change to one of its runs. */
export function* refreshQueue(uid: string): Script<void> {
  const heads = yield* headsOf(uid);
  const known = yield* queryRows("SELECT app, slot, user, seq FROM ready WHERE uid = ?", uid);
  const isSame = (a: Record<string, unknown>, b: Head) =>
    a.app === b.app && a.slot === b.slot && Number(a.seq) === b.seq;
  for (const before of known) {
    if (heads.some((head) => isSame(before, head))) continue;
    yield* changeRows("DELETE FROM ready WHERE uid = ? AND seq = ?", uid, Number(before.seq));
    const counted = "UPDATE ready_users SET count = count - 1 WHERE app = ? AND slot = ? AND user = ?";
    yield* changeRows(counted, String(before.app), String(before.slot), String(before.user));
  }
  for (const head of heads) if (!known.some((before) => isSame(before, head))) yield* insertHead(uid, head);
}

function* insertHead(uid: string, { app, tools, slot, user, seq }: Head): Script<void> {
  const turn = (yield* queryRow("SELECT turn FROM turns WHERE uid = ? AND slot = ?", uid, slot))?.turn ?? 0;
  yield* changeRows(
    "INSERT INTO ready (uid, app, tools, slot, user, turn, seq) VALUES (?, ?, ?, ?, ?, ?, ?)",
    uid,
    app,
    tools,
    slot,
    user,
    Number(turn),
    seq,
  );
  // A turn in one app counts as the user's turn in all apps.
  yield* changeRows(
    `INSERT INTO ready_users (app, slot, user, turn, count)
     VALUES (?, ?, ?, coalesce((SELECT max(turn) FROM ready_users WHERE slot = ? AND user = ?), 0), 1)
     ON CONFLICT (app, slot, user) DO UPDATE SET count = ready_users.count + 1`,
    app,
    slot,
    user,
    slot,
    user,
  );
}

interface Head {
  readonly app: string;
  readonly tools: string;
  readonly slot: Slot;
  readonly user: string;
  readonly seq: number;
}

/**
 * Returns the session's next run for each app and set of required tools, so that a run waiting for a process does not
 * block the others. An interrupted turn that lost its owner comes before all others.
 */
function* headsOf(uid: string): Script<Head[]> {
  const busy = "SELECT 1 FROM runs WHERE uid = ? AND state IN ('running', 'waiting') LIMIT 1";
  if ((yield* queryRow(busy, uid)) !== undefined) return [];
  const heads: (Head & { readonly rank: number })[] = [];
  const nextGroup = `SELECT app, tools FROM runs WHERE uid = ? AND state = 'queued' AND (app, tools) > (?, ?)
    ORDER BY app, tools LIMIT 1`;
  for (
    let group = yield* queryRow(nextGroup, uid, "", "");
    group !== undefined;
    group = yield* queryRow(nextGroup, uid, String(group.app), String(group.tools))
  ) {
    const [app, tools] = [String(group.app), String(group.tools)];
    const head = yield* queryRow(
      `SELECT seq, user, lane, silent, rank FROM runs WHERE uid = ? AND app = ? AND tools = ? AND state = 'queued'
       AND kept_for IS NULL AND not_before IS NULL ORDER BY rank, seq LIMIT 1`,
      uid,
      app,
      tools,
    );
    if (head === undefined) continue;
    const slot = slotOf(Number(head.silent) === 1, head.lane as Lane);
    heads.push({ app, tools, slot, user: String(head.user), seq: Number(head.seq), rank: Number(head.rank) });
  }
  const recovered = heads.find(({ rank }) => rank === ranks.recovered);
  return recovered === undefined ? heads : [recovered];
}

export function slotOf(isSilent: boolean, lane: Lane): Slot {
  return isSilent ? "none" : lane;
}

/** For each slot, returns this app's next run and the next run without an app, skipping the sessions in `leftOut`. */
export function* readyHeads(tx: RunTransaction, leftOut: ReadonlySet<string>): Script<Ready[]> {
  const isAny = (yield* tx.get(anyReady)) ?? {};
  const heads: Ready[] = [];
  for (const slot of slots) {
    if (Number(isAny[slot]) !== 1) continue;
    for (const app of new Set(["", tx.options.app])) {
      const first = yield* firstReady(tx, app, slot, leftOut);
      if (first !== null) heads.push(first);
    }
  }
  return heads;
}

/** Selects the slots that have ready runs. It is a single query because idle processes run it often. */
const anyReady = `SELECT ${slots
  .map(
    (slot) =>
      `CASE WHEN EXISTS (SELECT 1 FROM ready_users WHERE slot = '${slot}' AND count > 0) THEN 1 ELSE 0 END AS "${slot}"`,
  )
  .join(", ")}`;

function* firstReady(
  tx: RunTransaction,
  app: string,
  slot: Slot,
  leftOut: ReadonlySet<string>,
): Script<Ready | null> {
  const users = yield* tx.all(
    "SELECT user, turn FROM ready_users WHERE app = ? AND slot = ? AND count > 0 ORDER BY turn, user LIMIT ?",
    app,
    slot,
    leftOut.size + 1,
  );
  const without = JSON.stringify([...leftOut]);
  for (const { user, turn } of users) {
    const found = yield* tx.get(
      `SELECT uid, turn, seq FROM ready WHERE app = ? AND slot = ? AND user = ?
       AND uid NOT IN (SELECT value FROM json_each(?)) ORDER BY turn, seq LIMIT 1`,
      app,
      slot,
      String(user),
      without,
    );
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

/** Records that this user and session have had a turn, so that others go first. */
export function* recordTurn(
  tx: RunTransaction,
  { slot, user, uid }: Pick<Ready, "slot" | "user" | "uid">,
): Script<void> {
  const last = "SELECT coalesce(max(turn), 0) AS turn FROM ready_users WHERE slot = ?";
  const turn = Number((yield* queryEveryUser("last_turn", last, slot))[0]?.turn) + 1;
  yield* tx.run(
    `INSERT INTO turns (uid, slot, turn) VALUES (?, ?, ?)
     ON CONFLICT (uid, slot) DO UPDATE SET turn = excluded.turn`,
    uid,
    slot,
    turn,
  );
  yield* tx.run("UPDATE ready_users SET turn = ? WHERE slot = ? AND user = ?", turn, slot, user);
}

/** Counts the slots in use by all users, optionally including those reserved for resuming runs. */
export function* takenSlots(resuming: "and resuming" | "only running"): Script<Record<Lane, number>> {
  const counts = yield* queryEveryUser(
    "taken_slots",
    `SELECT lane, count(*) AS count FROM runs INDEXED BY runs_active
     WHERE state IN ('running', 'waiting') AND silent = 0 AND (state = 'running' OR (resuming = 1 AND ? = 1))
     GROUP BY lane`,
    resuming === "and resuming" ? 1 : 0,
  );
  const taken = Object.fromEntries(lanes.map((lane) => [lane, 0])) as Record<Lane, number>;
  for (const { lane, count } of counts) taken[lane as Lane] = Number(count);
  return taken;
}
