import type { Redactor } from "../../access/redaction/redactor.ts";
import type { LoadedConfig } from "../../config/load.ts";
import type { ModelSettings } from "../../config/model-settings.ts";
import type { Config } from "../../config/sections/all.ts";
import type { Clock } from "../../core/clock.ts";
import type { SessionContext } from "../../core/context.ts";
import { SkeinError } from "../../core/errors.ts";
import type { IdSource } from "../../core/ids.ts";
import type { SessionTree } from "../../core/tree.ts";
import type { FileBoundary } from "../../file-access/file-boundary.ts";
import { checkParams } from "../../protocol/check-params.ts";
import type { FieldProblem, WireError } from "../../protocol/errors.ts";
import { invalidRequest, wireErrorOf } from "../../protocol/errors.ts";
import type { Method } from "../../protocol/method.ts";
import type { MethodName, Params, Result } from "../../protocol/methods/method-table.ts";
import { findMethod } from "../../protocol/methods/method-table.ts";
import type { ContextPayload } from "../../protocol/session-views.ts";
import type { Run, RunStore } from "../../runs/contract.ts";
import type { ShowRequestOptions } from "../../sessions/show-request.ts";
import type { Skein } from "../../sessions/skein.ts";
import type { EveryUser } from "../../sessions/users.ts";
import type { XrayOptions } from "../../sessions/xray.ts";
import type { SessionRecord, Store } from "../../store/contract.ts";
import type { ModelRef } from "../../transcript/parse-model.ts";
import type { Denied, Principal } from "../auth/principal.ts";
import { isAdmin, mayCall, scopeFor } from "../auth/principal.ts";
import type { Tokens } from "../auth/tokens.ts";
import { HeavyCalls, heavyQueueOf } from "./heavy-calls.ts";

