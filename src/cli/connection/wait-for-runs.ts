import type { SkeinEvent } from "../../core/events.ts";
import { stringifyJson } from "../../core/json.ts";
import { present } from "../../core/present.ts";
import { cutText } from "../../core/text.ts";
import type { RunRowPayload, SentPayload } from "../../protocol/runs.ts";
import { openStates } from "../../runs/states.ts";
import { printNotice } from "../output/answer.ts";
import { describeApp } from "../output/format.ts";
import { commandLine } from "../output/invocation.ts";
import { errorCodeOf } from "./resolve-session.ts";
import { RunEvents } from "./watch-run.ts";
import type { OpenSkeinCalls } from "./with-skein-calls.ts";

type Open = Pick<OpenSkeinCalls, "calls" | "user" | "config" | "store">;

/** The maximum duration of one call. A longer wait takes several calls. */
const waitMs = 60_000;
const lookMs = 1000;
const mostRuns = 500;

/** Waits until a run has ended, no matter how long that takes. */
export async function waitUntilEnded(open: Open, runId: string, signal?: AbortSignal): Promise<SentPayload> {
  for (;;) {
    const sent = await waitForRun(open, runId, waitMs, signal);
    signal?.throwIfAborted();
    if (sent.finished) return sent;
  }
}

/** Returns the current state of a run, or `null` if the token may send but not read. */
export async function getRun({ calls, user }: Open, runId: string): Promise<RunRowPayload | null> {
  try {
    return (await calls.call("runs.get", { runId, ...user })).run;
  } catch (error) {
    if (errorCodeOf(error) === "forbidden") return null;
    throw error;
  }
}

/**
 * Waits until a request and everything that it started have ended, or until all remaining runs are waiting for agents
 * or apps that this process does not have. Returns those agents and apps.
 */
export async function waitUntilSettled(
  open: Open,
  rootId: string,
  signal?: AbortSignal,
): Promise<readonly string[]> {
  for (;;) {
    signal?.throwIfAborted();
    const left = await openRuns(open, rootId);
    const busy = left.find(({ state }) => state === "running" || state === "waiting");
    const next = busy ?? left[0];
    if (next === undefined) return [];
    if (busy === undefined) {
      const agents = await findMissingOwners(open, left);
      if (agents.length > 0) return agents;
    }
    await waitForRun(open, next.runId, lookMs, signal).catch((error: unknown) => {
      // The run was purged with its session, so the next list does not contain it.
      if (errorCodeOf(error) !== "not_found") throw error;
    });
  }
}

/**
 * Like `waitUntilSettled`, but also waits for every other request whose runs this process has claimed. Without a
 * gateway, a leftover run in the session is executed first, and no other process would finish what that run started.
 */
export async function waitUntilClaimedSettled(
  open: OpenSkeinCalls,
  rootId: string,
): Promise<readonly string[]> {
  const [seen, left] = [new Set<string>(), new Set<string>()];
  for (let next: string | undefined = rootId; next !== undefined; ) {
    seen.add(next);
    for (const owner of await waitUntilSettled(open, next)) left.add(owner);
    next = open.claimedRequests().find((each) => !seen.has(each));
  }
  return [...left];
}

/** Aborts every unfinished run that belongs to a request. */
export async function abortAll(open: Open, rootId: string): Promise<void> {
  const left = await openRuns(open, rootId);
  await Promise.all(left.map(({ runId }) => open.calls.call("runs.abort", { runId, ...open.user })));
}

export function leftForText(owners: readonly string[]): string {
  return `left for ${owners.join(", ")}, because this process cannot execute it`;
}

async function openRuns({ calls, user }: Open, rootId: string): Promise<readonly RunRowPayload[]> {
  const query = { rootId, states: [...openStates], limit: mostRuns, ...user };
  return (await calls.call("runs.list", query)).runs;
}

/**
 * Returns the agents and apps that all queued runs are waiting for, or none if this process can execute one of the
 * runs.
 */
async function findMissingOwners(open: Open, left: readonly RunRowPayload[]): Promise<readonly string[]> {
  const queued = left.filter(({ state }) => state === "queued");
  if (queued.length === 0) return [];
  const known = await findAvailableAgents(open);
  const isOfHere = ({ agentId, waitsForApp }: RunRowPayload) =>
    known.has(agentId) && waitsForApp === undefined;
  if (queued.some(isOfHere)) return [];
  const names = queued.map((run) =>
    run.waitsForApp === undefined ? `a process that has ${run.agentId}` : describeApp(run),
  );
  return [...new Set(names)];
}

/** Without a gateway, returns the agents in this process's own configuration. */
async function findAvailableAgents({ calls, user, config, store }: Open): Promise<ReadonlySet<string>> {
  if (store !== null) return new Set(Object.keys({ ...config.agents, ...config.acp.agents }));
  const { agents, acp } = await calls.call("agents.list", user);
  return new Set([...agents.filter(({ configured }) => configured).map(({ id }) => id), ...acp]);
}

async function waitForRun(
  { calls, user }: Open,
  runId: string,
  timeoutMs: number,
  signal: AbortSignal | undefined,
): Promise<SentPayload> {
  return calls.call("agent.wait", { runId, timeoutMs, ...user }, present({ signal }));
}

const longestCall = 200;

/**
 * Prints a notice whenever a run starts to wait for an approval, with the command that resolves it. Prints nothing if
 * the token is not allowed to read runs.
 */
export async function announceApprovals(open: OpenSkeinCalls): Promise<Pick<RunEvents, "close">> {
  const since = open.terminal.now();
  const announce = async (event: SkeinEvent) => {
    if (event.type !== "approval.requested" || event.runId === undefined) return;
    const { sessionKey, toolName, arguments: args, approvalId } = event;
    const run = await getRun(open, event.runId);
    if (run === null || run.createdAt < since) return;
    const call = cutText(`${toolName} ${stringifyJson(args)}`, longestCall);
    printNotice(open, `${sessionKey} requests approval: ${call}`);
    printNotice(open, `to answer: ${commandLine(open, "runs", "approve", approvalId)} (or deny)`);
  };
  const stream = open.calls.events({ events: ["approval.requested"], ...open.user });
  // A missed notice is not a failure, because `runs ls` shows the approval.
  const events = new RunEvents(
    stream,
    open.user.userId,
    (event) => void announce(event).catch(() => undefined),
  );
  await events.ready;
  return events;
}
