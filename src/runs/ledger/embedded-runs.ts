import type { Accepted, AcceptRequest, AfterCommit, HeldRun, Run, RunState, RunStore } from "../contract.ts";
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
import { countLanes, explainWait, explainWaits } from "./explain-waits.ts";
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
import { EmbeddedOutbox } from "./outbox.ts";
import {
  countRunsByUser,
  getRun,
  listOpenUsers,
  listPending,
  listRuns,
  listTurnInputs,
  readSessionWork,
  readUnsettledWork,
} from "./query-runs.ts";
import { requeueHeld, sweepAll } from "./recover-runs.ts";
import { RunAttendant } from "./run-attendant.ts";
import type { Durability, RunLedgerOptions } from "./run-ledger.ts";
import { RunLedger } from "./run-ledger.ts";
import { migrateRuns } from "./schema.ts";
import { confirmReply, readReplyWait, stopAwaiting } from "./start-sequel.ts";

type RequiredOption = "ledger" | "clock" | "newId" | "emit" | "isGone" | "underLock";

/** The required options connect the ledger to the store. */
export type EmbeddedRunsOptions = Pick<RunLedgerOptions, RequiredOption> &
  Partial<Omit<RunLedgerOptions, RequiredOption>>;

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
  wakeWorker: () => undefined,
  removeAttachments: async () => undefined,
};

/**
 * Stores runs in a folder's database or in memory. All processes that have the database open share the runs. Each
 * method calls a function from this folder in a transaction with the durability given here.
 */
export class EmbeddedRuns implements RunStore {
  readonly outbox: EmbeddedOutbox;
  /** Callbacks for a store that resets, removes or purges a session. */
  readonly attendant: RunAttendant;
  readonly #ledger: RunLedger;
  readonly #inbox: Inbox;
  #dataVersion: number;

  readonly get = this.#call(getRun);
  readonly list = this.#call(listRuns);
  readonly countByUser = this.#call(countRunsByUser);
  readonly pending = this.#call(listPending);
  readonly work = this.#call(readSessionWork);
  readonly unsettledWork = this.#call(readUnsettledWork);
  readonly waits = this.#call(explainWait);
  readonly waitsOf = this.#call(explainWaits);
  readonly turnInputs = this.#call(listTurnInputs);
  readonly lanes = this.#call(countLanes);
  readonly children = this.#call(listChildren);
  readonly childrenToTidy = this.#call(findChildrenToTidy);
  readonly threadKey = this.#call(findThreadKey);
  readonly replyWait = this.#call(readReplyWait);
  readonly steerable = this.#call(listSteerable);
  readonly stopRequests = this.#call(listStopRequests);
  readonly partial = this.#call(readPartial);
  readonly approval = this.#call(findApproval);
  readonly approvals = this.#call(listApprovals);
  readonly budget = this.#call(readBudget);
  readonly checkBudget = this.#call(checkBudget);

  readonly bindThread = this.#change("synced", bindThread);
  /**
   * Synced so that a reply that a caller has been promised for later still arrives after a power failure.
   */
  readonly stopAwaiting = this.#change("synced", stopAwaiting);
  readonly edit = this.#change("synced", editInput);
  readonly retry = this.#change("synced", retryRun);
  readonly releaseApp = this.#change("synced", releaseFromApp);
  readonly requestApproval = this.#change("synced", requestApproval);
  readonly resolveApproval = this.#change("synced", resolveApproval);
  readonly confirmReply = this.#change("unsynced", confirmReply);
  readonly markTidied = this.#change("unsynced", markTidied);
  readonly renew = this.#change("unsynced", renewLeases);
  readonly markWritten = this.#change("unsynced", markWritten);
  readonly reserveInput = this.#change("unsynced", reserveInput);
  readonly mergeInput = this.#change("unsynced", mergeInput);
  readonly wait = this.#change("unsynced", enterWait);
  readonly resume = this.#change("unsynced", resumeRun);
  readonly savePartial = this.#change("unsynced", savePartial);

  readonly isHeld = this.#bind(isHeld);
  readonly openUsers = this.#bind(listOpenUsers);

  // These methods open their own transactions.
  readonly openLoopTurn = this.#bind(openLoopTurn);
  readonly endLoopTurns = this.#bind(endLoopTurns);
  readonly claim = this.#call(claimNext);
  readonly end = this.#call(endHeldRun);
  readonly release = this.#call(requeueHeld);
  readonly charge = this.#call(chargeRun);
  readonly sweep = this.#call(sweepAll);

  constructor(options: EmbeddedRunsOptions) {
    migrateRuns(options.ledger);
    this.#ledger = new RunLedger({ ...defaults, ...options }, acceptInput);
    this.#inbox = new Inbox(this.#ledger);
    this.outbox = new EmbeddedOutbox(this.#ledger);
    this.attendant = new RunAttendant(this.#ledger);
    this.#dataVersion = this.version();
  }

  async accept(request: AcceptRequest): Promise<Accepted> {
    return this.#adopt(await this.#inbox.accept(request));
  }

  acceptWithin(request: AcceptRequest): { readonly accepted: Accepted; readonly afterCommit: AfterCommit } {
    const { result, emit } = this.#ledger.collectEvents(() => acceptInput(this.#ledger, request));
    return { accepted: this.#adopt(result), afterCommit: emit };
  }

  adoptRequest({ root }: Pick<Run, "root">): void {
    const { options, ownRoots } = this.#ledger;
    if (!options.ownRequestsOnly) return;
    ownRoots.add(root.rootId);
    options.wakeWorker(); // An existing run is not reported as queued again.
  }

  #adopt(accepted: Accepted): Accepted {
    this.adoptRequest(accepted.run);
    return accepted;
  }

  /** The requests for which this process has accepted or claimed a run. */
  ownRequests(): readonly string[] {
    return [...this.#ledger.ownRoots];
  }

  async sleep(
    held: HeldRun,
    sleep: { readonly waitFor?: readonly string[]; readonly wakeAt: number },
  ): Promise<"sleeping" | "queued" | "nothing_to_wait_for"> {
    return this.#ledger.change("synced", () => sleepRun(this.#ledger, held, sleep));
  }

  async lose(held: HeldRun): Promise<void> {
    await requeueHeld(this.#ledger, held, "lost");
  }

  async abort(runId: string, reason?: string): Promise<RunState | null> {
    const state = this.#ledger.change("synced", () => abortRun(this.#ledger, runId, reason));
    this.#ledger.options.wakeWorker();
    return state;
  }

  changedByOthers(): boolean {
    const version = this.version();
    const isChanged = version !== this.#dataVersion;
    this.#dataVersion = version;
    return isChanged || isBatchDue(this.#ledger);
  }

  /** A value that changes when another process writes. */
  version(): number {
    return Number(this.#ledger.get("PRAGMA data_version")?.data_version);
  }

  #bind<A extends unknown[], R>(script: (ledger: RunLedger, ...args: A) => R) {
    return (...args: A): R => script(this.#ledger, ...args);
  }

  #call<A extends unknown[], R>(script: (ledger: RunLedger, ...args: A) => R | Promise<R>) {
    return async (...args: A): Promise<R> => script(this.#ledger, ...args);
  }

  #change<A extends unknown[], R>(durability: Durability, script: (ledger: RunLedger, ...args: A) => R) {
    return async (...args: A): Promise<R> =>
      this.#ledger.change(durability, () => script(this.#ledger, ...args));
  }
}