/** On whose behalf a method is called: everything that is not in its params. */
export interface Call {
  readonly principal: Principal;
  /** Whose sessions it is about, as the token says; `null`: the unnamed user's. Params that name a user are checked by then. */
  readonly userId: string | null;
  /** Has the scope `admin`: sees secrets, and paths of this machine. */
  readonly isAdmin: boolean;
  /** Comes when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
}

/** Params are checked, with their defaults. What is thrown is told as `wireErrorOf` says. */
export type Handler<M extends MethodName> = (params: Params<M>, call: Call) => Promise<Result<M>>;

/** Methods that mean something on a socket alone have no handler: the socket answers them. */
export type HandledMethod = Exclude<MethodName, "sessions.subscribe" | "sessions.unsubscribe">;
export type HandlersOf<M extends HandledMethod> = { readonly [Name in M]: Handler<Name> };
export type Handlers = HandlersOf<HandledMethod>;

/** What lies beside the store of a folder. */
export interface FolderApp {
  readonly store: Store;
  readonly files: FileBoundary;
  readonly config: Config;
  /** With where each value comes from. */
  readonly loaded: LoadedConfig;
  /** Reloads the whole configuration, new commands included; left out: no gateway runs here. */
  readonly reload?: () => Promise<Result<"config.reload">>;
  /** For which agent `main`, short keys and labels are read where a call names none. */
  readonly defaultAgentId: string;
  readonly clock: Clock;
  readonly newId: IdSource;
  /** Only an admin is told of paths. */
  readonly root: string | null;
  /** Whose sessions there are; `null` is the unnamed user. */
  users(): readonly (string | null)[];
  /** Lists over every user; `null`: the store has none. */
  readonly everyUser: EveryUser | null;
  /** The working sets of these as paths, by uid; one that was removed a moment ago has none. */
  transcriptPaths(sessions: readonly SessionRecord[]): ReadonlyMap<string, string>;
  /** Everything that was ever said in a session, its damage too, read in slices, until nobody waits for it. */
  readTree(session: SessionRecord, signal?: AbortSignal): Promise<SessionTree>;
  /** The same text for as long as no list can have changed; `null`: it is not known. */
  changeMark(): Promise<string | null>;
  /** The same text for as long as no session has come, gone or got another name, and no run has moved; `null`: it is not known. */
  workMark(): string | null;
  /** The same text for as long as nobody has written to a session; `null`: it is not known. */
  logMark(session: Pick<SessionRecord, "uid">): string | null;
  /** Whether bytes of what was redacted or purged are still in a database, because another process is reading it. */
  isErasePending(): boolean;
  /** The session of a user that has a key now; `null`: none. Nothing of its log is read. */
  sessionAt(userId: string | null, key: string): Pick<SessionRecord, "uid" | "key" | "sessionId"> | null;
  /** What goes on in sessions. */
  readonly runs: Pick<RunStore, "work" | "countByUser"> | null;
  /** Accepted input that is not yet conversation. */
  pending(sessionUid: string): Promise<readonly Run[]>;
  /** The blobs that the entries of a session name. */
  blobs(session: SessionRecord, tree: SessionTree): Promise<(sha256: string) => Uint8Array | null>;
  readonly redactor: Redactor;
  /** The request of a session's model; `null`: its agent is not known here, or is an ACP agent. */
  showRequest(session: SessionRecord, options: ShowRequestOptions): Promise<ContextPayload | null>;
  /** What a model would be sent of a context whose agent is not known. */
  contextForModel(
    context: SessionContext,
    model: ModelRef,
    known: Omit<XrayOptions, "contextWindow" | "vision" | "overrides" | "tools"> & {
      readonly settings?: ModelSettings;
      readonly wire?: boolean;
    },
  ): Promise<ContextPayload>;
}

/** A folder whose sessions answer. */
export interface SkeinApp extends FolderApp {
  readonly skein: Skein;
}

/** With tokens, which a store that is not on a disk of its own has none of. */
export interface TokenApp {
  readonly tokens: Tokens;
  readonly clock: Clock;
}

/** The one way to a handler, whatever a call came by: is there such a method, may they, do the params fit, for whom is it. */

export type Answer =
  | { readonly ok: true; readonly payload: unknown }
  | { readonly ok: false; readonly error: WireError };

export interface DispatchOptions {
  /** Asked for each call, because they are others after a reload. */
  handlers(): Handlers;
  /** Every call that is in order goes through it. Left out: nothing is done about it. */
  during?<T>(method: string, call: () => Promise<T>): Promise<T>;
  /** The MCP servers of the configuration, by name. */
  mcpServers?(): readonly string[];
  newErrorId(): string;
  /** Told of what nobody foresaw, under the id that the client has. */
  report(errorId: string, method: string, error: unknown): void;
}

/** A call that was found in order. */
export interface Checked {
  readonly params: Readonly<Record<string, unknown>>;
  readonly call: Omit<Call, "signal">;
}

/** A refusal that is told as it is. */
export class RequestRefusedError extends Error {
  override readonly name = "Refused";
  readonly wire: WireError;
  /** Nothing more is read from the connection: what is left of the request would cost too much, even to drop it. */
  readonly endsConnection: boolean;

