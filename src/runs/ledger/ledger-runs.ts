import type { Durability, FenceScript, Script, Whose } from "../../core/script.ts";
import { valueScript } from "../../core/script.ts";
import type { SessionRef } from "../../core/session-ref.ts";
import type {
  Accepted,
  AcceptRequest,
  AfterCommit,
  HeldRun,
  Run,
  RunState,
  RunStore,
  ScheduleId,
} from "../contract.ts";
import { defaultCaps } from "../lanes.ts";
import { planSequel } from "../plan-sequel.ts";
import { acceptInput, Inbox, retryRun } from "./accept-input.ts";
import { findApproval, listApprovals, requestApproval, resolveApproval } from "./approvals.ts";
import { chargeRun, checkBudget, defaultLimits, readBudget } from "./budgets.ts";
import { bindThread, findChildrenToTidy, findThreadKey, listChildren, markTidied } from "./children.ts";
import { endLoopTurns, isBatchDue, openLoopTurn, releaseFromApp } from "./claim-eligibility.ts";
import { claimNext } from "./claim-run.ts";
import { editInput, reserveInput } from "./edit-input.ts";
import { abortRun, endHeldRun } from "./end-run.ts";
import { countByOwner, countLanes, countOpenWork, explainWait, explainWaits } from "./explain-waits.ts";
import {
  enterWait,
  isHeld,
  listSteerable,
  listStopRequests,
  markWritten,
  mergeInput,
  readPartial,
  renewLeases,
  resumeRun,
  savePartial,
  sleepRun,
} from "./hold-run.ts";
import { RunOutbox } from "./outbox.ts";
import {
  countRunsByUser,
  listOpenUsers,
  listPending,
  listRuns,
  listTurnInputs,
  readSessionWork,
  readUnsettledWork,
} from "./query-runs.ts";
import { requeueHeld, sweepAll } from "./recover-runs.ts";
import { RunAttendant } from "./run-attendant.ts";
import type { RunLedgerOptions } from "./run-ledger.ts";
import { getRun, RunLedger, RunTransaction } from "./run-ledger.ts";
import {
  noteSchedule,
  pauseSchedule,
  readSchedules,
  recordScheduledRun,
  settleSchedule,
} from "./schedules.ts";
import { confirmReply, readReplyWait, stopAwaiting } from "./start-sequel.ts";

type RequiredOption = "engine" | "clock" | "newId" | "emit" | "isGone" | "underLock";

/** The required options connect the ledger to the store. */
export type LedgerRunsOptions = Pick<RunLedgerOptions, RequiredOption> &
  Partial<Omit<RunLedgerOptions, RequiredOption>>;

const defaults = {
  app: "",
  agentHere: () => ({ app: null, tools: [] }),
  channelsHere: () => null,
  hasWorkers: () => true,
  hasStore: () => true,
  ownRequestsOnly: false,
  hasLockFiles: true,
  queueMode: "steer" as const,
  limits: defaultLimits,
  lanes: defaultCaps,
  perProcess: null,
  leaseMs: 30_000,
  owner: null,
  canTakeOver: () => true,
  runTimeoutMs: () => 3_600_000,
  yieldTimeoutMs: 3_600_000,
  planSequel,
  acceptInput,
  sessionAt: () => valueScript(null),
  hasEntry: async () => false,
  wakeWorker: () => undefined,
  removeAttachments: async () => undefined,
};

const byRun = (runId: string): Whose => ({ runId });
const byUser = ({ userId }: ScheduleId): Whose => ({ userId });
const byHeld = ({ runId }: HeldRun): Whose => ({ runId });

/**
 * Stores runs in a database that all processes share. Each method calls a function from this folder in a transaction
 * with the durability given here. Accepted input, deliveries when a run ends, sleep, answers to approvals, and the end
 * of a run without an owner are synced. Claims, leases and marks are not: if a power failure undoes them, the run has
 * no owner, and recovery continues from the synced log. The next claim has another fence than the one that was undone.
 */
export class LedgerRuns implements RunStore {
  readonly outbox: RunOutbox;
  /** Callbacks for a store that resets, removes or purges a session. */
  readonly attendant: RunAttendant;
  readonly #ledger: RunLedger;
  readonly #inbox: Inbox;
  #version: number;

  readonly get = this.#read(getRun);
  readonly list = this.#read(listRuns);
  readonly countByUser = this.#read(countRunsByUser);
  readonly pending = this.#read(listPending);
  readonly work = this.#read(readSessionWork);
  readonly unsettledWork = this.#read(readUnsettledWork);
  readonly waits = this.#read(explainWait);
  readonly waitsOf = this.#read(explainWaits);
  readonly turnInputs = this.#read(listTurnInputs);
  readonly lanes = this.#read(countLanes);
  readonly countByOwner = this.#read(countByOwner);
  readonly countOpen = this.#read(countOpenWork);
  readonly children = this.#read(listChildren);
  readonly childrenToTidy = this.#read(findChildrenToTidy);
  readonly threadKey = this.#read(findThreadKey);
  readonly replyWait = this.#read(readReplyWait);
  readonly steerable = this.#read(listSteerable);
  readonly stopRequests = this.#read(listStopRequests);
  readonly partial = this.#read(readPartial);
  readonly approval = this.#read(findApproval);
  readonly approvals = this.#read(listApprovals);
  readonly budget = this.#read(readBudget);
  readonly checkBudget = this.#read(checkBudget);

