import { systemClock } from "../core/clock.ts";
import { createIdSource } from "../core/ids.ts";
import type { LedgerRunsOptions } from "../runs/ledger/ledger-runs.ts";
import { LedgerRuns } from "../runs/ledger/ledger-runs.ts";
import { migrateRuns } from "../runs/ledger/schema.ts";
import type { App } from "../sessions/app.ts";
import { removeHandedFiles } from "../sessions/attachment-files.ts";
import type { FilesStore } from "../store/files/store.ts";
import { scopeOfSession } from "../store/rules.ts";
import type { WorkingStore } from "../store/work.ts";
import { claimsHere, createTakeOverCheck, defaultLeaseMs, isOwnerGone } from "./process.ts";

/** Attaches runs to a store. From then on, resets and removals of its sessions take the runs into account. */
export function attachRuns(
  app: App,
  options: Parameters<typeof claimsHere>[1] & {
    readonly leaseMs: number;
    readonly workers?: boolean | "own";
  },
): LedgerRuns {
  const { store, config, agents, spaces, clock, newId, owner, bus } = app;
  const { budget, session } = config;
  const { perProcess, ...lanes } = config.lanes;
  const runs = new LedgerRuns({
    clock,
    newId,
    emit: bus.emit,
    wakeWorker: () => app.worker.wake(),
    ...claimsHere(app, options),
    hasWorkers: () => store.work.shared === null || app.hasWorkers(),
    hasStore: (userId) => spaces.missingStore(userId) === null,
    ownRequestsOnly: options.workers === "own",
    leaseMs: options.leaseMs,
    owner,
    ...rim(store, options.leaseMs),
    queueMode: config.queue.mode,
    limits: { ...budget, pingPong: 2 * session.agentToAgent.maxPingPongTurns + 2 },
    lanes,
    perProcess,
    runTimeoutMs: (agentId) => agents.runTimeoutSeconds(agentId) * 1000,
    yieldTimeoutMs: config.yield.timeoutMinutes * 60_000,
  });
  store.work.attend(runs.attendant);
  return runs;
}

/**
 * The store of a folder in which this process executes no runs. It includes the runs that other processes have left
 * there.
 */
export type FolderStore = FilesStore & { readonly runs: LedgerRuns };

/** Attaches runs to a store without executing any, so that resets and removals respect other processes' runs. */
export function attachIdleRuns(store: WorkingStore): LedgerRuns {
  const parts = { clock: systemClock, newId: createIdSource(), emit: () => undefined };
  const runs = new LedgerRuns({ ...parts, ...rim(store, defaultLeaseMs) });
  store.work.attend(runs.attendant);
  return runs;
}

/** Returns the functions of the session store that the run store uses. */
function rim(
  store: WorkingStore,
  leaseMs: number,
): Pick<
  LedgerRunsOptions,
  | "engine"
  | "isGone"
  | "hasLockFiles"
  | "canTakeOver"
  | "underLock"
  | "sessionAt"
  | "hasEntry"
  | "removeAttachments"
> {
  const { shared } = store.work;
  if (store.work.ledger !== null) migrateRuns(store.work.ledger);
  return {
    removeAttachments: removeHandedFiles,
    engine: store.work.engine,
    // A process ID says nothing about a process on another machine.
    isGone: shared === null ? isOwnerGone : (owner) => shared.canTakeOver() && shared.events.isGone(owner),
    hasLockFiles: shared === null,
    canTakeOver: shared === null ? createTakeOverCheck(leaseMs) : () => shared.canTakeOver(),
    sessionAt: (userId, by) => store.work.find(userId, by),
    hasEntry: async (session, entryId) =>
      (await store.sessions.entry(scopeOfSession(session), session.sessionId, entryId)) !== null,
    underLock: (session, fence) =>
      store.sessions.append(scopeOfSession(session), session.sessionId, [], { fence }),
  };
}
