import type { Plan } from "../../core/plan.ts";
import { checkExpectedLeaf, targetOf } from "../../core/plan.ts";
import { sessionRefOf } from "../../core/session-ref.ts";
import type { Appended, AppendItem, Scope, SessionRecord } from "../contract.ts";
import type { FencedAppend, FenceOption } from "../work.ts";
import type { Sql, TransactOptions } from "./database.ts";
import { violatedIndex } from "./database-errors.ts";
import { driveScript } from "./drive-script.ts";
import { readSite, siteAtTip } from "./entry-site.ts";
import type { SessionAccess } from "./session-access.ts";
import { recordOf } from "./session-access.ts";
import type { SessionRow } from "./session-row.ts";
import type { WriteOutcome, Written } from "./session-writes.ts";
import { entriesOf, planAt, withPlan, writeCall, writeLocked } from "./session-writes.ts";

/** An item with an ID, so that a repeated append finds the entries that an earlier attempt stored. */
type NamedItem = AppendItem & { readonly id: string };

/** The result of an attempt to append. */
interface Attempt {
  readonly row: SessionRow;
  readonly plan: Plan;
  readonly written: Written | null;
}

/**
 * Appends to sessions. Usually, the session's row is remembered, and the append is one round trip: a function locks the
 * row, compares its revision and its fence, and writes. Otherwise, the row is locked and read first.
 */
export class SessionAppender {
  readonly #access: SessionAccess;

  constructor(access: SessionAccess) {
    this.#access = access;
  }

  append(
    scope: Scope,
    sessionId: string,
    items: readonly AppendItem[],
    options: FencedAppend,
  ): Promise<Appended> {
    const named = items.map((item) => ({ ...item, id: item.id ?? this.#access.parts.newId() }));
    return this.#access.inOrder(scope, sessionId, async () => {
      const quick = await this.#appendAtOnce(scope, sessionId, named, options);
      const { plan, row } =
        quick.attempt ?? (await this.#appendLocked(scope, sessionId, named, options, quick));
      return { entries: plan.entries, leafId: row.session.leafId };
    });
  }

  async branch(
    scope: Scope,
    sessionId: string,
    targetId: string | null,
    { fence }: FenceOption,
  ): Promise<SessionRecord> {
    return this.#access.inOrder(scope, sessionId, async () => {
      const { clock, newId, attendance } = this.#access.parts;
      const attempt = await this.transact(scope, fence, async (sql) => {
        const row = await this.#access.lockHeld(sql, scope, sessionId, fence);
        // Without a fence, the session must be idle. A caller with a fence is the session's own run.
        if (fence === undefined)
          await driveScript(sql, attendance.attendant.branch(sessionRefOf(row.session)));
        const isThere = targetId === row.tipId || targetId === row.session.leafId;
        if (isThere) return { row, plan: emptyPlan, written: null };
        const site = await readSite(sql, row, [], targetId);
        const draft = { type: "custom", customType: "skein.leaf" } as const;
        const plan = planAt(row, [{ draft, id: newId() }], site, clock.now(), newId);
        const written = withPlan(row, plan, site);
        await writeLocked(sql, row, written);
        return { row: written.row, plan, written };
      });
      this.#finish(attempt);
      return recordOf(attempt.row.session);
    });
  }

  /**
   * Runs a transaction in which the fence's script runs. A script that changes runs needs the user's lock, which is
   * always acquired before a session's.
   */
  async transact<T>(
    scope: Scope,
    fence: FenceOption["fence"],
    script: (sql: Sql) => Promise<T>,
    options: TransactOptions = {},
  ): Promise<T> {
    const { database } = this.#access.parts;
    const userId = scope.userId ?? null;
    if (fence === undefined || typeof fence === "function" || fence.durability === undefined)
      return database.transact(userId, script, options);
    const { skipsLocked = false } = fence;
    const result = await database.transact(userId, script, { ...options, locks: "runs", skipsLocked });
    fence.afterCommit?.();
    return result;
  }