  readonly bindThread = this.#change("synced", (userId) => ({ userId }), bindThread);
  /** Synced so that a reply promised for later still arrives after a power failure. */
  readonly stopAwaiting = this.#change("synced", byRun, stopAwaiting);
  readonly edit = this.#change("synced", byRun, editInput);
  readonly retry = this.#change("synced", byRun, retryRun);
  readonly releaseApp = this.#change("synced", byRun, releaseFromApp);
  readonly requestApproval = this.#change("synced", byHeld, requestApproval);
  readonly resolveApproval = this.#change("synced", (approvalId) => ({ approvalId }), resolveApproval);
  readonly confirmReply = this.#change("unsynced", byHeld, confirmReply);
  readonly markTidied = this.#change("unsynced", () => null, markTidied);
  readonly renew = this.#change("unsynced", () => null, renewLeases);
  readonly markWritten = this.#change("unsynced", byHeld, markWritten);
  readonly reserveInput = this.#change("unsynced", byHeld, reserveInput);
  readonly mergeInput = this.#change("unsynced", byHeld, mergeInput);
  readonly wait = this.#change("unsynced", byHeld, enterWait);
  readonly resume = this.#change("unsynced", byHeld, resumeRun);
  readonly savePartial = this.#change("unsynced", byHeld, savePartial);

  readonly schedules = this.#read(readSchedules);
  readonly noteSchedule = this.#change("synced", byUser, noteSchedule);
  readonly settleSchedule = this.#change("synced", byUser, settleSchedule);
  readonly recordScheduledRun = this.#change("synced", byUser, recordScheduledRun);
  readonly pauseSchedule = this.#change("synced", byUser, pauseSchedule);

  readonly openUsers = this.#read(listOpenUsers);

  // These methods open their own transactions.
  readonly endLoopTurns = this.#bind(endLoopTurns);
  readonly claim = this.#bind(claimNext);
  readonly end = this.#bind(endHeldRun);
  readonly release = this.#bind(requeueHeld);
  readonly charge = this.#bind(chargeRun);
  readonly sweep = this.#bind(sweepAll);

  constructor(options: LedgerRunsOptions) {
    this.#ledger = new RunLedger({ ...defaults, ...options });
    this.#inbox = new Inbox(this.#ledger);
    this.outbox = new RunOutbox(this.#ledger);
    this.attendant = new RunAttendant(this.#ledger);
    this.#version = this.version();
  }

  async accept(request: AcceptRequest): Promise<Accepted> {
    const accepted = await this.#inbox.accept(request);
    this.adoptRequest(accepted.run);
    return accepted;
  }

  *acceptWithin(
    request: AcceptRequest,
  ): Script<{ readonly accepted: Accepted; readonly afterCommit: AfterCommit }> {
    const tx = new RunTransaction(this.#ledger);
    const accepted = yield* acceptInput(tx, request);
    const afterCommit = () => {
      tx.emitEvents();
      this.adoptRequest(accepted.run);
    };
    return { accepted, afterCommit };
  }

  adoptRequest(run: Pick<Run, "root">): void {
    this.#ledger.adopt(run);
  }

  /** The requests for which this process has accepted or claimed a run. */
  ownRequests(): readonly string[] {
    return [...this.#ledger.ownRoots];
  }

  /** Runs a script that only reads. */
  read<T>(script: () => Script<T>): Promise<T> {
    return this.#ledger.read(script);
  }

  isHeld(held: HeldRun): Promise<boolean> {
    return this.#ledger.read(() => isHeld(held));
  }

  /** Rejects writes once another process owns the run. */
  heldFence(held: HeldRun): FenceScript {
    return { script: () => isHeld(held), held };
  }

  openLoopTurn(session: Pick<SessionRef, "uid" | "sessionId">, owner: string): Script<boolean> {
    return openLoopTurn(new RunTransaction(this.#ledger), session, owner);
  }

  async startLoopTurn(session: SessionRef, owner: string): Promise<boolean> {
    const { attendant } = this;
    return this.#ledger.change("unsynced", session, function* (tx) {
      yield* attendant.branch(session);
      return yield* openLoopTurn(tx, session, owner);
    });
  }

  async sleep(
    held: HeldRun,
    sleep: { readonly waitFor?: readonly string[]; readonly wakeAt: number },
  ): ReturnType<RunStore["sleep"]> {
    return this.#ledger.change("synced", held, (tx) => sleepRun(tx, held, sleep));
  }

  async lose(held: HeldRun): Promise<void> {
    await requeueHeld(this.#ledger, held, "lost");
  }

  async abort(runId: string, reason?: string): Promise<RunState | null> {
    const state = await this.#ledger.change("synced", { runId }, (tx) => abortRun(tx, runId, reason));
    this.#ledger.options.wakeWorker();
    return state;
  }

  async changedByOthers(): Promise<boolean> {
    const before = this.#version;
    this.#version = this.version();
    return this.#version !== before || (await this.#ledger.read(isBatchDue));
  }

  /** A value that changes when another process writes. */
  version(): number {
    return this.#ledger.options.engine.version();
  }

  #bind<A extends unknown[], R>(act: (ledger: RunLedger, ...args: A) => R) {
    return (...args: A): R => act(this.#ledger, ...args);
  }

  #read<A extends unknown[], R>(script: (tx: RunTransaction, ...args: A) => Script<R>) {
    return (...args: A): Promise<R> => this.#ledger.read((tx) => script(tx, ...args));
  }

  #change<A extends unknown[], R>(
    durability: Durability,
    whose: (first: NoInfer<A>[0]) => Whose,
    script: (tx: RunTransaction, ...args: A) => Script<R>,
  ) {
    return (...args: A): Promise<R> =>
      this.#ledger.change(durability, whose(args[0]), (tx) => script(tx, ...args));
  }
}
