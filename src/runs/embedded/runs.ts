import { SkeinError } from "../../core/errors.ts";
import { present } from "../../core/present.ts";
import type { SessionRef } from "../../core/session-ref.ts";
import {
  addUsage,
  budgetExceeded,
  defaultLimits,
  figuresOf,
  overSpent,
  reserveRun,
  spend,
} from "../budget.ts";
import type {
  Accepted,
  AcceptRequest,
  Approval,
  ApprovalQuery,
  ApprovalRequest,
  BudgetFigures,
  Child,
  Claim,
  HeldRun,
  OutboxRequest,
  Outcome,
  ReplyWait,
  RootRef,
  Run,
  RunQuery,
  RunState,
  RunStore,
  RunUsage,
  RunWaits,
  SessionWork,
  TellLater,
  ThreadRef,
  LedgerValue as Value,
  WaitEntered,
  WorkAttendant,
} from "../contract.ts";
import { defaultCaps } from "../lanes.ts";
import { sequelOf } from "../sequels/sequel-of.ts";
import { isEnded, mostLost } from "../states.ts";
import { acceptInput, retryLost } from "./accepting.ts";
import { answer, approvalOf, approvalsOf, askFor } from "./approvals.ts";
import { RunAttendant } from "./attendant.ts";
import type { EmbeddedOptions } from "./books.ts";
import { Books, fenced } from "./books.ts";
import { childrenOf, childrenToTidy, markTidied } from "./children.ts";
import { lackingHere, releaseRun } from "./claimants.ts";
import { claimNext, reasonOf, requeue } from "./claiming.ts";
import { isCompanyDue } from "./company.ts";
import { abortRun, endRun } from "./ending.ts";
import { endDurability } from "./following.ts";
import {
  enterWait,
  goToSleep,
  markWritten,
  mergeInto,
  renewLeases,
  resume,
  steerableInto,
} from "./holding.ts";
import { Inbox } from "./inbox.ts";
import { endLoopTurns, openLoopTurn } from "./loop-turns.ts";
import { EmbeddedOutbox } from "./outbox.ts";
import { putOutbox } from "./outbox-rows.ts";
import { confirmReply, replyWaitOf, stopWaiting } from "./replies.ts";
import { figuresOfRoot, rootFigures, writeFigures } from "./roots.ts";
import { publicRun } from "./rows.ts";
import { migrateRuns } from "./schema.ts";
import { workOf } from "./session-work.ts";
import { sweepAll } from "./sweeping.ts";
import { bindTo, keyBoundTo } from "./threads.ts";
import { waitsOf } from "./waits-of.ts";

type Given = "ledger" | "clock" | "newId" | "emit" | "isGone" | "underLock";

/** All but the rim has a default. */
export type EmbeddedRunsOptions = Pick<EmbeddedOptions, Given> & Partial<Omit<EmbeddedOptions, Given>>;

const defaults = {
  app: "",
  agentHere: () => ({ app: null, tools: [] }),
  channelsHere: () => null,
  hasStore: () => true,
  ownRequestsOnly: false,
  queueMode: "steer" as const,
  limits: defaultLimits,
  lanes: defaultCaps,
  leaseMs: 30_000,
  runTimeoutMs: () => 3_600_000,
  yieldTimeoutMs: 3_600_000,
  sequelOf,
  sessionAt: () => null,
  hasEntry: async () => false,
  stopAsked: () => undefined,
  removeHanded: async () => undefined,
};

const defaultListed = 100;
const mostListed = 1000;

/** Runs in the database of a folder, or in memory: every process that has it open sees the same. */
export class EmbeddedRuns implements RunStore {
  readonly outbox: EmbeddedOutbox;
  /** What a store calls when it resets, removes or purges a session. */
  readonly attendant: WorkAttendant;
  readonly #books: Books;
  readonly #inbox: Inbox;
  #dataVersion: number;