  /** Returns no attempt if the session must be read first, or has changed since it was remembered. */
  async #appendAtOnce(
    scope: Scope,
    sessionId: string,
    items: readonly NamedItem[],
    { expectedLeafId, parentId, fence }: FencedAppend,
  ): Promise<{ readonly attempt: Attempt | null; readonly isRepeated: boolean }> {
    const none = { attempt: null, isRepeated: false };
    const held = typeof fence === "object" ? fence.held : undefined;
    const row = this.#access.remembered(scope, sessionId);
    if (row === null || parentId !== undefined || items.length === 0) return none;
    if (fence !== undefined && held === undefined) return none;
    if (expectedLeafId !== undefined && expectedLeafId !== row.session.leafId) return none;
    if (items.some((item) => targetOf(item.draft) !== null)) return none;
    const { clock, newId, database } = this.#access.parts;
    const site = siteAtTip(row);
    const plan = planAt(row, items, site, clock.now(), newId);
    const written = withPlan(row, plan, site);
    const { text, values } = writeCall(row, written, held);
    try {
      const { rows, isRepeated } = await database.call<{ outcome: WriteOutcome }>(text, values);
      if (rows[0]?.outcome !== "written") return { attempt: null, isRepeated };
    } catch (error) {
      // One of the IDs exists. The other path compares the entries.
      if (violatedIndex((error as Error).cause ?? error) === "entries_id") return none;
      throw error;
    }
    const attempt = { row: written.row, plan, written };
    this.#finish(attempt);
    return { attempt, isRepeated: false };
  }

  async #appendLocked(
    scope: Scope,
    sessionId: string,
    items: readonly NamedItem[],
    { expectedLeafId, parentId, fence }: FencedAppend,
    earlier: { readonly isRepeated: boolean },
  ): Promise<Attempt> {
    const { clock, newId } = this.#access.parts;
    let attempts = earlier.isRepeated ? 1 : 0;
    const script = async (sql: Sql): Promise<Attempt> => {
      attempts += 1;
      const isRepeated = attempts > 1 && items.length > 0;
      const row = isRepeated
        ? await this.#access.require(sql, scope, sessionId, "write")
        : await this.#access.lockHeld(sql, scope, sessionId, fence);
      const site = await readSite(sql, row, items, parentId);
      const plan = planAt(row, items, site, clock.now(), newId);
      // Entries that an earlier attempt stored are acknowledged, even if the caller may no longer write.
      if (isRepeated && plan.nodes.length > 0) await this.#access.checkFence(sql, row, fence);
      checkExpectedLeaf(plan, row.session.leafId, expectedLeafId);
      if (plan.nodes.length === 0) return { row, plan, written: null };
      const written = withPlan(row, plan, site);
      await writeLocked(sql, row, written);
      return { row: written.row, plan, written };
    };
    const attempt = await this.transact(scope, fence, script, {
      isRepeatable: items.length > 0,
      ...(items.length === 0 ? await this.#durabilityOf(scope, fence) : {}),
    });
    // An earlier attempt stored the entries, but its reply was lost before they were published.
    const isStoredBefore = attempts > 1 && attempt.written === null && attempt.plan.entries.length > 0;
    if (isStoredBefore) this.#publish(attempt.row, attempt.plan.entries);
    this.#finish(attempt);
    return attempt;
  }

  /** Returns how to commit a change to runs without new entries. */
  async #durabilityOf(
    { userId = null }: { readonly userId?: string | null },
    fence: FenceOption["fence"],
  ): Promise<Pick<TransactOptions, "durability">> {
    const durability = typeof fence === "object" ? fence.durability : undefined;
    if (durability === undefined) return {};
    if (typeof durability === "string") return { durability };
    const { database } = this.#access.parts;
    return { durability: await database.transact(userId, (sql) => driveScript(sql, durability())) };
  }

  #finish({ row, written }: Attempt): void {
    this.#access.remember(row);
    if (written !== null && written.placed.length > 0) this.#publish(row, entriesOf(written));
  }

  #publish({ session }: SessionRow, entries: Plan["entries"]): void {
    const { feed } = this.#access.parts;
    if (feed.hasSubscribers) feed.publish({ type: "appended", session: recordOf(session), entries });
  }
}

const emptyPlan: Plan = { entries: [], lines: [], nodes: [] };
