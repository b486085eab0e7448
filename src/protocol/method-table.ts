import * as chat from "./chat.ts";
import * as directory from "./directory.ts";
import * as events from "./events.ts";
import * as family from "./family.ts";
import * as interchange from "./interchange.ts";
import type { Method, Scope } from "./method.ts";
import * as outbox from "./outbox.ts";
import * as runDetails from "./run-details.ts";
import * as runs from "./runs.ts";
import * as schedules from "./schedules.ts";
import * as changes from "./session-changes.ts";
import * as details from "./session-details.ts";
import * as list from "./session-list.ts";
import * as views from "./session-views.ts";
import * as tokens from "./tokens.ts";
import * as upkeep from "./upkeep.ts";
import * as users from "./users.ts";

/**
 * All methods, by scope. The HTTP, WebSocket and OpenAPI interfaces and the client's types are derived from this table.
 */
export const methodTable = {
  "sessions.list": list.sessionsList,
  "sessions.get": details.sessionsGet,
  "sessions.resolve": details.sessionsResolve,
  "sessions.preview": details.sessionsPreview,
  "sessions.tree": views.sessionsTree,
  "sessions.entries": details.sessionsEntries,
  "sessions.usage": details.sessionsUsage,
  "sessions.search": list.sessionsSearch,
  "sessions.context": views.sessionsContext,
  "sessions.family": family.sessionsFamily,
  "sessions.export": interchange.sessionsExport,
  "sessions.trash": list.sessionsTrash,
  "sessions.subscribe": events.sessionsSubscribe,
  "sessions.unsubscribe": events.sessionsUnsubscribe,
  "chat.history": chat.chatHistory,
  "chat.live": chat.chatLive,
  "blobs.get": details.blobsGet,
  "runs.list": runs.runsList,
  "runs.get": runs.runsGet,
  "runs.steps": runDetails.runsSteps,
  "runs.budget": runDetails.runsBudget,
  "lanes.list": runDetails.lanesList,
  "outbox.list": outbox.outboxList,
  "schedules.list": schedules.schedulesList,
  "approvals.list": runs.approvalsList,
  "agents.list": directory.agentsList,
  "models.list": directory.modelsList,
  "access.explain": directory.accessExplain,
  "access.matrix": directory.accessMatrix,
  "links.create": tokens.linksCreate,

  "sessions.create": changes.sessionsCreate,
  "sessions.send": changes.sessionsSend,
  "sessions.fork": changes.sessionsFork,
  "sessions.branch": changes.sessionsBranch,
  "sessions.label": changes.sessionsLabel,
  "sessions.rename": changes.sessionsRename,
  "sessions.archive": changes.sessionsArchive,
  "chat.send": chat.chatSend,
  "chat.abort": chat.chatAbort,
  agent: chat.agent,
  "agent.wait": chat.agentWait,
  "approvals.resolve": runs.approvalsResolve,
  "outbox.retry": outbox.outboxRetry,
  "outbox.drop": outbox.outboxDrop,
  "runs.edit": runDetails.runsEdit,
  "runs.abort": runs.runsAbort,
  "runs.release": runs.runsRelease,
  "runs.retry": runs.runsRetry,
  "schedules.run": schedules.schedulesRun,
  "schedules.pause": schedules.schedulesPause,
  "schedules.resume": schedules.schedulesResume,

  "tools.invoke": directory.toolsInvoke,

  "sessions.patch": changes.sessionsPatch,
  "sessions.reset": changes.sessionsReset,
  "sessions.delete": changes.sessionsDelete,
  "sessions.restore": changes.sessionsRestore,
  "sessions.compact": changes.sessionsCompact,
  "sessions.import": interchange.sessionsImport,
  "sessions.redact": changes.sessionsRedact,
  "chat.inject": chat.chatInject,
  "tokens.create": tokens.tokensCreate,
  "tokens.list": tokens.tokensList,
  "tokens.revoke": tokens.tokensRevoke,
  "maintenance.run": upkeep.maintenanceRun,
  "config.get": upkeep.configGet,
  "config.reload": upkeep.configReload,
  "users.list": users.usersList,
  "tokens.revokeOwn": tokens.tokensRevokeOwn,
  "users.remove": users.usersRemove,
} as const satisfies Readonly<Record<string, Method>>;

/** The name of a gateway method, such as `chat.send`. */
export type MethodName = keyof typeof methodTable;

/** The params that a method accepts. */
export type Params<M extends MethodName> = TypesByMethod[M]["params"];

/** The result that a method returns. */
export type Result<M extends MethodName> = TypesByMethod[M]["result"];

type TypesOf<M> = M extends Method<infer P, infer R> ? { readonly params: P; readonly result: R } : never;
type TypesByMethod = { readonly [M in MethodName]: TypesOf<(typeof methodTable)[M]> };

export const methodNames = Object.keys(methodTable) as MethodName[];

/** Returns the method with this name, or `null`. */
export function findMethod(name: string): Method | null {
  return Object.hasOwn(methodTable, name) ? methodTable[name as MethodName] : null;
}

/** Whether a call to this method spends most of its time waiting. Neither the name nor the params need to be valid. */
export function isLongCall(name: string, params: unknown): boolean {
  const given = typeof params === "object" && params !== null ? params : {};
  return findMethod(name)?.isLong?.(given as Readonly<Record<string, unknown>>) ?? false;
}

/** Returns the methods that a token can call. */
export function methodsFor(token: {
  readonly scopes: readonly Scope[];
  readonly allUsers: boolean;
}): MethodName[] {
  return methodNames.filter((name) => {
    const { scope, needsAll }: Method = methodTable[name];
    return token.scopes.includes(scope) && (needsAll !== true || token.allUsers);
  });
}
