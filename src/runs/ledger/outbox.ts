import { SkeinError } from "../../core/errors.ts";
import { hashedId } from "../../core/hashed-id.ts";
import type { Content } from "../../core/messages.ts";
import { textOf } from "../../core/messages.ts";
import type { Script, SqlValue } from "../../core/script.ts";
import { lockFor } from "../../core/script.ts";
import type { SessionRef } from "../../core/session-ref.ts";
import type { DeliveryTarget, OutboxRequest, OutboxRow, OutboxState, OutboxStore } from "../contract.ts";
import { noticeOf } from "./dead-letter.ts";
import type { RunLedger, RunRow, RunTransaction } from "./run-ledger.ts";
import { jsonOrNull, limitList, numberOrNull, textOrNull } from "./run-ledger.ts";

/** Messages to channels. A queued row is durable. After a crash, a message might be delivered twice. */
export class RunOutbox implements OutboxStore {
  readonly #ledger: RunLedger;

  constructor(ledger: RunLedger) {
    this.#ledger = ledger;
  }

  async put(request: OutboxRequest): Promise<OutboxRow> {
    const row = await this.#ledger.change("synced", request.session, (tx) => putOutbox(tx, request));
    if (row === null)
      throw new SkeinError("internal", { problem: "an outbox row is missing after being inserted" });
    return row;
  }

  async get(outboxId: string, userId?: string | null): Promise<OutboxRow | null> {
    const row = await this.#ledger.read((tx) => findOutboxRow(tx, outboxId));
    return row !== null && (userId === undefined || row.session.userId === userId) ? row : null;
  }

  async list(
    query: { readonly states?: readonly OutboxState[]; readonly limit?: number },
    userId?: string | null,
  ): Promise<readonly OutboxRow[]> {
    const values: SqlValue[] = [...(query.states ?? [])];
    const where = query.states === undefined ? [] : [`state IN (${query.states.map(() => "?").join(", ")})`];
    if (userId !== undefined) {
      where.push("user = ?");
      values.push(userId ?? "");
    }
    const text = `${[...where, "true"].join(" AND ")} ORDER BY seq DESC LIMIT ?`;
    return this.#ledger.read((tx) => queryOutbox(tx, text, ...values, limitList(query.limit)));
  }

  async due(owner: string, most: number, leaseMs: number): Promise<readonly OutboxRow[]> {
    const ledger = this.#ledger;
    await this.#takeBackLost();
    const here = deliverableHere(ledger);
    // While another process is delivering to a target, later rows wait so that they do not overtake earlier ones.
    const where = `state = 'queued' AND next_at <= ? AND (lease_until IS NULL OR lease_until <= ?) AND ${here.where}
      AND target NOT IN (SELECT other.target FROM outbox AS other
        WHERE other.state = 'queued' AND other.owner <> ? AND other.lease_until > ?)`;
    const now = ledger.now();
    const values = [now, now, ...here.values, owner, now];
    const isAny = await ledger.read((tx) => tx.get(`SELECT 1 FROM outbox WHERE ${where} LIMIT 1`, ...values));
    if (isAny === undefined) return [];
    return ledger.change("unsynced", null, function* (tx) {
      yield* lockFor("outbox");
      const rows = yield* queryOutbox(tx, `${where} ORDER BY next_at, seq LIMIT ?`, ...values, most);
      const leased: OutboxRow[] = [];
      // The row might have been dropped since it was read.
      const sql = "UPDATE outbox SET owner = ?, lease_until = ? WHERE outbox_id = ? AND state = 'queued'";
      for (const row of rows)
        if ((yield* tx.run(sql, owner, now + leaseMs, row.outboxId)) === 1) leased.push(row);
      return leased;
    });
  }