  constructor(options: EmbeddedRunsOptions) {
    migrateRuns(options.ledger);
    this.#books = new Books({ ...defaults, ...options }, acceptInput);
    this.#inbox = new Inbox(this.#books);
    this.outbox = new EmbeddedOutbox(this.#books);
    this.attendant = new RunAttendant(this.#books);
    this.#dataVersion = this.version();
  }

  async accept(request: AcceptRequest): Promise<Accepted> {
    return this.#adopted(await this.#inbox.accept(request));
  }

  acceptWithin(request: AcceptRequest): { readonly accepted: Accepted; readonly tell: TellLater } {
    const { result, tell } = this.#books.collect(() => acceptInput(this.#books, request));
    return { accepted: this.#adopted(result), tell };
  }

  adoptRequest({ root }: Pick<Run, "root">): void {
    const { options, ownRoots } = this.#books;
    if (!options.ownRequestsOnly) return;
    ownRoots.add(root.rootId);
    options.stopAsked(); // wakes the worker: a known run is not announced as queued again
  }

  /** Where this process claims only its own requests: those, and the requests of which it has claimed a run. */
  ownRequests(): readonly string[] {
    return [...this.#books.ownRoots];
  }

  #adopted(accepted: Accepted): Accepted {
    this.adoptRequest(accepted.run);
    return accepted;
  }

  async checkBudget({ rootId, hops }: RootRef): Promise<void> {
    const { limits } = this.#books.options;
    const reserved = reserveRun(rootFigures(this.#books, rootId), { hops, pairCount: null }, limits);
    if ("refusal" in reserved) throw budgetExceeded(rootId, reserved.refusal);
  }

  async replyWait(runId: string): Promise<ReplyWait | null> {
    return replyWaitOf(this.#books, runId);
  }

  /** Synced: whoever was told that the reply comes later gets it, also after a power cut. */
  async stopAwaiting(runId: string): Promise<"taken" | "late"> {
    return this.#books.change("synced", () => stopWaiting(this.#books, runId));
  }

  async confirmReply(held: HeldRun, runId: string): Promise<void> {
    this.#books.change("unsynced", () => {
      this.#books.heldLine(held);
      confirmReply(this.#books, held, runId);
    });
  }

  async work(uids: readonly string[]): Promise<ReadonlyMap<string, SessionWork>> {
    return workOf(this.#books, uids);
  }

  async children(
    userId: string | null,
    parentKey: string,
    query: { readonly endedSince?: number; readonly open?: boolean } = {},
  ): Promise<readonly Child[]> {
    return childrenOf(this.#books, userId, parentKey, query);
  }

  async toTidy(): Promise<readonly { readonly child: Child; readonly act: "remove" | "archive" }[]> {
    return childrenToTidy(this.#books);
  }

  async tidied(runId: string): Promise<void> {
    this.#books.change("unsynced", () => markTidied(this.#books, runId));
  }

  async bindThread(userId: string | null, thread: ThreadRef, key: string): Promise<void> {
    this.#books.change("synced", () => bindTo(this.#books, userId, thread, key));
  }

  async boundTo(userId: string | null, thread: ThreadRef): Promise<string | null> {
    return keyBoundTo(this.#books, userId, thread);
  }

  async get(runId: string, userId?: string | null): Promise<Run | null> {
    const row = this.#books.row(runId);
    return row !== null && (userId === undefined || row.session.userId === userId) ? publicRun(row) : null;
  }

  /** Whose runs are open. */
  openUsers(): readonly (string | null)[] {
    const rows = this.#books.all("SELECT DISTINCT user FROM runs WHERE ended_at IS NULL");
    return rows.map(({ user }) => (user === "" ? null : String(user)));
  }

  async list(query: RunQuery, userId?: string | null): Promise<readonly Run[]> {
    const limit = Math.min(Math.max(1, query.limit ?? defaultListed), mostListed);
    if (query.waitsForApp !== true) return this.#page(query, userId, limit);
    // Only this process knows which of the runs of apps it cannot claim.
    const pageSize = Math.max(limit, defaultListed);
    const waiting: Run[] = [];
    for (let before = query.before; waiting.length < limit; ) {
      const page = this.#page({ ...query, ...present({ before }) }, userId, pageSize);
      waiting.push(...page.filter((run) => lackingHere(this.#books, run) !== null));
      if (page.length < pageSize) break;
      before = page.at(-1)?.seq;
    }
    return waiting.slice(0, limit);
  }

  #page(query: RunQuery, userId: string | null | undefined, limit: number): readonly Run[] {
    const { states, sessionUid, rootId, startedBy, before } = query;
    const wanted: [string, Value][] = [];
    if (userId !== undefined) wanted.push(["user = ?", userId ?? ""]);
    if (sessionUid !== undefined) wanted.push(["uid = ?", sessionUid]);
    if (rootId !== undefined) wanted.push(["root = ?", rootId]);
    if (startedBy !== undefined) wanted.push(["started_by = ?", startedBy]);
    if (before !== undefined) wanted.push(["seq < ?", before]);
    if (query.waitsForApp === true) wanted.push(["state = ? AND app <> ''", "queued"]);
    if (query.lost === true) wanted.push(["lost > ? AND retried_as IS NULL AND state = 'error'", mostLost]);
    const inState = states === undefined ? [] : [`state IN (${states.map(() => "?").join(", ")})`];
    // The planner cannot see that these never have an end; with it, it finds them without the ended ones.
    const isOpen = states?.every((state) => !isEnded(state)) === true ? ["ended_at IS NULL"] : [];
    const where = [...wanted.map(([text]) => text), ...inState, ...isOpen, "true"].join(" AND ");
    const values = [...wanted.map(([, value]) => value), ...(states ?? []), limit];
    return this.#books.rows(`${where} ORDER BY seq DESC LIMIT ?`, ...values).map(publicRun);
  }

  async countByUser(
    userIds: readonly (string | null)[],
  ): Promise<ReadonlyMap<string, { readonly runs: number; readonly open: number }>> {
    const users = JSON.stringify(userIds.map((userId) => userId ?? ""));
    const count = (more: string) =>
      new Map(
        this.#books
          .all(
            `SELECT user, count(*) AS count FROM runs
             WHERE user IN (SELECT value FROM json_each(?)) ${more} GROUP BY user`,
            users,
          )
          .map(({ user, count }) => [String(user), Number(count)]),
      );
    const open = count("AND ended_at IS NULL");
    return new Map([...count("")].map(([user, runs]) => [user, { runs, open: open.get(user) ?? 0 }]));
  }

  async waits(runId: string): Promise<RunWaits | null> {
    return waitsOf(this.#books, [runId]).get(runId) ?? null;
  }

  async waitsOf(runIds: readonly string[]): Promise<ReadonlyMap<string, RunWaits>> {
    return waitsOf(this.#books, runIds);
  }

  async pending(sessionUid: string): Promise<readonly Run[]> {
    const where = "uid = ? AND state = 'queued' AND written = 0 ORDER BY seq";
    return this.#books.rows(where, sessionUid).map(publicRun);
  }

  async claim(owner: string, except: ReadonlySet<string> = new Set()): Promise<Claim | null> {
    return claimNext(this.#books, owner, except);
  }

  openLoopTurn(session: Pick<SessionRef, "uid" | "sessionId">, owner: string): boolean {
    return openLoopTurn(this.#books, session, owner);
  }

  endLoopTurns(uid: string | null, owner: string): boolean {
    return endLoopTurns(this.#books, uid, owner);
  }

  isHeld({ runId, fence }: HeldRun): boolean {
    const sql = "SELECT 1 FROM runs WHERE run_id = ? AND fence = ? AND state IN ('running', 'waiting')";
    return this.#books.get(sql, runId, fence) !== undefined;
  }

  async renew(owner: string, held: readonly HeldRun[]): Promise<readonly string[]> {
    return this.#books.change("unsynced", () => renewLeases(this.#books, owner, held));
  }

  async written(held: HeldRun): Promise<void> {
    this.#books.change("unsynced", () => markWritten(this.#books, held));
  }

  async steerable(held: HeldRun): Promise<readonly Run[]> {
    return steerableInto(this.#books, held);
  }

  async steered(held: HeldRun, runId: string): Promise<void> {
    this.#books.change("unsynced", () => mergeInto(this.#books, held, runId));
  }

  async wait(
    held: HeldRun,
    wait: { readonly for: "run" | "approval"; readonly runIds?: readonly string[] },
  ): Promise<WaitEntered> {
    return this.#books.change("unsynced", () => enterWait(this.#books, held, wait));
  }

  async waitOver(held: HeldRun): Promise<boolean> {
    return this.#books.change("unsynced", () => resume(this.#books, held));
  }

  async sleep(
    held: HeldRun,
    sleep: { readonly waitFor?: readonly string[]; readonly wakeAt: number },
  ): Promise<"sleeping" | "queued" | "nothing_to_wait_for"> {
    return this.#books.change("synced", () => goToSleep(this.#books, held, sleep));
  }

  async end(
    held: HeldRun,
    outcome: Outcome,
    also: { readonly deliver?: readonly AcceptRequest[]; readonly outbox?: readonly OutboxRequest[] } = {},
  ): Promise<void> {
    const { deliver = [], outbox = [] } = also;
    const durability = deliver.length + outbox.length > 0 ? "synced" : endDurability(this.#books, held.runId);
    this.#books.change(durability, () => {
      const row = this.#books.row(held.runId);
      if (row !== null && row.fence === held.fence && row.endedAt !== null) return;
      if (row === null || row.fence !== held.fence || row.owner === null) throw fenced(row);
      if (row.abortRequested && outcome.state === "ok") {
        // Whoever was told that it is aborted does not see it end well, and nobody is told what it said.
        endRun(this.#books, row, { ...outcome, state: "aborted", code: "aborted", ...reasonOf(row) });
        return;
      }
      // Before the end is told: who sleeps for this run is to find what it says.
      for (const each of deliver) acceptInput(this.#books, { ...each, isDelivery: true });
      for (const each of outbox) putOutbox(this.#books, each);
      endRun(this.#books, row, outcome);
    });
  }

  async release(held: HeldRun, why: "released" | "deferred" = "released"): Promise<void> {
    await requeue(this.#books, this.#books.held(held), why, () => true);
  }

  async lose(held: HeldRun): Promise<void> {
    await requeue(this.#books, this.#books.held(held), "lost", () => true);
  }

  async abort(runId: string, reason?: string): Promise<RunState | null> {
    const state = this.#books.change("synced", () => abortRun(this.#books, runId, reason));
    this.#books.options.stopAsked();
    return state;
  }

  async retry(runId: string): Promise<Accepted | null> {
    return this.#books.change("synced", () => retryLost(this.#books, runId));
  }

  async releaseApp(runId: string): Promise<Run | null> {
    const books = this.#books;
    return books.change("synced", () => {
      const row = books.row(runId);
      if (row === null) return null;
      if (row.app === null) return publicRun(row);
      if (row.owner !== null || row.endedAt !== null) {
        const problem = `The run ${runId} is ${row.outcome?.state ?? row.state} and waits for no app`;
        throw new SkeinError("conflict", { problem, advice: "List the runs that wait with skein runs ls" });
      }
      releaseRun(books, row);
      const released = books.row(runId);
      return released === null ? null : publicRun(released);
    });
  }

  async toStop(owner: string): Promise<readonly string[]> {
    const sql = "SELECT run_id FROM runs WHERE state IN ('running', 'waiting') AND abort = 1 AND owner = ?";
    return this.#books.all(sql, owner).map(({ run_id }) => String(run_id));
  }

  async charge(held: HeldRun, usage: RunUsage): Promise<void> {
    const books = this.#books;
    const refusal = books.change("unsynced", () => {
      const line = books.heldLine(held);
      const sql = "UPDATE runs SET usage = ? WHERE run_id = ?";
      books.run(sql, JSON.stringify(addUsage(line.usage, usage)), line.runId);
      const merged = books.all("SELECT root FROM runs WHERE merged_into = ? ORDER BY seq", line.runId);
      const roots = [...new Set([line.rootId, ...merged.map(({ root }) => String(root))])];
      const refusals = roots.flatMap((rootId) => {
        const figures = spend(rootFigures(books, rootId), usage);
        writeFigures(books, rootId, figures);
        const over = overSpent(figures, books.options.limits);
        return over === null ? [] : [{ rootId, over }];
      });
      return refusals[0];
    });
    // What was spent is spent: refused only once it is written down.
    if (refusal !== undefined) throw budgetExceeded(refusal.rootId, refusal.over);
  }

  async budget(rootId: string): Promise<BudgetFigures | null> {
    const figures = figuresOfRoot(this.#books, rootId);
    return figures === null ? null : figuresOf(rootId, figures);
  }

  async keepPartial(held: HeldRun, text: string | null): Promise<void> {
    this.#books.change("unsynced", () => {
      const { runId } = this.#books.held(held);
      if (text === null) this.#books.run("DELETE FROM run_partials WHERE run_id = ?", runId);
      else this.#books.run("INSERT OR REPLACE INTO run_partials (run_id, text) VALUES (?, ?)", runId, text);
    });
  }

  async partial(runId: string): Promise<string | null> {
    const row = this.#books.get("SELECT text FROM run_partials WHERE run_id = ?", runId);
    return row === undefined ? null : String(row.text);
  }

  async requestApproval(held: HeldRun, request: ApprovalRequest): Promise<Approval> {
    const made = this.#books.change("synced", () => askFor(this.#books, held, request));
    if (made === null) throw fenced(null);
    return made;
  }

  async resolveApproval(
    approvalId: string,
    given: "approved" | "denied" | "expired",
    by: string | null,
  ): Promise<Approval | null> {
    return this.#books.change("synced", () => answer(this.#books, approvalId, given, by));
  }

  async approval(approvalId: string): Promise<Approval | null> {
    return approvalOf(this.#books, approvalId);
  }

  async approvals(query: ApprovalQuery, userId?: string | null): Promise<readonly Approval[]> {
    return approvalsOf(this.#books, query, userId);
  }

  async sweep(): Promise<{ readonly nextAt: number | null }> {
    return sweepAll(this.#books);
  }

  changedByOthers(): boolean {
    const version = this.version();
    const isChanged = version !== this.#dataVersion;
    this.#dataVersion = version;
    return isChanged || isCompanyDue(this.#books);
  }

  /** Another number once another process has written. */
  version(): number {
    return Number(this.#books.get("PRAGMA data_version")?.data_version);
  }
}
