import { hashedId } from "../../core/hashed-id.ts";
import type { SessionRef } from "../../core/session-ref.ts";
import type {
  DeliveryTarget,
  OutboxRequest,
  OutboxRow,
  OutboxState,
  LedgerValue as Value,
} from "../contract.ts";
import type { Books } from "./books.ts";
import { jsonOrNull, numberOrNull, textOrNull } from "./rows.ts";

/** Rows of the outbox, in the transaction that they are called in. */

/** The same idempotency key of the same user again changes nothing. */
export function putOutbox(books: Books, request: OutboxRequest, dead?: string): OutboxRow | null {
  const { session, runId, target, text, idempotencyKey } = request;
  const user = session.userId ?? "";
  const outboxId = hashedId("outbox", user, idempotencyKey);
  const now = books.now();
  const { channel } = target;
  const isNew = books.run(
    `INSERT OR IGNORE INTO outbox (outbox_id, user, idem, uid, session, run_id, target, text, state, created_at, next_at,
       ended_at, last_error, channel, app) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    outboxId,
    user,
    idempotencyKey,
    session.uid,
    JSON.stringify(session),
    runId,
    JSON.stringify(target),
    text,
    dead === undefined ? "queued" : "dead",
    now,
    now,
    dead === undefined ? null : now,
    dead ?? null,
    channel,
    books.options.channelsHere()?.find(({ id }) => id === channel)?.app ?? "",
  );
  if (isNew === 1 && dead === undefined) books.note("outbox.queued", session, runId, { outboxId, channel });
  if (isNew === 1 && dead !== undefined)
    books.note("outbox.dead", session, runId, { outboxId, channel, error: dead });
  return outboxRow(books, outboxId);
}

export function outboxRow(books: Books, outboxId: string): OutboxRow | null {
  return outboxRows(books, "outbox_id = ?", outboxId)[0] ?? null;
}

export function outboxRows(books: Books, where: string, ...values: Value[]): OutboxRow[] {
  return books.all(`SELECT * FROM outbox WHERE ${where}`, ...values).map((row) => ({
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
    waitsForChannel: row.state === "queued" && !hasChannel(books, row),
  }));
}

/** Whether this process delivers rows of this channel and app. */
function hasChannel(books: Books, { channel, app }: Record<string, unknown>): boolean {
  const here = books.options.channelsHere();
  if (here === null || channel === letterChannel) return true;
  return here.some((each) => each.id === channel && (app === "" || app === each.app));
}

/** The channel of letters to sessions, which every process delivers. */
const letterChannel = "session";

/** Selects the rows that this process delivers, with the values of the condition. */
export function deliverableHere(books: Books): { readonly where: string; readonly values: Value[] } {
  const here = books.options.channelsHere();
  if (here === null) return { where: "true", values: [] };
  const ids = JSON.stringify([letterChannel, ...here.map(({ id }) => id)]);
  const own = JSON.stringify(here.filter(({ app }) => app === books.options.app).map(({ id }) => id));
  const where = `channel IN (SELECT value FROM json_each(?))
    AND (app = '' OR (app = ? AND channel IN (SELECT value FROM json_each(?))))`;
  return { where, values: [ids, books.options.app, own] };
}