  /**
   * Rows leased by a dead process are due immediately. If that process has already delivered a row, the channel
   * recognizes the duplicate by its key.
   */
  async #takeBackLost(): Promise<void> {
    const ledger = this.#ledger;
    const held = "SELECT DISTINCT owner FROM outbox WHERE state = 'queued' AND owner IS NOT NULL";
    const owners = await ledger.read((tx) => tx.all(held));
    const gone = owners.filter(({ owner }) => ledger.options.isGone(String(owner)));
    if (gone.length === 0) return;
    await ledger.change("unsynced", null, function* (tx) {
      const sql = "UPDATE outbox SET owner = NULL, lease_until = NULL WHERE state = 'queued' AND owner = ?";
      for (const { owner } of gone) yield* tx.run(sql, String(owner));
    });
  }

  release(outboxIds: readonly string[], owner: string): Promise<void> {
    return this.#ledger.change("unsynced", null, function* (tx) {
      const sql =
        "UPDATE outbox SET owner = NULL, lease_until = NULL WHERE outbox_id = ? AND state = 'queued' AND owner = ?";
      for (const outboxId of outboxIds) yield* tx.run(sql, outboxId, owner);
    });
  }

  delivered(outboxId: string, owner: string, receipt: unknown): Promise<void> {
    return this.#ledger.change("unsynced", null, function* (tx) {
      const sql = `UPDATE outbox SET state = 'delivered', ended_at = ?, receipt = ?, attempts = attempts + 1, owner = NULL,
        lease_until = NULL WHERE outbox_id = ? AND state = 'queued' AND owner = ?`;
      if ((yield* tx.run(sql, tx.now(), JSON.stringify(receipt ?? null), outboxId, owner)) === 0) return;
      const row = yield* findOutboxRow(tx, outboxId);
      if (row === null) return;
      tx.addEvent("outbox.delivered", row.session, row.runId, { outboxId, channel: row.target.channel });
    });
  }

  async failed(
    outboxId: string,
    owner: string,
    error: string,
    next: { readonly at: number } | "dead",
  ): Promise<OutboxRow | null> {
    const ledger = this.#ledger;
    const sender = next === "dead" ? ((await this.get(outboxId))?.session ?? null) : null;
    const durability = next === "dead" ? "synced" : "unsynced";
    const failed = await ledger.change(durability, sender, function* (tx) {
      const sql = `UPDATE outbox SET state = ?, ended_at = ?, next_at = coalesce(?, next_at), last_error = ?,
        attempts = attempts + 1, owner = NULL, lease_until = NULL
        WHERE outbox_id = ? AND state = 'queued' AND owner = ?`;
      const change = next === "dead" ? ["dead", tx.now(), null] : ["queued", null, next.at];
      if ((yield* tx.run(sql, ...change, error, outboxId, owner)) === 0) return null;
      const row = yield* findOutboxRow(tx, outboxId);
      if (row === null) return null;
      const about = { outboxId, channel: row.target.channel, error };
      if (next === "dead") tx.addEvent("outbox.dead", row.session, row.runId, about);
      else tx.addEvent("outbox.retry", row.session, row.runId, { ...about, nextAt: next.at });
      return { row, notice: next === "dead" ? yield* tx.accept(noticeOf(row)) : null };
    });
    if (failed !== null && failed.notice !== null) ledger.adopt(failed.notice.run);
    return failed?.row ?? null;
  }

  retry(outboxId: string): Promise<OutboxRow | null> {
    return this.#ledger.change("synced", null, function* (tx) {
      const sql = `UPDATE outbox SET state = 'queued', attempts = 0, created_at = ?, next_at = ?, ended_at = NULL
        WHERE outbox_id = ? AND state IN ('dead', 'dropped')`;
      const changed = yield* tx.run(sql, tx.now(), tx.now(), outboxId);
      const row = yield* findOutboxRow(tx, outboxId);
      if (row !== null && changed === 1)
        tx.addEvent("outbox.queued", row.session, row.runId, { outboxId, channel: row.target.channel });
      return row;
    });
  }

  drop(outboxId: string): Promise<OutboxRow | null> {
    return this.#ledger.change("synced", null, (tx) => dropOutbox(tx, outboxId, ["queued", "dead"]));
  }

  async nextAt(): Promise<number | null> {
    const { where, values } = deliverableHere(this.#ledger);
    const sql = `SELECT min(CASE WHEN lease_until > next_at THEN lease_until ELSE next_at END) AS at FROM outbox
      WHERE state = 'queued'`;
    const next = await this.#ledger.read((tx) => tx.get(`${sql} AND ${where}`, ...values));
    return numberOrNull(next?.at);
  }
}

/**
 * Adds a row within the current transaction unless the user's outbox already has a row with the same key. `dead` is the
 * error of a dead row.
 */
export function* putOutbox(
  tx: RunTransaction,
  request: OutboxRequest,
  dead?: string,
): Script<OutboxRow | null> {
  const { session, runId, target, text, idempotencyKey } = request;
  const user = session.userId ?? "";
  const outboxId = hashedId("outbox", user, idempotencyKey);
  const now = tx.now();
  const { channel, to, accountId, threadId } = target;
  const ordered = { channel, to, accountId, threadId };
  const isNew = yield* tx.run(
    `INSERT INTO outbox (outbox_id, user, idem, uid, session, run_id, target, text, state, created_at, next_at,
       ended_at, last_error, channel, app) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT DO NOTHING`,
    outboxId,
    user,
    idempotencyKey,
    session.uid,
    JSON.stringify(session),
    runId,
    // Targets are compared as text, so their fields are always in the same order.
    JSON.stringify({ ...ordered, ...target }),
    text,
    dead === undefined ? "queued" : "dead",
    now,
    now,
    dead === undefined ? null : now,
    dead ?? null,
    channel,
    tx.options.channelsHere()?.find(({ id }) => id === channel)?.app ?? "",
  );
  if (isNew === 1 && dead === undefined) tx.addEvent("outbox.queued", session, runId, { outboxId, channel });
  if (isNew === 1 && dead !== undefined)
    tx.addEvent("outbox.dead", session, runId, { outboxId, channel, error: dead });
  return yield* findOutboxRow(tx, outboxId);
}

