import { hashedId } from "../core/hashed-id.ts";
import { isAcpKey } from "../core/keys.ts";
import { present } from "../core/present.ts";
import type { AcceptRequest, Child, Run, RunStore, SessionWork } from "../runs/contract.ts";
import { isOpenRun, openStates } from "../runs/states.ts";
import type { App } from "../sessions/app.ts";
import type { Caller } from "../sessions/session-access.ts";
import type { SessionRecord } from "../store/contract.ts";

export interface Descendant {
  readonly child: Child;
  /** The depth below the session, which is 1 for its own children. */
  readonly depth: number;
}

/** Sessions spawn at most five levels deep. This limit also ends a cycle in damaged data. */
const maxDepth = 6;

/** Lists a session's descendants, each after its parent, children newest first. */
export async function listDescendants(
  runs: Pick<RunStore, "children">,
  userId: string | null,
  key: string,
  depth = 1,
): Promise<readonly Descendant[]> {
  if (depth > maxDepth) return [];
  const members: Descendant[] = [];
  for (const child of await runs.children(userId, key)) {
    members.push({ child, depth });
    members.push(...(await listDescendants(runs, userId, child.run.session.key, depth + 1)));
  }
  return members;
}

export function isBusyWork(work: SessionWork | undefined): boolean {
  return work?.status === "queued" || work?.status === "running" || work?.status === "waiting";
}

/** Reads the activity of the children's sessions, keyed by session uid. */
export async function readChildWork(
  runs: Pick<RunStore, "work">,
  children: readonly Child[],
): Promise<ReadonlyMap<string, SessionWork>> {
  return runs.work(children.map(({ run }) => run.session.uid));
}

interface Killed {
  /** The number of aborted runs. */
  readonly runs: number;
  /** The number of descendants that had such runs. */
  readonly descendants: number;
}

/** How long a round waits for the aborted runs to end. */
const roundTimeoutMs = 5000;
/**
 * The maximum number of rounds. Each run's end is announced to its parent, which starts a turn that must be aborted
 * too.
 */
const maxRounds = 8;

/**
 * Aborts all unfinished runs of a child and its descendants, deepest first. Repeats this for runs that start as a
 * result until none are open. Runs that do not end in time will end later and are counted too.
 */
export async function killDescendants(child: Child, call: Caller, app: App): Promise<Killed> {
  const { userId } = call;
  const aborted = new Set<string>();
  const below = new Set<string>();
  for (let round = 0; round < maxRounds; round++) {
    const family = await listDescendants(app.runs, userId, child.run.session.key);
    const deepestFirst = family.toSorted((a, b) => b.depth - a.depth).map((member) => member.child);
    const fresh: string[] = [];
    for (const each of [...deepestFirst, child]) {
      for (const run of await openRuns(each, app)) {
        if (aborted.has(run.runId)) continue;
        await app.runs.abort(run.runId, "killed by subagents");
        aborted.add(run.runId);
        fresh.push(run.runId);
        if (each !== child) below.add(each.run.session.uid);
      }
    }
    if (fresh.length === 0) break;
    await untilAllEnded(fresh, call, app);
  }
  return { runs: aborted.size, descendants: below.size };
}

async function openRuns({ run }: Child, app: App): Promise<readonly Run[]> {
  const { uid, userId } = run.session;
  const open = await app.runs.list({ sessionUid: uid, states: openStates, limit: 1000 }, userId);
  return open.filter(isOpenRun);
}

async function untilAllEnded(runIds: readonly string[], { signal }: Caller, app: App): Promise<void> {
  const patience = AbortSignal.timeout(roundTimeoutMs);
  const both = AbortSignal.any([signal, patience]);
  const waits = await Promise.allSettled(runIds.map((runId) => app.watcher.untilEnded(runId, both)));
  signal.throwIfAborted();
  const failed = waits.find((wait) => wait.status === "rejected");
  if (failed !== undefined && !patience.aborted) throw failed.reason;
}

type Steered =
  | { readonly runId: string; readonly mode: "steered" | "queued"; readonly text?: string }
  /** The child has ended. */
  | { readonly gone: true };

/**
 * Sends a message to a child during its turn. The child receives it at its next step. A child that is sleeping, has not
 * started or is an ACP agent receives it as a separate turn. The message belongs to the caller's root and adds a hop.
 */
export async function steerChild(
  { run }: Child,
  text: string,
  call: Caller & { readonly session: SessionRecord },
  app: App,
): Promise<Steered> {
  const session = await app.store.work.locate(call.userId, run.session.key);
  const ofAcp = isAcpKey(run.session.key);
  if (session === null) return findEarlierSteer(call, app, ofAcp);
  const open = await app.runs.list({ sessionUid: session.uid, states: openStates }, call.userId);
  if (open.length === 0) return findEarlierSteer(call, app, ofAcp);
  const { run: said } = await app.runs.accept(steerRequest(session, text, call));
  const hasTurn = open.some(({ state }) => state === "running" || state === "waiting");
  return describeSteer(said.runId, hasTurn, ofAcp);
}

function describeSteer(runId: string, hasTurn: boolean, ofAcp: boolean): Steered {
  if (!ofAcp) return { runId, mode: hasTurn ? "steered" : "queued" };
  return {
    runId,
    mode: "queued",
    text: "The message will be delivered after its current turn, because ACP agents accept no input during a turn.",
  };
}

/** Returns the original result if the call is retried, regardless of what the child has done since. */
async function findEarlierSteer({ userId, callId }: Caller, { runs }: App, ofAcp: boolean): Promise<Steered> {
  const known = await runs.get(hashedId("run", userId ?? "", `steer:${callId}`), userId);
  if (known === null) return { gone: true };
  return describeSteer(known.runId, known.mergedInto !== null, ofAcp);
}

function steerRequest(
  session: AcceptRequest["session"],
  text: string,
  call: Caller & { readonly session: SessionRecord },
): AcceptRequest {
  const root = call.run === null ? null : { ...call.run.root, hops: call.run.root.hops + 1 };
  const provenance = {
    kind: "inter_session",
    sourceSessionKey: call.session.key,
    sourceTool: "subagents",
    ...root,
    deliveryId: call.callId,
  };
  return {
    session,
    kind: "send",
    message: { role: "user", content: text, provenance },
    idempotencyKey: `steer:${call.callId}`,
    queueMode: "steer",
    options: { origin: "inter_session", ...present({ callEntryId: call.entryId }) },
    provenance,
    ...(root === null ? {} : { root }),
  };
}
