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
  AfterCommit,
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
  ThreadRef,
  LedgerValue as Value,
  WaitEntered,
  WorkAttendant,
} from "../contract.ts";
import { defaultCaps } from "../lanes.ts";
import { planSequel } from "../plan-sequel.ts";
import { isEnded, mostLost } from "../states.ts";
import { acceptInput, Inbox, retryLostRun } from "./accept-input.ts";
import { findApproval, listApprovals, requestApproval, resolveApproval } from "./approvals.ts";
import { figuresOrNone, readFigures, writeFigures } from "./budgets.ts";
import { bindThread, findChildrenToTidy, findThreadKey, listChildren, markTidied } from "./children.ts";
import {
  endLoopTurns,
  findMissingHere,
  isBatchDue,
  openLoopTurn,
  releaseFromApp,
} from "./claim-eligibility.ts";
import { claimNext } from "./claim-run.ts";
import { abortRun, endRun } from "./end-run.ts";
import { confirmReply, endDurability, replyWaitOf, stopWaiting } from "./follow-run.ts";
import {
  enterWait,
  listSteerable,
  markWritten,
  mergeInput,
  renewLeases,
  resumeRun,
  sleepRun,
} from "./hold-run.ts";
import { EmbeddedOutbox, putOutbox } from "./outbox.ts";
import { abortError, requeue, sweepAll } from "./recover-runs.ts";
import { RunAttendant } from "./run-attendant.ts";
import type { EmbeddedOptions } from "./run-ledger.ts";
import { fenced, publicRun, RunLedger } from "./run-ledger.ts";
import { readSessionWork, readWaits } from "./run-status.ts";
import { migrateRuns } from "./schema.ts";

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
  planSequel,
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
  readonly #ledger: RunLedger;
  readonly #inbox: Inbox;
  #dataVersion: number;

  constructor(options: EmbeddedRunsOptions) {
    migrateRuns(options.ledger);
    this.#ledger = new RunLedger({ ...defaults, ...options }, acceptInput);
    this.#inbox = new Inbox(this.#ledger);
    this.outbox = new EmbeddedOutbox(this.#ledger);
    this.attendant = new RunAttendant(this.#ledger);
    this.#dataVersion = this.version();
  }

  async accept(request: AcceptRequest): Promise<Accepted> {
    return this.#adopted(await this.#inbox.accept(request));
  }

  acceptWithin(request: AcceptRequest): { readonly accepted: Accepted; readonly afterCommit: AfterCommit } {
    const { result, emit } = this.#ledger.collectEvents(() => acceptInput(this.#ledger, request));
    return { accepted: this.#adopted(result), afterCommit: emit };
  }

  adoptRequest({ root }: Pick<Run, "root">): void {
    const { options, ownRoots } = this.#ledger;
    if (!options.ownRequestsOnly) return;
    ownRoots.add(root.rootId);
    options.stopAsked(); // wakes the worker: a known run is not announced as queued again
  }

  /** Where this process claims only its own requests: those, and the requests of which it has claimed a run. */
  ownRequests(): readonly string[] {
    return [...this.#ledger.ownRoots];
  }

  #adopted(accepted: Accepted): Accepted {
    this.adoptRequest(accepted.run);
    return accepted;
  }

  async checkBudget({ rootId, hops }: RootRef): Promise<void> {
    const { limits } = this.#ledger.options;
    const reserved = reserveRun(figuresOrNone(this.#ledger, rootId), { hops, pairCount: null }, limits);
    if ("refusal" in reserved) throw budgetExceeded(rootId, reserved.refusal);
  }

  async replyWait(runId: string): Promise<ReplyWait | null> {
    return replyWaitOf(this.#ledger, runId);
  }

  /** Synced: whoever was told that the reply comes later gets it, also after a power cut. */
  async stopAwaiting(runId: string): Promise<"taken" | "late"> {
    return this.#ledger.change("synced", () => stopWaiting(this.#ledger, runId));
  }

  async confirmReply(held: HeldRun, runId: string): Promise<void> {
    this.#ledger.change("unsynced", () => {
      this.#ledger.heldLine(held);
      confirmReply(this.#ledger, held, runId);
    });
  }

  async work(uids: readonly string[]): Promise<ReadonlyMap<string, SessionWork>> {
    return readSessionWork(this.#ledger, uids);
  }

  async children(
    userId: string | null,
    parentKey: string,
    query: { readonly endedSince?: number; readonly open?: boolean } = {},
  ): Promise<readonly Child[]> {
    return listChildren(this.#ledger, userId, parentKey, query);
  }

  async toTidy(): Promise<readonly { readonly child: Child; readonly act: "remove" | "archive" }[]> {
    return findChildrenToTidy(this.#ledger);
  }

  async tidied(runId: string): Promise<void> {
    this.#ledger.change("unsynced", () => markTidied(this.#ledger, runId));
  }

  async bindThread(userId: string | null, thread: ThreadRef, key: string): Promise<void> {
    this.#ledger.change("synced", () => bindThread(this.#ledger, userId, thread, key));
  }

  async boundTo(userId: string | null, thread: ThreadRef): Promise<string | null> {
    return findThreadKey(this.#ledger, userId, thread);
  }

  async get(runId: string, userId?: string | null): Promise<Run | null> {
    const row = this.#ledger.row(runId);
    return row !== null && (userId === undefined || row.session.userId === userId) ? publicRun(row) : null;
  }

  /** Whose runs are open. */
  openUsers(): readonly (string | null)[] {
    const rows = this.#ledger.all("SELECT DISTINCT user FROM runs WHERE ended_at IS NULL");
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
      waiting.push(...page.filter((run) => findMissingHere(this.#ledger, run) !== null));
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
    return this.#ledger.rows(`${where} ORDER BY seq DESC LIMIT ?`, ...values).map(publicRun);
  }

  async countByUser(
    userIds: readonly (string | null)[],
  ): Promise<ReadonlyMap<string, { readonly runs: number; readonly open: number }>> {
    const users = JSON.stringify(userIds.map((userId) => userId ?? ""));
    const count = (more: string) =>
      new Map(
        this.#ledger
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
    return readWaits(this.#ledger, [runId]).get(runId) ?? null;
  }

  async waitsOf(runIds: readonly string[]): Promise<ReadonlyMap<string, RunWaits>> {
    return readWaits(this.#ledger, runIds);
  }

  async pending(sessionUid: string): Promise<readonly Run[]> {
    const where = "uid = ? AND state = 'queued' AND written = 0 ORDER BY seq";
    return this.#ledger.rows(where, sessionUid).map(publicRun);
  }

  async claim(owner: string, except: ReadonlySet<string> = new Set()): Promise<Claim | null> {
    return claimNext(this.#ledger, owner, except);
  }

  openLoopTurn(session: Pick<SessionRef, "uid" | "sessionId">, owner: string): boolean {
    return openLoopTurn(this.#ledger, session, owner);
  }

  endLoopTurns(uid: string | null, owner: string): boolean {
    return endLoopTurns(this.#ledger, uid, owner);
  }

  isHeld({ runId, fence }: HeldRun): boolean {
    const sql = "SELECT 1 FROM runs WHERE run_id = ? AND fence = ? AND state IN ('running', 'waiting')";
    return this.#ledger.get(sql, runId, fence) !== undefined;
  }

  async renew(owner: string, held: readonly HeldRun[]): Promise<readonly string[]> {
    return this.#ledger.change("unsynced", () => renewLeases(this.#ledger, owner, held));
  }

  async written(held: HeldRun): Promise<void> {
    this.#ledger.change("unsynced", () => markWritten(this.#ledger, held));
  }

  async steerable(held: HeldRun): Promise<readonly Run[]> {
    return listSteerable(this.#ledger, held);
  }

  async steered(held: HeldRun, runId: string): Promise<void> {
    this.#ledger.change("unsynced", () => mergeInput(this.#ledger, held, runId));
  }

  async wait(
    held: HeldRun,
    wait: { readonly for: "run" | "approval"; readonly runIds?: readonly string[] },
  ): Promise<WaitEntered> {
    return this.#ledger.change("unsynced", () => enterWait(this.#ledger, held, wait));
  }

  async waitOver(held: HeldRun): Promise<boolean> {
    return this.#ledger.change("unsynced", () => resumeRun(this.#ledger, held));
  }

  async sleep(
    held: HeldRun,
    sleep: { readonly waitFor?: readonly string[]; readonly wakeAt: number },
  ): Promise<"sleeping" | "queued" | "nothing_to_wait_for"> {
    return this.#ledger.change("synced", () => sleepRun(this.#ledger, held, sleep));
  }

  async end(
    held: HeldRun,
    outcome: Outcome,
    also: { readonly deliver?: readonly AcceptRequest[]; readonly outbox?: readonly OutboxRequest[] } = {},
  ): Promise<void> {
    const { deliver = [], outbox = [] } = also;
    const durability =
      deliver.length + outbox.length > 0 ? "synced" : endDurability(this.#ledger, held.runId);
    this.#ledger.change(durability, () => {
      const row = this.#ledger.row(held.runId);
      if (row !== null && row.fence === held.fence && row.endedAt !== null) return;
      if (row === null || row.fence !== held.fence || row.owner === null) throw fenced(row);
      if (row.abortRequested && outcome.state === "ok") {
        // Whoever was told that it is aborted does not see it end well, and nobody is told what it said.
        endRun(this.#ledger, row, { ...outcome, state: "aborted", code: "aborted", ...abortError(row) });
        return;
      }
      // Before the end is told: who sleeps for this run is to find what it says.
      for (const each of deliver) acceptInput(this.#ledger, { ...each, isDelivery: true });
      for (const each of outbox) putOutbox(this.#ledger, each);
      endRun(this.#ledger, row, outcome);
    });
  }

  async release(held: HeldRun, why: "released" | "deferred" = "released"): Promise<void> {
    await requeue(this.#ledger, this.#ledger.held(held), why, () => true);
  }

  async lose(held: HeldRun): Promise<void> {
    await requeue(this.#ledger, this.#ledger.held(held), "lost", () => true);
  }

  async abort(runId: string, reason?: string): Promise<RunState | null> {
    const state = this.#ledger.change("synced", () => abortRun(this.#ledger, runId, reason));
    this.#ledger.options.stopAsked();
    return state;
  }

  async retry(runId: string): Promise<Accepted | null> {
    return this.#ledger.change("synced", () => retryLostRun(this.#ledger, runId));
  }

  async releaseApp(runId: string): Promise<Run | null> {
    const ledger = this.#ledger;
    return ledger.change("synced", () => {
      const row = ledger.row(runId);
      if (row === null) return null;
      if (row.app === null) return publicRun(row);
      if (row.owner !== null || row.endedAt !== null) {
        const problem = `The run ${runId} is ${row.outcome?.state ?? row.state} and waits for no app`;
        throw new SkeinError("conflict", { problem, advice: "List the runs that wait with skein runs ls" });
      }
      releaseFromApp(ledger, row);
      const released = ledger.row(runId);
      return released === null ? null : publicRun(released);
    });
  }

  async toStop(owner: string): Promise<readonly string[]> {
    const sql = "SELECT run_id FROM runs WHERE state IN ('running', 'waiting') AND abort = 1 AND owner = ?";
    return this.#ledger.all(sql, owner).map(({ run_id }) => String(run_id));
  }

  async charge(held: HeldRun, usage: RunUsage): Promise<void> {
    const ledger = this.#ledger;
    const refusal = ledger.change("unsynced", () => {
      const line = ledger.heldLine(held);
      const sql = "UPDATE runs SET usage = ? WHERE run_id = ?";
      ledger.run(sql, JSON.stringify(addUsage(line.usage, usage)), line.runId);
      const merged = ledger.all("SELECT root FROM runs WHERE merged_into = ? ORDER BY seq", line.runId);
      const roots = [...new Set([line.rootId, ...merged.map(({ root }) => String(root))])];
      const refusals = roots.flatMap((rootId) => {
        const figures = spend(figuresOrNone(ledger, rootId), usage);
        writeFigures(ledger, rootId, figures);
        const over = overSpent(figures, ledger.options.limits);
        return over === null ? [] : [{ rootId, over }];
      });
      return refusals[0];
    });
    // What was spent is spent: refused only once it is written down.
    if (refusal !== undefined) throw budgetExceeded(refusal.rootId, refusal.over);
  }

  async budget(rootId: string): Promise<BudgetFigures | null> {
    const figures = readFigures(this.#ledger, rootId);
    return figures === null ? null : figuresOf(rootId, figures);
  }

  async keepPartial(held: HeldRun, text: string | null): Promise<void> {
    this.#ledger.change("unsynced", () => {
      const { runId } = this.#ledger.held(held);
      if (text === null) this.#ledger.run("DELETE FROM run_partials WHERE run_id = ?", runId);
      else this.#ledger.run("INSERT OR REPLACE INTO run_partials (run_id, text) VALUES (?, ?)", runId, text);
    });
  }

  async partial(runId: string): Promise<string | null> {
    const row = this.#ledger.get("SELECT text FROM run_partials WHERE run_id = ?", runId);
    return row === undefined ? null : String(row.text);
  }

  async requestApproval(held: HeldRun, request: ApprovalRequest): Promise<Approval> {
    const made = this.#ledger.change("synced", () => requestApproval(this.#ledger, held, request));
    if (made === null) throw fenced(null);
    return made;
  }

  async resolveApproval(
    approvalId: string,
    given: "approved" | "denied" | "expired",
    by: string | null,
  ): Promise<Approval | null> {
    return this.#ledger.change("synced", () => resolveApproval(this.#ledger, approvalId, given, by));
  }

  async approval(approvalId: string): Promise<Approval | null> {
    return findApproval(this.#ledger, approvalId);
  }

  async approvals(query: ApprovalQuery, userId?: string | null): Promise<readonly Approval[]> {
    return listApprovals(this.#ledger, query, userId);
  }

  async sweep(): Promise<{ readonly nextAt: number | null }> {
    return sweepAll(this.#ledger);
  }

  changedByOthers(): boolean {
    const version = this.version();
    const isChanged = version !== this.#dataVersion;
    this.#dataVersion = version;
    return isChanged || isBatchDue(this.#ledger);
  }

  /** Another number once another process has written. */
  version(): number {
    return Number(this.#ledger.get("PRAGMA data_version")?.data_version);
  }
}
