import type { RoutingSettings } from "../channels/route-inbound.ts";
import type { Config } from "../config/sections/all.ts";
import type { Clock } from "../core/clock.ts";
import { systemClock } from "../core/clock.ts";
import { SkeinError } from "../core/errors.ts";
import type { Emit } from "../core/events.ts";
import type { IdSource } from "../core/ids.ts";
import { createIdSource } from "../core/ids.ts";
import { sessionRefOf } from "../core/session-ref.ts";
import type { FileBoundary } from "../file-access/file-boundary.ts";
import type { Run, RunStore } from "../runs/contract.ts";
import type { EmbeddedOptions } from "../runs/embedded/books.ts";
import type { EmbeddedRunsOptions } from "../runs/embedded/runs.ts";
import { EmbeddedRuns } from "../runs/embedded/runs.ts";
import type { Agents } from "../sessions/agents.ts";
import { removeHandedFiles } from "../sessions/attachment-files.ts";
import type { RunSettings } from "../sessions/running.ts";
import type { ContextDefaults } from "../sessions/runtime-context.ts";
import type { SessionRecord } from "../store/contract.ts";
import { scopeOfSession } from "../store/rules.ts";
import type { Spaces, WorkingStore } from "../store/spaces.ts";
import type { SkeinStore } from "./open-store.ts";
import { isOwnerGone } from "./process.ts";

/** What the configuration says of runs, as those who run them want it. */
export function runSettings(config: Config): RunSettings {
  const { compaction, contextPruning, channels, session, approvals, retries } = config;
  return {
    compaction,
    contextPruning,
    channels,
    reset: session.reset,
    approvalTimeoutMs: approvals.timeoutSeconds * 1000,
    stallMs: retries.stallSeconds * 1000,
    maxRetries: retries.max,
    yieldTimeoutMs: config.yield.timeoutMinutes * 60_000,
  };
}

/** The runs of a store. From now on its sessions are not reset or removed without regard to them. */
export function attachRuns(
  store: WorkingStore,
  config: Config,
  agents: Agents,
  parts: {
    readonly clock: Clock;
    readonly newId: IdSource;
    readonly emit: Emit;
    readonly leaseMs: number;
    readonly app: string;
    agentHere: EmbeddedOptions["agentHere"];
    channelsHere: EmbeddedOptions["channelsHere"];
    readonly ownRequestsOnly: boolean;
    stopAsked(): void;
    hasStore(userId: string | null): boolean;
  },
): EmbeddedRuns {
  const { budget, lanes, session } = config;
  const runs = new EmbeddedRuns({
    ...parts,
    ...rim(store),
    queueMode: config.queue.mode,
    limits: { ...budget, pingPong: 2 * session.agentToAgent.maxPingPongTurns + 2 },
    lanes,
    runTimeoutMs: (agentId) => agents.runTimeoutSeconds(agentId) * 1000,
    yieldTimeoutMs: config.yield.timeoutMinutes * 60_000,
  });
  store.work.attend(runs.attendant);
  return runs;
}

/** For a store that nothing runs on here: its sessions are not reset or removed without regard to the runs of others. */
export function respectRuns<S extends WorkingStore>(store: S): S {
  const parts = { clock: systemClock, newId: createIdSource(), emit: () => undefined };
  const runs = new EmbeddedRuns({ ...parts, ...rim(store) });
  store.work.attend(runs.attendant);
  beside.set(store, runs);
  return store;
}

const beside = new WeakMap<object, EmbeddedRuns>();

/** Input of a session that is accepted and not yet conversation, in a store that was opened with regard to runs. */
export async function pendingIn(store: object, sessionUid: string): Promise<readonly Run[]> {
  return (await beside.get(store)?.pending(sessionUid)) ?? [];
}

/** What goes on in the sessions of such a store. */
export function workIn(store: object): EmbeddedRuns | undefined {
  return beside.get(store);
}

/** The run of a session that is open or starts next; `null`: there is none. */
export async function openRunOf(
  runs: Pick<RunStore, "work" | "get"> | undefined,
  { uid }: SessionRecord,
): Promise<Run | null> {
  const runId = (await runs?.work([uid]))?.get(uid)?.runId ?? null;
  return runId === null || runs === undefined ? null : runs.get(runId);
}

/** What a run store asks of the store beside it. */
function rim(
  store: WorkingStore,
): Pick<EmbeddedRunsOptions, "ledger" | "isGone" | "underLock" | "sessionAt" | "hasEntry" | "removeHanded"> {
  return {
    removeHanded: removeHandedFiles,
    ledger: store.work.ledger,
    isGone: isOwnerGone,
    sessionAt: (userId, by) => store.work.find(userId, by),
    hasEntry: async (session, entryId) =>
      (await store.sessions.entry(scopeOfSession(session), session.sessionId, entryId)) !== null,
    underLock: async (session, act) => {
      const { leafId } = await store.sessions.append(scopeOfSession(session), session.sessionId, [], {
        fence: act,
      });
      return { leafId };
    },
  };
}

/** Where messages from outside belong. */
export function routingOf({ session, channels }: Config, agents: Agents): RoutingSettings {
  const { scope, dmScope, identityLinks } = session;
  return { scope, dmScope, identityLinks, channels, agentId: agents.first };
}

/** Refuses with `conflict` where a run has the session. */
export function idleIn({ attendant }: EmbeddedRuns): (session: SessionRecord) => void {
  return (session) => {
    try {
      attendant.branch(sessionRefOf(session));
    } catch (error) {
      const problem = `The session ${session.sessionId} is being answered`;
      throw new SkeinError(
        "conflict",
        { problem, advice: "Wait for the end of the run, or abort it" },
        { cause: error },
      );
    }
  };
}

/** Where somebody means who says little. */
export function contextDefaults(
  config: Config,
  store: SkeinStore,
  spaces: Spaces<SkeinStore>,
  agents: Agents,
  files: FileBoundary,
): ContextDefaults {
  return {
    enter: (call) => spaces.enter(call),
    missingStore: (userId) => spaces.missingStore(userId),
    agentId: agents.first,
    store,
    scope: config.session.scope,
    resolveCwd: (place, wanted) => files.resolveCwd(place, wanted, "operator"),
  };
}