  constructor(wire: WireError, { endsConnection = false } = {}) {
    super(wire.message);
    this.wire = wire;
    this.endsConnection = endsConnection;
  }
}

/** The method of this name, if this principal may call it; nothing of the params is looked at before. */
export function methodFor(name: string, principal: Principal): Method {
  const method = findMethod(name);
  if (method === null) {
    throw new SkeinError("not_found", {
      what: "Method",
      name,
      advice: "hello and /openapi.json list the methods",
    });
  }
  const may = mayCall(principal, method);
  if (!may.allowed) throw forbidden(may);
  return method;
}

/** Params as the method takes them, and whom the call is about. */
export function checkCall(method: Method, given: unknown, principal: Principal): Checked {
  const checked = checkParams(method.params, given);
  if ("problems" in checked) throw new RequestRefusedError(invalidRequest(checked.problems));
  const params = checked.params as Readonly<Record<string, unknown>>;
  const reserved = isAdmin(principal)
    ? []
    : (method.adminOnly ?? []).filter((field) => params[field] !== undefined);
  if (reserved.length > 0) throw new RequestRefusedError(onlyForAdmins(reserved));
  if (params.allUsers === true && method.adminOnly?.includes("allUsers") === true) {
    const may = mayCall(principal, { scope: method.scope, needsAll: true });
    if (!may.allowed) throw forbidden(may);
    const besides = besideAllUsers.filter((field) => params[field] !== undefined);
    if (besides.length > 0) throw new RequestRefusedError(invalidRequest(besides.map(notWithAllUsers)));
  }
  const named = method.needsAll === true ? undefined : (params.userId as string | undefined);
  const scope = scopeFor(principal, named);
  if (!scope.allowed) throw forbidden(scope);
  return { params, call: { principal, userId: scope.userId, isAdmin: isAdmin(principal) } };
}

export class Dispatch {
  readonly #options: DispatchOptions;
  /** Of every token, whatever its calls came by. */
  readonly heavy = new HeavyCalls();

  constructor(options: DispatchOptions) {
    this.#options = options;
  }

  /** Calls a method. Rejects with what the handler threw, or with a refusal. */
  async invoke(principal: Principal, name: string, given: unknown, signal: AbortSignal): Promise<unknown> {
    const method = methodFor(name, principal);
    if (method.isSocketOnly === true) throw new RequestRefusedError(invalidRequest([onlyOnSockets(name)]));
    const { params, call } = checkCall(method, given, principal);
    const { handlers, during = (_, act) => act(), mcpServers } = this.#options;
    const line = heavyQueueOf(name, params, mcpServers?.());
    return this.heavy.run(principal.tokenId, line, signal, () =>
      during(name, async () => {
        const handler = handlers()[name as HandledMethod] as Handler<HandledMethod>;
        return handler(params as Parameters<typeof handler>[0], { ...call, signal });
      }),
    );
  }

  /** The same with every outcome as a value. */
  async answer(principal: Principal, name: string, given: unknown, signal: AbortSignal): Promise<Answer> {
    try {
      return { ok: true, payload: await this.invoke(principal, name, given, signal) };
    } catch (error) {
      return { ok: false, error: this.refusal(principal, name, error, signal) };
    }
  }

  /** What was thrown, as this client may see it; `null`: nobody knows who it is. What a signal ended is told as it says. */
  refusal(principal: Principal | null, name: string, error: unknown, signal?: AbortSignal): WireError {
    if (error instanceof RequestRefusedError) return error.wire;
    const told = signal?.aborted === true && isAbort(error) ? signal.reason : error;
    const seesAll = principal !== null && isAdmin(principal);
    return wireErrorOf(told, { isAdmin: seesAll, newErrorId: () => this.#report(name, told) });
  }

  #report(name: string, error: unknown): string {
    const errorId = this.#options.newErrorId();
    this.#options.report(errorId, name, error);
    return errorId;
  }
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError";
}

function onlyOnSockets(name: string): FieldProblem {
  return { path: "", problem: `means something on a socket alone; ${name} is called at /ws` };
}

/** Params that name one user, or a session, which is one user's. */
const besideAllUsers = ["userId", "sessionKey", "spawnedBy"] as const;

function notWithAllUsers(path: string): FieldProblem {
  return { path, problem: "is of one user; leave it out, or leave allUsers out" };
}

function onlyForAdmins(fields: readonly string[]): WireError {
  const message = `Only a token with the scope "admin" may give ${fields.join(", ")}. Leave it out, or use such a token.`;
  return { code: "forbidden", message };
}

function forbidden({ problem, advice }: Denied): SkeinError {
  return new SkeinError("forbidden", { problem, advice });
}
