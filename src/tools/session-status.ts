import type { TurnModel } from "../agents/contract.ts";
import { present } from "../core/present.ts";
import * as s from "../core/schema.ts";
import { outputs } from "../protocol/tool-results.ts";
import type { App } from "../sessions/app.ts";
import type { Caller, Denied } from "../sessions/session-access.ts";
import { ActiveTools } from "../sessions/with-state.ts";
import type { ListedSession, SessionRecord } from "../store/contract.ts";
import type { SessionTool, ToolResult } from "./contract.ts";
import { refusalResult } from "./reading/scope.ts";
import { ToolInputError } from "./tool-input-error.ts";
import {
  channelFor,
  childrenSeen,
  listed,
  modelFor,
  openRun,
  speakingFrom,
} from "./watching/session-facts.ts";
import { agentToAgentShown, percentOf, transcriptShown, visibilityShown } from "./watching/status-policy.ts";

const parameters = s.closed({
  sessionKey: s.optional(
    s.string({ description: "Key, label or id of a session. Default: the current one." }),
  ),
});

/** How a session stands: its model, tools, rules, context, cost and work. Reads only; what is not known is absent. */
export const sessionStatus: SessionTool = {
  name: "session_status",
  label: "Session Status",
  description: "Show the status of a session: model, tools, policy, context, usage, runs and children.",
  parameters,
  output: outputs.sessionStatus,
  isReadOnly: true,
  execute: async (args, call, app) => {
    const found = await target(args.sessionKey, call, app);
    if ("code" in found) return { result: refusalResult(found) };
    const session = await listed(found, app);
    if (session !== null) return { result: await statusOf(session, call, app) };
    const error = "The session is gone: it was removed while its status was read. Ask for sessions_list.";
    return { result: { status: "error", code: "not_found", error } };
  },
};

async function target(reference: unknown, call: Caller, app: App): Promise<SessionRecord | Denied> {
  if (typeof reference === "string") {
    const found = await app.access.find(call, reference, "status");
    return "session" in found ? found.session : found.refusal;
  }
  if (call.session === null) throw new ToolInputError("sessionKey required", "sessionKey");
  return call.session;
}

async function statusOf(session: ListedSession, call: Caller, app: App): Promise<ToolResult> {
  const { uid, agentId, sessionId, meta, digest, createdAt, updatedAt } = session;
  const asIt = speakingFrom(session, call, app);
  const model = modelFor(session, app);
  const known = model === null ? null : describeModel(app, model);
  const work = (await app.runs.work([uid])).get(uid);
  const rules = app.access.policyFor(asIt);
  const size = { tokens: digest.contextTokens, window: known?.info.contextWindow ?? null };
  return present({
    sessionKey: app.access.display(call, session.key),
    sessionId,
    agentId,
    channel: channelFor(session),
    model,
    thinkingLevel: meta.thinkingLevel ?? digest.thinkingLevel,
    tools: await toolsOf(asIt, call, app),
    policy: present({
      visibility: visibilityShown(rules),
      agentToAgent: agentToAgentShown(rules, call.sandboxed),
      sandboxed: rules.sandboxed,
      transcript: known === null ? null : transcriptShown(known.policy),
    }),
    context: present({ ...size, percent: percentOf(size), compactions: digest.compactions }),
    usage: { totalTokens: digest.totalTokens },
    cost: digest.costUsd,
    run: await openRun(work?.runId ?? null, app),
    queue: work?.queued ?? 0,
    children: await childrenSeen(session, call, app),
    createdAt,
    updatedAt,
  });
}

/** Of another session, those of its agent; of an agent that nobody has defined none are known. */
async function toolsOf(asIt: Caller, call: Caller, app: App): Promise<readonly string[] | null> {
  if (asIt !== call && app.agents.find(asIt.agentId) === null) return null;
  return offeredNames(app, asIt);
}

/** What is known of a model by its name; `null`: nothing. */
function describeModel(
  { models }: Pick<App, "models">,
  name: string,
): Pick<TurnModel, "policy" | "info"> | null {
  try {
    return models.turnModel(name);
  } catch {
    return null; // no such model
  }
}

/** The names of the tools that a session's agent would be offered now. */
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
