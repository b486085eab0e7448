import type { Runtime } from "../agents/contract.ts";
import { createLoop } from "../agents/loop/loop.ts";
import type { Config } from "../config/sections/all.ts";
import type { Clock } from "../core/clock.ts";
import type { EventBus } from "../core/events.ts";
import type { IdSource } from "../core/ids.ts";
import { isAcpKey } from "../core/keys.ts";
import { present } from "../core/present.ts";
import { spaceOf } from "../core/space.ts";
import type { FileBoundary } from "../file-access/file-boundary.ts";
import type { Run, RunStore } from "../runs/contract.ts";
import type { EmbeddedRuns } from "../runs/embedded/runs.ts";
import { OutboxPump } from "../runs/outbox.ts";
import { Worker } from "../runs/worker.ts";
import type { Agent, Agents } from "../sessions/agents.ts";
import { redeliver } from "../sessions/delivery.ts";
import type { HookRegistry } from "../sessions/hooks.ts";
import type { Outgoing } from "../sessions/outgoing.ts";
import { tellOfDeadLetter } from "../sessions/outgoing.ts";
import { executeRun } from "../sessions/run.ts";
import { notForEver } from "../sessions/run-outcome.ts";
import type { RunTools } from "../sessions/run-tools.ts";
import type { RunWatcher } from "../sessions/run-watcher.ts";
import type { AgentProfile, ModelPort, RunningDeps } from "../sessions/running.ts";
import { toldOfEnd } from "../sessions/spawn-run.ts";
import type { ChildKeeper } from "../sessions/tidy-children.ts";
import { Tidying } from "../sessions/tidy-children.ts";
import type { SessionRecord, Store } from "../store/contract.ts";
import type { Acp } from "./acp.ts";
import { runSettings } from "./settings.ts";

export interface EngineParts {
  readonly store: Store;
  readonly files: FileBoundary;
  readonly runs: EmbeddedRuns;
  readonly hooks: HookRegistry;
  readonly ends: RunningDeps["ends"];
  readonly bus: EventBus;
  readonly config: Config;
  readonly agents: Agents;
  readonly acp: Acp;
  readonly tools: RunTools;
  readonly models: ModelPort;
  readonly outgoing: Outgoing;
  readonly watcher: RunWatcher;
  readonly keeper: ChildKeeper;
  readonly owner: string;
  readonly clock: Clock;
  readonly newId: IdSource;
  readonly leaseMs: number;
  isSandboxed(session: SessionRecord): boolean;
  readonly report: (error: unknown) => void;
  /** Masks secrets in what providers say. */
  readonly redact: (text: string) => string;
}

/** What works: it runs what is queued, and sends what is in the outbox. */
export interface Engine {
  readonly worker: Worker;
  readonly running: RunningDeps;
  start(): void;
  wake(): void;
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

export function createEngine(parts: EngineParts): Engine {
  const { store, runs, bus, owner, clock, leaseMs, outgoing, report } = parts;
  const worker = new Worker({
    runs,
    owner,
    clock,
    leaseMs,
    execute: notForEver((claim, signal) => executeRun(running, claim, signal), runs, report),
    report,
  });
  const running = runningDeps(parts, worker);
  const pump = new OutboxPump({
    store: runs.outbox,
    deliver: (row, signal) => outgoing.deliver(row, signal, (letter) => redeliver(parts, letter)),
    owner,
    onDead: (row) => tellOfDeadLetter(runs, row),
    clock,
    report,
  });
  const tidying = new Tidying(parts.keeper, bus, report);
  let isWorking = false;
  const stopWaking = bus.subscribe(({ type, userId, sessionId }) => {
    // The run may wait for a slot; its session is read meanwhile.
    if (isWorking && type === "run.queued")
      store.sessions.prewarm(present({ userId }), sessionId).catch(report);
    if (type === "outbox.queued") pump.wake();
    else if (wakesWorker.has(type)) worker.wake();
  });
  return {
    worker,
    running,
    start: () => {
      isWorking = true;
      worker.start();
      pump.start();
      tidying.start();
    },
    wake: () => worker.wake(),
    wakeOutbox: () => pump.wake(),
    close: async (graceMs) => {
      await worker.close(graceMs);
      await pump.close();
      await tidying.close();
      stopWaking();
    },
  };
}

function runningDeps(parts: EngineParts, worker: Worker): RunningDeps {
  const { store, runs, hooks, bus, config, agents, tools, models, outgoing, watcher } = parts;
  const { clock, newId, report } = parts;
  return {
    store,
    files: parts.files,
    runs,
    hooks,
    ends: parts.ends,
    emit: bus.emit,
    clock,
    redact: parts.redact,
    newId,
    worker,
    runtime: runtimeOf(createLoop({ clock, redact: parts.redact }), parts.acp),
    models,
    shrink: shrinkLater,
    settings: runSettings(config),
    agent: (session) => (isAcpKey(session.key) ? parts.acp.profile(session) : agents.find(session.agentId)),
    tools: async (agent: AgentProfile, session, run: Run) =>
      agent.runtime === "acp" ? [] : tools.of(agents.find(agent.id) as Agent, run, session),
    seesPaths: (session) => spaceOf(session.userId).userId === null && !parts.isSandboxed(session),
    outgoing: (session, run, reply) => outgoing.of(session, run, reply),
    readOutput: readOutputLater,
    turns: new Map(),
    untilApproved: (approvalId, expiresAt, signal) => watcher.untilApproved(approvalId, expiresAt, signal),
    report,
  };
}

/** Which of the two answers is said by the session. */
function runtimeOf(loop: Runtime, acp: Acp): Runtime {
  return { run: (turn) => (isAcpKey(turn.about.sessionKey) ? acp.runtime : loop).run(turn) };
}

const readOutputLater: RunningDeps["readOutput"] = async (reply, schema) => {
  const { correction, readOutput } = await import("../agents/loop/model-call.ts");
  const read = await readOutput(reply, schema);
  return "output" in read ? read : { correction: correction(read.problem) };
};

export const shrinkLater: NonNullable<Parameters<typeof executeRun>[0]["shrink"]> = async (image, limits) => {
  const { shrinkImage } = await import("../agents/shrink-image.ts");
  return shrinkImage(image, limits);
};

/** Tells hooks of children that have ended in this process. */
export function tellOfChildEnds(
  bus: EventBus,
  runs: Pick<RunStore, "get">,
  hooks: HookRegistry,
  report: (error: unknown) => void,
): () => void {
  const tell = async (runId: string) => {
    const run = await runs.get(runId);
    const told = run === null ? null : toldOfEnd(run);
    if (told !== null) await hooks.notify("subagent_ended", told);
  };
  return bus.subscribe((event) => {
    if (event.type !== "run.ended" || event.runId === undefined || !hooks.has("subagent_ended")) return;
    tell(event.runId).catch(report);
  });
}
