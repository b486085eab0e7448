import { accessActions } from "../../access/visibility/access-policy.ts";
import { acpNames } from "../../config/acp-agents.ts";
import { present } from "../../core/present.ts";
import type { AccessPayload } from "../../protocol/directory.ts";
import type { SessionRecord } from "../../store/contract.ts";
import { maskFor, removePaths } from "../auth/mask.ts";
import type { Call, HandlersOf, MethodApp } from "./dispatch.ts";
import { payloadsFor } from "./runs.ts";
import { contextOf, findSession, lookUpSession, resolveTarget } from "./session-lookup.ts";

type Method = "agents.list" | "models.list" | "access.explain" | "access.matrix" | "tools.invoke";

/** Methods for agents, models, tools and access between sessions. */
export function directoryHandlers(app: MethodApp): HandlersOf<Method> {
  const { skein } = app;
  return {
    "agents.list": async (_, { userId }) => {
      const agents = await skein.agents(userId);
      return { count: agents.length, agents, acp: acpNames(app.config) };
    },
    "models.list": async () => {
      const models = await skein.models();
      return { count: models.length, models };
    },
    "access.explain": async ({ asker, target, action, agentId: reader }, call) => {
      const session = await findSession(app, call, { key: asker, agentId: reader });
      const { key, sessionId, agentId, userId } = session;
      const explanations: AccessPayload["explanations"] = [];
      for (const each of action === undefined ? accessActions : [action]) {
        const { decision, steps } = await skein.explainAccess(contextOf(session), target, each);
        explanations.push({ action: each, decision, steps: [...steps] });
      }
      const sandboxed = skein.isSandboxed(session);
      return { asker: { key, sessionId, agentId, sandboxed, ...present({ userId }) }, target, explanations };
    },
    "access.matrix": async ({ keys, action, agentId: reader }, call) => {
      const sessions = await sessionsOf(app, call, keys, reader);
      const mask = maskFor(app, call);
      const { readAccessMatrix } = await import("../../sessions/access-matrix.ts");
      const decided = await readAccessMatrix(app, sessions, action === undefined ? accessActions : [action]);
      const shown = sessions.map(({ key, sessionId, agentId, meta: { label } }) => ({
        key,
        sessionId,
        agentId,
        ...present({ label: label === undefined ? null : mask.text(label) }),
      }));
      return { sessions: shown, ...decided };
    },
    "tools.invoke": async ({ sessionKey, agentId, name, arguments: args = {}, idempotencyKey }, call) => {
      const to =
        sessionKey === undefined
          ? present({ userId: call.userId, agentId })
          : (await resolveTarget(app, call, { sessionKey, agentId })).context;
      const how = { ...to, signal: call.signal, isOperator: call.isAdmin, ...present({ idempotencyKey }) };
      const { result, isError, rootId } = await skein.invokeTool(name, args, how);
      const seen = call.isAdmin ? result : payloadsFor(app, call).value(removePaths(result, isError));
      return { name, isError, result: seen, ...present({ rootId }) };
    },
  };
}

const mostByDefault = 24;

/** Returns the named sessions without duplicates, or the most recently active ones if none are named. */
async function sessionsOf(
  app: MethodApp,
  call: Call,
  keys: readonly string[] | undefined,
  agentId: string | undefined,
): Promise<readonly SessionRecord[]> {
  if (keys === undefined) {
    const scope = present({ userId: call.userId });
    return (await app.store.sessions.list(scope, { limit: mostByDefault })).sessions;
  }
  const found = await Promise.all(keys.map((key) => lookUpSession(app, call, { key, agentId })));
  const byUid = new Map(found.flatMap((session) => (session === null ? [] : [[session.uid, session]])));
  return [...byUid.values()];
}