/** Drops a row within the current transaction if it is in one of these states. */
export function* dropOutbox(
  tx: RunTransaction,
  outboxId: string,
  states: readonly OutboxState[],
): Script<OutboxRow | null> {
  const sql = `UPDATE outbox SET state = 'dropped', ended_at = ?, owner = NULL, lease_until = NULL
    WHERE outbox_id = ? AND state IN (${states.map(() => "?").join(", ")})`;
  const changed = yield* tx.run(sql, tx.now(), outboxId, ...states);
  const row = yield* findOutboxRow(tx, outboxId);
  if (row !== null && changed === 1)
    tx.addEvent("outbox.dropped", row.session, row.runId, { outboxId, channel: row.target.channel });
  return row;
}

function* findOutboxRow(tx: RunTransaction, outboxId: string): Script<OutboxRow | null> {
  return (yield* queryOutbox(tx, "outbox_id = ?", outboxId))[0] ?? null;
}

function* queryOutbox(tx: RunTransaction, where: string, ...values: SqlValue[]): Script<OutboxRow[]> {
  return (yield* tx.all(`SELECT * FROM outbox WHERE ${where}`, ...values)).map((row) => ({
    outboxId: String(row.outbox_id),
    session: JSON.parse(String(row.session)) as SessionRef,
    runId: textOrNull(row.run_id),
    target: JSON.parse(String(row.target)) as DeliveryTarget,
    text: String(row.text),
    idempotencyKey: String(row.idem),
    state: row.state as OutboxState,
    attempts: Number(row.attempts),
    createdAt: Number(row.created_at),
    nextAt: Number(row.next_at),
    endedAt: numberOrNull(row.ended_at),
    lastError: textOrNull(row.last_error),
    receipt: jsonOrNull<unknown>(row.receipt),
    app: row.app === "" ? null : String(row.app),
    waitsForChannel: row.state === "queued" && !hasChannel(tx, row),
  }));
}

/** Whether this process delivers rows for this channel and app. */
function hasChannel(tx: RunTransaction, { channel, app }: Record<string, unknown>): boolean {
  const here = tx.options.channelsHere();
  if (here === null || channel === letterChannel) return true;
  return here.some((each) => each.id === channel && (app === "" || app === each.app));
}

/** The channel for messages to sessions. Every process delivers them. */
const letterChannel = "session";

/** Returns the SQL condition for the rows that this process delivers, with its parameters. */
function deliverableHere({ options }: Pick<RunLedger, "options">): {
  readonly where: string;
  readonly values: SqlValue[];
} {
  const here = options.channelsHere();
  if (here === null) return { where: "true", values: [] };
  const ids = JSON.stringify([letterChannel, ...here.map(({ id }) => id)]);
  const own = JSON.stringify(here.filter(({ app }) => app === options.app).map(({ id }) => id));
  const where = `channel IN (SELECT value FROM json_each(?))
    AND (app = '' OR (app = ? AND channel IN (SELECT value FROM json_each(?))))`;
  return { where, values: [ids, options.app, own] };
}

/**
 * Moves a removed session's unread input to the outbox. The row belongs to the sender, who is notified if the delivery
 * fails. If the sender is unknown, the row is marked as dead immediately.
 */
export function* putDeadLetter(tx: RunTransaction, row: RunRow): Script<void> {
  const { session, runId } = row;
  const content = "content" in row.message ? (row.message.content as Content) : "";
  const target = { channel: "session", to: session.key };
  const letter = { target, text: textOf(content), idempotencyKey: `unread:${runId}` };
  const sender = yield* senderOf(tx, row);
  if (sender !== null) yield* putOutbox(tx, { ...letter, session: sender, runId: row.startedBy });
  else {
    const error = `Session ${session.sessionId} was removed before it read this message.`;
    yield* putOutbox(tx, { ...letter, session, runId }, error);
  }
}

/** Returns the last session that ran under the sender's key. */
function* senderOf(tx: RunTransaction, { provenance, user, session }: RunRow): Script<SessionRef | null> {
  const key = provenance?.sourceSessionKey;
  if (key === undefined) return null;
  const where = "user = ? AND key = ? AND uid <> ? ORDER BY seq DESC LIMIT 1";
  return (yield* tx.rows(where, user, key, session.uid))[0]?.session ?? null;
}
