import type { AccessPolicy } from "../access/visibility/access-policy.ts";
import type { TurnModel } from "../agents/contract.ts";
import { present } from "../core/present.ts";
import * as s from "../core/schema.ts";
import { outputs } from "../protocol/tool-results.ts";
import type { App } from "../sessions/app.ts";
import { listedSession, listRow, modelOf } from "../sessions/list.ts";
import type { Asker, Caller, Denied } from "../sessions/session-access.ts";
import { ActiveTools } from "../sessions/with-state.ts";
import type { ListedSession, SessionRecord } from "../store/contract.ts";
import type { TranscriptPolicy } from "../transcript/contract.ts";
import type { SessionTool, ToolResult } from "./session-tool.ts";
import { ToolInputError } from "./session-tool.ts";
import { toRefusalResult } from "./visible-scope.ts";

const parameters = s.closed({
  sessionKey: s.optional(
    s.string({ description: "The key, label or ID of a session. Defaults to the current session." }),
  ),
});

/** Shows a session's model, tools, rules, context, cost and runs. Unknown values are absent. */
export const sessionStatus: SessionTool = {
  name: "session_status",
  label: "Session Status",
  description: "Show a session's status: model, tools, policy, context, usage, runs and children.",
  parameters,
  output: outputs.sessionStatus,
  isReadOnly: true,
  execute: async (args, call, app) => {
    const found = await resolveTarget(args.sessionKey, call, app);
    if ("code" in found) return { result: toRefusalResult(found) };
    const session = await listedSession(app.store.sessions, found);
    if (session !== null) return { result: await statusOf(session, call, app) };
    const error =
      "The session was removed while its status was being read. Call sessions_list to see the current sessions.";
    return { result: { status: "error", code: "not_found", error } };
  },
};

async function resolveTarget(reference: unknown, call: Caller, app: App): Promise<SessionRecord | Denied> {
  if (typeof reference === "string") {
    const found = await app.access.find(call, reference, "status");
    return "session" in found ? found.session : found.refusal;
  }
  if (call.session === null) throw new ToolInputError("sessionKey required", "sessionKey");
  return call.session;
}

async function statusOf(session: ListedSession, call: Caller, app: App): Promise<ToolResult> {
  const { uid, agentId, sessionId, meta, digest, createdAt, updatedAt } = session;
  const viewpoint = asCaller(session, call, app);
  const model = modelOfSession(session, app);
  const known = model === null ? null : describeModel(app, model);
  const work = (await app.runs.work([uid])).get(uid);
  const rules = app.access.policyFor(viewpoint);
  const size = { tokens: digest.contextTokens, window: known?.info.contextWindow ?? null };
  return present({
    sessionKey: app.access.display(call, session.key),
    sessionId,
    agentId,
    channel: channelOfSession(session),
    model,
    thinkingLevel: meta.thinkingLevel ?? digest.thinkingLevel,
    tools: await listTools(viewpoint, call, app),
    policy: present({
      visibility: describeVisibility(rules),
      agentToAgent: describeAgentToAgent(rules, call.sandboxed),
      sandboxed: rules.sandboxed,
      transcript: known === null ? null : describeTranscript(known.policy),
    }),
    context: present({ ...size, percent: percentOf(size), compactions: digest.compactions }),
    usage: { totalTokens: digest.totalTokens },
    cost: digest.costUsd,
    run: await describeOpenRun(work?.runId ?? null, app),
    queue: work?.queued ?? 0,
    children: await listVisibleChildren(session, call, app),
    createdAt,
    updatedAt,
  });
}

/** Lists the tools that a session is offered. Returns `null` for another session whose agent is not defined. */
async function listTools(viewpoint: Caller, call: Caller, app: App): Promise<readonly string[] | null> {
  if (viewpoint !== call && app.agents.find(viewpoint.agentId) === null) return null;
  return offeredNames(app, viewpoint);
}

/** Returns `null` for an unknown model. */
function describeModel(
  { models }: Pick<App, "models">,
  name: string,
): Pick<TurnModel, "policy" | "info"> | null {
  try {
    return models.turnModel(name);
  } catch {
    return null; // The model does not exist.
  }
}

