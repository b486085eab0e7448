import { present } from "../core/present.ts";
import * as s from "../core/schema.ts";
import { outputs } from "../protocol/tool-results.ts";
import type { Caller } from "../sessions/between.ts";
import type { Denied } from "../sessions/session-access.ts";
import type { ListedSession, SessionRecord } from "../store/contract.ts";
import type { SessionTool, ToolDeps, ToolResult } from "./contract.ts";
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
  execute: async (args, call, deps) => {
    const found = await target(args.sessionKey, call, deps);
    if ("code" in found) return { result: refusalResult(found) };
    const session = await listed(found, deps);
    if (session !== null) return { result: await statusOf(session, call, deps) };
    const error = "The session is gone: it was removed while its status was read. Ask for sessions_list.";
    return { result: { status: "error", code: "not_found", error } };
  },
};

async function target(reference: unknown, call: Caller, deps: ToolDeps): Promise<SessionRecord | Denied> {
  if (typeof reference === "string") {
    const found = await deps.access.find(call, reference, "status");
    return "session" in found ? found.session : found.refusal;
  }
  if (call.session === null) throw new ToolInputError("sessionKey required", "sessionKey");
  return call.session;
}

async function statusOf(session: ListedSession, call: Caller, deps: ToolDeps): Promise<ToolResult> {
  const { uid, agentId, sessionId, meta, digest, createdAt, updatedAt } = session;
  const asIt = speakingFrom(session, call, deps);
  const model = modelFor(session, deps);
  const known = model === null ? null : (deps.describeModel?.(model) ?? null);
  const work = (await deps.runs.work([uid])).get(uid);
  const rules = deps.access.policyFor(asIt);
  const size = { tokens: digest.contextTokens, window: known?.info.contextWindow ?? null };
  return present({
    sessionKey: deps.access.display(call, session.key),
    sessionId,
    agentId,
    channel: channelFor(session),
    model,
    thinkingLevel: meta.thinkingLevel ?? digest.thinkingLevel,
    tools: await toolsOf(asIt, call, deps),
    policy: present({
      visibility: visibilityShown(rules),
      agentToAgent: agentToAgentShown(rules, call.sandboxed),
      sandboxed: rules.sandboxed,
      transcript: known === null ? null : transcriptShown(known.policy),
    }),
    context: present({ ...size, percent: percentOf(size), compactions: digest.compactions }),
    usage: { totalTokens: digest.totalTokens },
    cost: digest.costUsd,
    run: await openRun(work?.runId ?? null, deps),
    queue: work?.queued ?? 0,
    children: await childrenSeen(session, call, deps),
    createdAt,
    updatedAt,
  });
}

/** Of another session, those of its agent; of an agent that nobody has defined none are known. */
async function toolsOf(asIt: Caller, call: Caller, deps: ToolDeps): Promise<readonly string[] | null> {
  if (asIt !== call && deps.agents.find(asIt.agentId) === null) return null;
  return [...(await deps.offered(asIt))];
}
