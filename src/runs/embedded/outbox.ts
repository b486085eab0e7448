import { SkeinError } from "../../core/errors.ts";
import type {
  OutboxRequest,
  OutboxRow,
  OutboxState,
  OutboxStore,
  LedgerValue as Value,
} from "../contract.ts";
import type { Books } from "./books.ts";
import { deliverableHere, outboxRow, outboxRows, putOutbox } from "./outbox-rows.ts";

const defaultListed = 100;
const mostListed = 1000;

/** Messages on their way to channels. What is put in is on the disk; that it went out may be told twice. */
export class EmbeddedOutbox implements OutboxStore {
  readonly #books: Books;

  constructor(books: Books) {
    this.#books = books;
  }

  async put(request: OutboxRequest): Promise<OutboxRow> {
    const row = this.#books.change("synced", () => putOutbox(this.#books, request));
    if (row === null) throw new SkeinError("internal", { problem: "an outbox row is not where it was put" });
    return row;
  }

  async get(outboxId: string, userId?: string | null): Promise<OutboxRow | null> {
    const row = outboxRow(this.#books, outboxId);
    return row !== null && (userId === undefined || row.session.userId === userId) ? row : null;
  }

  async list(
    query: { readonly states?: readonly OutboxState[]; readonly limit?: number },
    userId?: string | null,
  ): Promise<readonly OutboxRow[]> {
    const values: Value[] = [...(query.states ?? [])];
    const where = query.states === undefined ? [] : [`state IN (${query.states.map(() => "?").join(", ")})`];
    if (userId !== undefined) {
      where.push("user = ?");
      values.push(userId ?? "");
    }
    const text = `${[...where, "true"].join(" AND ")} ORDER BY seq DESC LIMIT ?`;
    const limit = Math.min(Math.max(1, query.limit ?? defaultListed), mostListed);
    return outboxRows(this.#books, text, ...values, limit);
  }

  async due(owner: string, most: number, leaseMs: number): Promise<readonly OutboxRow[]> {
    const books = this.#books;
    const now = books.now();
    this.#takeBackLost();
    const here = deliverableHere(books);
    const where = `state = 'queued' AND next_at <= ? AND (lease_until IS NULL OR lease_until <= ?) AND ${here.where}`;
    const values = [now, now, ...here.values];
    if (books.get(`SELECT 1 FROM outbox WHERE ${where} LIMIT 1`, ...values) === undefined) return [];
    return books.change("unsynced", () => {
      const rows = outboxRows(books, `${where} ORDER BY next_at LIMIT ?`, ...values, most);
      for (const { outboxId } of rows) {
        const sql = "UPDATE outbox SET owner = ?, lease_until = ? WHERE outbox_id = ?";
        books.run(sql, owner, now + leaseMs, outboxId);
      }
      return rows;
    });
  }

  /** What a dead process was about to send is due at once: it may have gone out, and goes under the same key. */
  #takeBackLost(): void {
    const books = this.#books;
    const held = "SELECT DISTINCT owner FROM outbox WHERE state = 'queued' AND owner IS NOT NULL";
    const gone = books.all(held).filter(({ owner }) => books.options.isGone(String(owner)));
    if (gone.length === 0) return;
    books.change("unsynced", () => {
      const sql = "UPDATE outbox SET owner = NULL, lease_until = NULL WHERE state = 'queued' AND owner = ?";
      for (const { owner } of gone) books.run(sql, String(owner));
    });
  }

  async delivered(outboxId: string, owner: string, receipt: unknown): Promise<void> {
    const books = this.#books;
    books.change("unsynced", () => {
      const sql = `UPDATE outbox SET state = 'delivered', ended_at = ?, receipt = ?, attempts = attempts + 1, owner = NULL,
        lease_until = NULL WHERE outbox_id = ? AND state = 'queued' AND owner = ?`;
      if (books.run(sql, books.now(), JSON.stringify(receipt ?? null), outboxId, owner) === 0) return;
      const row = outboxRow(books, outboxId);
      if (row === null) return;
      books.note("outbox.delivered", row.session, row.runId, { outboxId, channel: row.target.channel });
    });
  }

  async failed(
    outboxId: string,
    owner: string,
    error: string,
    next: { readonly at: number } | "dead",
  ): Promise<void> {
    const books = this.#books;
    const state = next === "dead" ? "dead" : "queued";
    books.change("unsynced", () => {
      const sql = `UPDATE outbox SET state = ?, ended_at = ?, next_at = coalesce(?, next_at), last_error = ?,
        attempts = attempts + 1, owner = NULL, lease_until = NULL
        WHERE outbox_id = ? AND state = 'queued' AND owner = ?`;
      const endedAt = next === "dead" ? books.now() : null;
      const at = next === "dead" ? null : next.at;
      if (books.run(sql, state, endedAt, at, error, outboxId, owner) === 0) return;
      const row = outboxRow(books, outboxId);
      if (row === null) return;
      const about = { outboxId, channel: row.target.channel, error };
      if (next === "dead") books.note("outbox.dead", row.session, row.runId, about);
      else books.note("outbox.retry", row.session, row.runId, { ...about, nextAt: next.at });
    });
  }

  async retry(outboxId: string): Promise<OutboxRow | null> {
    const books = this.#books;
    return books.change("synced", () => {
      const sql = `UPDATE outbox SET state = 'queued', attempts = 0, created_at = ?, next_at = ?, ended_at = NULL
        WHERE outbox_id = ? AND state IN ('dead', 'dropped')`;
      const changed = books.run(sql, books.now(), books.now(), outboxId);
      const row = outboxRow(books, outboxId);
      if (row !== null && changed === 1)
        books.note("outbox.queued", row.session, row.runId, { outboxId, channel: row.target.channel });
      return row;
    });
  }

  async drop(outboxId: string): Promise<OutboxRow | null> {
    return this.#books.change("synced", () => {
      const sql = `UPDATE outbox SET state = 'dropped', ended_at = ?, owner = NULL, lease_until = NULL
        WHERE outbox_id = ? AND state IN ('queued', 'dead')`;
      this.#books.run(sql, this.#books.now(), outboxId);
      return outboxRow(this.#books, outboxId);
    });
  }

  async nextAt(): Promise<number | null> {
    const { where, values } = deliverableHere(this.#books);
    const sql = "SELECT min(max(next_at, coalesce(lease_until, 0))) AS at FROM outbox WHERE state = 'queued'";
    const next = this.#books.get(`${sql} AND ${where}`, ...values);
    return next?.at === null || next?.at === undefined ? null : Number(next.at);
  }
}
