import * as chat from "./chat.ts";
import * as directory from "./directory.ts";
import type { Method, Scope } from "./method.ts";
import * as runs from "./runs.ts";
import * as changing from "./sessions-changing.ts";
import * as forGood from "./sessions-for-good.ts";
import * as reading from "./sessions-reading.ts";
import * as subscriptions from "./subscriptions.ts";
import * as upkeep from "./upkeep.ts";

/** Every method there is, by scope: HTTP, WebSocket, OpenAPI and the client's types follow from this one table. */
export const methodTable = {
  "sessions.list": reading.sessionsList,
  "sessions.get": reading.sessionsGet,
  "sessions.resolve": reading.sessionsResolve,
  "sessions.preview": reading.sessionsPreview,
  "sessions.tree": reading.sessionsTree,
  "sessions.entries": reading.sessionsEntries,
  "sessions.usage": reading.sessionsUsage,
  "sessions.search": reading.sessionsSearch,
  "sessions.context": reading.sessionsContext,
  "sessions.export": reading.sessionsExport,
  "sessions.trash": reading.sessionsTrash,
  "sessions.subscribe": subscriptions.sessionsSubscribe,
  "sessions.unsubscribe": subscriptions.sessionsUnsubscribe,
  "chat.history": chat.chatHistory,
  "blobs.get": directory.blobsGet,
  "runs.list": runs.runsList,
  "runs.get": runs.runsGet,
  "outbox.list": runs.outboxList,
  "approvals.list": runs.approvalsList,
  "agents.list": directory.agentsList,
  "models.list": directory.modelsList,
  "access.explain": directory.accessExplain,

  "sessions.create": changing.sessionsCreate,
  "sessions.send": changing.sessionsSend,
  "sessions.fork": changing.sessionsFork,
  "sessions.branch": changing.sessionsBranch,
  "sessions.rename": changing.sessionsRename,
  "sessions.archive": changing.sessionsArchive,
  "chat.send": chat.chatSend,
  "chat.abort": chat.chatAbort,
  agent: chat.agent,
  "agent.wait": chat.agentWait,
  "approvals.resolve": runs.approvalsResolve,
  "outbox.retry": runs.outboxRetry,
  "outbox.drop": runs.outboxDrop,
  "runs.abort": runs.runsAbort,
  "runs.release": runs.runsRelease,
  "runs.retry": runs.runsRetry,

  "tools.invoke": directory.toolsInvoke,

  "sessions.patch": forGood.sessionsPatch,
  "sessions.reset": forGood.sessionsReset,
  "sessions.delete": forGood.sessionsDelete,
  "sessions.restore": forGood.sessionsRestore,
  "sessions.compact": forGood.sessionsCompact,
  "sessions.import": forGood.sessionsImport,
  "sessions.redact": forGood.sessionsRedact,
  "chat.inject": chat.chatInject,
  "tokens.create": upkeep.tokensCreate,
  "tokens.list": upkeep.tokensList,
  "tokens.revoke": upkeep.tokensRevoke,
  "maintenance.run": upkeep.maintenanceRun,
  "config.get": upkeep.configGet,
  "config.reload": upkeep.configReload,
  "users.list": upkeep.usersList,
  "users.remove": upkeep.usersRemove,
} as const satisfies Readonly<Record<string, Method>>;

/** The name of a method. */
export type MethodName = keyof typeof methodTable;

/** What a method takes. */
export type Params<M extends MethodName> = TypesByMethod[M]["params"];

/** What a method gives. */
export type Result<M extends MethodName> = TypesByMethod[M]["result"];

type TypesOf<M> = M extends Method<infer P, infer R> ? { readonly params: P; readonly result: R } : never;
type TypesByMethod = { readonly [M in MethodName]: TypesOf<(typeof methodTable)[M]> };

export const methodNames = Object.keys(methodTable) as MethodName[];

/** The method of this name; `null`: there is none. */
export function findMethod(name: string): Method | null {
  return Object.hasOwn(methodTable, name) ? methodTable[name as MethodName] : null;
}

/** Whether a call of this name does little but wait. Neither needs to be valid. */
export function isLongCall(name: string, params: unknown): boolean {
  const given = typeof params === "object" && params !== null ? params : {};
  return findMethod(name)?.isLong?.(given as Readonly<Record<string, unknown>>) ?? false;
}

/** The methods that a token may call. */
export function methodsFor(token: {
  readonly scopes: readonly Scope[];
  readonly allUsers: boolean;
}): MethodName[] {
  return methodNames.filter((name) => {
    const { scope, needsAll }: Method = methodTable[name];
    return token.scopes.includes(scope) && (needsAll !== true || token.allUsers);
  });
}
