import { present } from "../core/present.ts";
import { cutText, escapeToLine } from "../core/text.ts";
import type { Run } from "../runs/contract.ts";
import { scopeOfSession } from "../store/rules.ts";
import { agentSessionIdOf } from "./acp-link.ts";
import type { App } from "./app.ts";
import { receiptByNotes } from "./attachments.ts";
import { awaitChild } from "./reply-wait.ts";
import type { Caller } from "./session-access.ts";
import type { SpawnNames, SpawnRequest } from "./spawn-request.ts";

const longestEntry = 100;

export type SpawnResult = Readonly<Record<string, unknown>>;

export const pushed =
  "The result is pushed to you: it arrives in this session as a message when the sub-agent ends. Do not poll. To wait for it, end your turn with sessions_yield.";
export const late =
  "The wait ended before the result was available. The result will arrive in this session as a message.";
export const circle =
  "Waiting would cause a deadlock, so this call does not wait. The result will arrive in this session as a message.";

/** Returns the result of a spawn, for the first call and every retry. */
export async function spawnResult(
  app: App,
  caller: Caller,
  request: SpawnRequest,
  { spawnId, runId }: SpawnNames,
  run: Run,
): Promise<SpawnResult> {
  const { sequel } = run.options;
  const spawned = {
    status: "ok",
    runId,
    childSessionKey: `subagent:${spawnId}`,
    ...present({ label: sequel?.type === "child" ? sequel.label : undefined }),
    mode: request.mode,
    ...present({ threadId: run.options.deliverTo?.threadId }),
    ...(request.attachments.length === 0 ? {} : { attachments: receiptByNotes(request.attachments) }),
  };
  const ungranted = await ungrantedNote(app, run, request);
  const noted = (note: string) => ({ note: ungranted === null ? note : `${note} ${ungranted}` });
  if (request.background) return { ...spawned, ...noted(pushed) };
  const waited = await awaitChild(app, caller, runId);
  if (waited === "late") return { ...spawned, ...noted(late) };
  if (waited === "circle") return { ...spawned, code: "wait_cycle", ...noted(circle) };
  return { ...spawned, ...present({ note: ungranted }), ...endOf(waited) };
}

/** Returns the result for a child that the caller waited for. */
export function endOf({ state, outcome, usage }: Run): SpawnResult {
  return {
    result: outcome?.reply ?? "",
    outcome: outcome?.state ?? state,
    ...present({ error: outcome?.error }),
    usage,
  };
}

/** Names the requested tools that are not available to the child. */
async function ungrantedNote(
  { agents, store, tools: offered }: App,
  { session }: Run,
  { tools }: SpawnRequest,
): Promise<string | null> {
  if (tools === undefined || tools.length === 0) return null;
  const entries = tools.map((entry) => String(entry).trim());
  const agent = agents.find(session.agentId);
  const child = await store.sessions.get(scopeOfSession(session), session.sessionId);
  if (agent === null || child === null) return null;
  const { unknown, denied } = await offered.ungranted(agent, child, entries);
  const quoted = (names: readonly string[]) =>
    names.map((name) => `"${escapeToLine(cutText(name, longestEntry))}"`).join(", ");
  const sentences = [
    ...(unknown.length === 0
      ? []
      : [`Ignored, because agent ${session.agentId} has no such tools: ${quoted(unknown)}.`]),
    ...(denied.length === 0 ? [] : [`Not granted, because the child may not use them: ${quoted(denied)}.`]),
  ];
  return sentences.length === 0 ? null : sentences.join(" ");
}

const endedAlready = "It has already ended. This is its result, and no message will follow.";
const notReported = "The agent has not reported its session ID yet.";

/**
 * Returns the result of a spawn over ACP once the agent has reported its session ID, or once the run has ended if the
 * caller waits for it. If the run ends before the agent reports its ID, the run's outcome is the result and nothing is
 * announced.
 */
export async function acpResult(
  app: App,
  caller: Caller,
  { background, mode }: SpawnRequest,
  { key, runId }: SpawnNames,
  run: Run,
): Promise<SpawnResult> {
  const linked = () => app.acp.untilAgentSessionId(run, caller.signal);
  const waited = await awaitChild(app, caller, runId, background ? linked : undefined);
  const agentSessionId = await agentSessionIdOf(app.store, run.session);
  const { sequel, deliverTo } = run.options;
  const spawned = {
    status: "ok",
    runId,
    ...present({ threadId: deliverTo?.threadId, agentSessionId }),
    childSessionKey: key,
    ...present({ label: sequel?.type === "child" ? sequel.label : undefined }),
    mode,
  };
  if (waited === "circle") return { ...spawned, code: "wait_cycle", note: circle };
  if (waited === "late") return { ...spawned, note: lateNote(background, agentSessionId) };
  const { state, outcome } = waited;
  if (agentSessionId === null && outcome?.state !== "ok") {
    const { code = outcome?.state ?? state, error = `The agent's run ended in state ${state}.` } =
      outcome ?? {};
    return { status: "error", runId, childSessionKey: key, outcome: outcome?.state ?? state, code, error };
  }
  return { ...spawned, ...(background ? { note: endedAlready } : {}), ...endOf(waited) };
}

function lateNote(background: boolean, agentSessionId: string | null): string {
  if (!background) return late;
  return agentSessionId === null ? `${notReported} ${pushed}` : pushed;
}