/** Returns the names of the tools that a session's agent would be offered now. */
async function offeredNames(
  { agents, tools, store }: Pick<App, "agents" | "tools" | "store">,
  { session, run }: Caller,
): Promise<string[]> {
  const agent = session === null ? null : agents.find(session.agentId);
  if (session === null || agent === null) return [];
  const active = await ActiveTools.read(store.state, session);
  const offered = await tools.of(agent, run, session);
  return offered.filter((tool) => active.offers(tool, agent.onDemand)).map(({ name }) => name);
}

/** Returns a caller for the session, so that the rules and tools shown are those that apply in it. */
function asCaller(session: SessionRecord, call: Caller, app: App): Caller {
  if (session.uid === call.session?.uid) return call;
  const { userId, agentId, meta } = session;
  const sandboxed = meta.sandboxed ?? app.agents.find(agentId)?.sandboxed ?? false;
  return { ...call, userId, agentId, session, sandboxed, run: null, entryId: null };
}

/** Returns the session's model, or its agent's if the session has none. */
function modelOfSession(session: ListedSession, app: App): string | null {
  return modelOf(session) ?? app.agents.find(session.agentId)?.model ?? null;
}

function channelOfSession(session: ListedSession): string {
  return listRow(session).channel;
}

/** Returns the open or next run and what it is waiting for, or `null` if none is open. */
async function describeOpenRun(runId: string | null, app: App): Promise<object | null> {
  const run = runId === null ? null : await app.runs.get(runId);
  if (run === null) return null;
  const waits = await app.runs.waits(run.runId);
  const waitsFor = waits === null || waits.runIds.length === 0 ? null : [...waits.runIds];
  return present({ runId: run.runId, state: run.state, startedAt: run.startedAt, waitsFor });
}

/** The maximum number of children to list. The newest ones are listed. */
const maxChildren = 50;

/** Lists the newest children that the caller is allowed to see, with their status. */
async function listVisibleChildren(session: SessionRecord, asker: Asker, app: App): Promise<object[]> {
  const all = await app.runs.children(session.userId, session.key);
  const newest = all.slice(0, maxChildren);
  const seen = await Promise.all(
    newest.map(async (child) => {
      const found = await app.access.find(asker, child.run.session.key, "status");
      return "session" in found ? [{ child, session: found.session }] : [];
    }),
  );
  const work = await app.runs.work(seen.flat().map(({ session: { uid } }) => uid));
  return seen.flat().map(({ child: { run, label }, session: { uid, key } }) => {
    const sessionKey = app.access.display(asker, key);
    return present({ sessionKey, label, runId: run.runId, status: work.get(uid)?.status ?? "idle" });
  });
}

/** Returns a single value if all actions share it. */
function describeVisibility({ visibility }: AccessPolicy): unknown {
  const words = new Set(Object.values(visibility));
  return words.size === 1 ? visibility.list : visibility;
}

/** Describes the agent pairs. They name other agents and are therefore hidden from sandboxed sessions. */
function describeAgentToAgent({ agentToAgent, sandboxed }: AccessPolicy, isForSandboxed: boolean): unknown {
  const { enabled, allow } = agentToAgent;
  if (sandboxed || isForSandboxed) return { enabled: false };
  return { enabled, ...(allow.length === 0 ? {} : { allow: allow.map(({ text }) => text) }) };
}

/** Describes the model's API and its main requirements. */
function describeTranscript(policy: TranscriptPolicy): unknown {
  const { provider, api, toolCallIds, turns, thinking, images } = policy;
  return { provider, api, toolCallIds, turns, thinking, images: images !== null };
}

interface ContextSize {
  readonly tokens: number | null;
  readonly window: number | null;
}

/** Returns the used part of the window as a percentage, or `null` if unknown. */
function percentOf({ tokens, window }: ContextSize): number | null {
  if (tokens === null || window === null || window <= 0) return null;
  return Math.round((tokens / window) * 100);
}
