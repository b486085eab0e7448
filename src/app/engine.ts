import type { Emit } from "../core/events.ts";
import { present } from "../core/present.ts";
import type { Claim } from "../runs/contract.ts";
import { OutboxPump } from "../runs/outbox-pump.ts";
import { Worker } from "../runs/worker.ts";
import type { App } from "../sessions/app.ts";
import { childEnd } from "../sessions/child-run.ts";
import { redeliver } from "../sessions/delivery.ts";
import { executeRun } from "../sessions/run.ts";
import { stopInTime } from "../sessions/run-outcome.ts";
import { ScheduleTimer } from "../sessions/schedule-timer.ts";
import { ChildKeeper, Tidying } from "../sessions/tidy-children.ts";
import type { StoreChange } from "../store/contract.ts";

/** Executes queued runs and delivers the outbox. */
interface Engine {
  readonly worker: Worker;
  /** With `ownOnly`, starts no scheduled runs, because they do not belong to this process's own requests. */
  start(options: { readonly ownOnly: boolean }): void;
  wakeOutbox(): void;
  close(graceMs: number): Promise<void>;
}

const wakesWorker: ReadonlySet<string> = new Set([
  "run.queued",
  "run.ended",
  "run.waiting",
  "run.sleeping",
  "approval.resolved",
]);

export function createEngine(app: App, leaseMs: number): Engine {
  const { store, runs, bus, owner, clock, outgoing, report } = app;
  // Other processes must not see the events of a session's next run before the events of this run.
  const execute = async (claim: Claim, signal: AbortSignal) => {
    await app.events.catchUp();
    try {
      return await executeRun(app, claim, signal);
    } finally {
      await app.events.flush();
    }
  };
  const worker = new Worker({
    runs,
    owner,
    clock,
    leaseMs,
    mustRenew: store.work.shared !== null,
    execute: stopInTime(execute, runs, report),
    report,
  });
  const pump = new OutboxPump({
    store: runs.outbox,
    deliver: (row, signal) => outgoing.deliver(row, signal, (letter) => redeliver(app, letter)),
    owner,
    clock,
    report,
  });
  const schedules = new ScheduleTimer(app);
  const tidying = new Tidying(new ChildKeeper(app), bus, report);
  let isWorking = false;
  const stopWaking = bus.subscribe(({ type, userId, sessionId }) => {
    // The run might have to wait for a slot, so its session is read in the meantime.
    if (isWorking && type === "run.queued")
      store.sessions.prewarm(present({ userId }), sessionId).catch(report);
    if (type === "outbox.queued") pump.wake();
    else if (wakesWorker.has(type)) worker.wake();
  });
  const stopWatching = store.work.engine.watch(() => {
    if (!isWorking) return;
    worker.wake();
    pump.wake();
  });
  return {
    worker,
    start: ({ ownOnly }) => {
      isWorking = true;
      worker.start();
      if (!ownOnly) schedules.start();
      pump.start();
      tidying.start();
    },
    wakeOutbox: () => pump.wake(),
    close: async (graceMs) => {
      await schedules.close();
      await worker.close(graceMs);
      await pump.close();
      await tidying.close();
      stopWaking();
      stopWatching();
    },
  };
}

/** Calls the `subagent_ended` hook for children that end in this process. Returns a function that unsubscribes. */
export function announceChildEnds({ bus, runs, hooks, report }: App): () => void {
  const announce = async (runId: string) => {
    const run = await runs.get(runId);
    const end = run === null ? null : childEnd(run);
    if (end !== null) await hooks.notify("subagent_ended", end);
  };
  return bus.subscribe((event) => {
    if (event.type !== "run.ended" || event.runId === undefined || !hooks.has("subagent_ended")) return;
    announce(event.runId).catch(report);
  });
}

/** Converts store changes to bus events. */
export function storeEvents(emit: Emit, now: () => number): (change: StoreChange) => void {
  return (change) => {
    const { userId, key, sessionId } = change.session;
    const about = { at: now(), userId, sessionKey: key, sessionId };
    switch (change.type) {
      case "created":
        return emit({ type: "session.created", ...about });
      case "patched": {
        const isArchived =
          change.session.meta.archived === true && change.changed?.includes("archived") === true;
        return emit({ type: isArchived ? "session.archived" : "session.updated", ...about });
      }
      // Emitted under the old key, which now belongs to the new session.
      case "reset": {
        const { key: sessionKey, sessionId: freshSessionId } = change.fresh;
        return emit({ type: "session.reset", ...about, sessionKey, freshSessionId });
      }
      case "redacted":
        return emit({ type: "session.updated", ...about, isRedacted: true });
      case "removed":
      case "purged":
        return emit({ type: "session.deleted", ...about });
      case "restored":
        return emit({ type: "session.restored", ...about });
      case "appended":
        for (const entry of change.entries) emit({ type: "entry.appended", ...about, entry });
    }
  };
}
