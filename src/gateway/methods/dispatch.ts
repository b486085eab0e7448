import { SkeinError } from "../../core/errors.ts";
import { checkParams } from "../../protocol/check-params.ts";
import type { FieldProblem, WireError } from "../../protocol/errors.ts";
import { invalidRequest, wireErrorOf } from "../../protocol/errors.ts";
import type { Method } from "../../protocol/method.ts";
import type { MethodName, Params, Result } from "../../protocol/method-table.ts";
import { findMethod } from "../../protocol/method-table.ts";
import type { App } from "../../sessions/app.ts";
import type { Skein } from "../../sessions/skein.ts";
import type { Denied, Principal } from "../auth/principal.ts";
import { isAdmin, isLocal, mayCall, scopeFor } from "../auth/principal.ts";
import type { Tokens } from "../auth/tokens.ts";
import type { LiveTexts } from "../events/live-runs.ts";
import { HeavyCalls, heavyQueueOf } from "./heavy-calls.ts";

/** The context of a method call: everything that is not in its params. */
export interface Call {
  readonly principal: Principal;
  /**
   * The user whose sessions the call applies to, as determined by the token. `null` is the unnamed user. A user named
   * in the params has already been checked.
   */
  readonly userId: string | null;
  /** `true` if the caller has the `admin` scope and is therefore allowed to see secrets and file paths. */
  readonly isAdmin: boolean;
  /** `true` if the caller runs on this machine and has access to the folder. */
  readonly isLocal: boolean;
  /** Aborted when the client stops waiting. */
  readonly signal: AbortSignal;
}

/** The params have been validated. Errors are sent as `wireErrorOf` encodes them. */
export type Handler<M extends MethodName> = (params: Params<M>, call: Call) => Promise<Result<M>>;

/** Methods that work only on a socket have no handler here. The socket handles them itself. */
export type HandledMethod = Exclude<MethodName, "sessions.subscribe" | "sessions.unsubscribe">;
export type HandlersOf<M extends HandledMethod> = { readonly [Name in M]: Handler<Name> };
export type Handlers = HandlersOf<HandledMethod>;

/** The dependencies of methods: an open Skein instance and its folder's tokens. */
export interface MethodApp extends App {
  readonly skein: Skein;
  readonly tokens: Tokens;
  /** Reloads the whole configuration, including new commands. Absent if no gateway is running. */
  readonly reload?: () => Promise<Result<"config.reload">>;
  /** The text that runs in this process are streaming. Absent if no gateway is running. */
  readonly live?: LiveTexts;
}

/** A folder in which this process executes no runs. Its tools are those that the configuration defines. */
export type FolderApp = Pick<
  MethodApp,
  | "store"
  | "runs"
  | "files"
  | "config"
  | "loaded"
  | "reload"
  | "live"
  | "clock"
  | "newId"
  | "redactor"
  | "agents"
  | "models"
  | "embeddings"
  | "hooks"
  | "turns"
> & { readonly tools: Pick<App["tools"], "offered"> };

/**
 * The only way to call a handler. Checks that the method exists, that the principal is allowed to call it, and that the
 * params are valid.
 */

export type Answer =
  | { readonly ok: true; readonly payload: unknown }
  | { readonly ok: false; readonly error: WireError };

export interface DispatchOptions {
  /** Called for every request because a reload replaces the handlers. */
  handlers(): Handlers;
  /** Keeps the handlers' dependencies open until the lease is disposed of at the end of the call. */
  acquire?(): Disposable;
  /** Called after a handler has returned or thrown. */
  onEnd?(method: string, outcome: "ok" | "error"): void;
  /** The names of the configured MCP servers. */
  mcpServers?(): readonly string[];
  newErrorId(): string;
  /** Reports an unexpected error with the error ID that was sent to the client. */
  report(errorId: string, method: string, error: unknown): void;
}

/** A validated call. */
export interface Checked {
  readonly params: Readonly<Record<string, unknown>>;
  readonly call: Omit<Call, "signal">;
}

/** An error that is sent unchanged. */
export class RequestRefusedError extends Error {
  override readonly name = "Refused";
  readonly wire: WireError;
  /** `true` to close the connection because even discarding the rest of the request would cost too much. */
  readonly endsConnection: boolean;

  constructor(wire: WireError, { endsConnection = false } = {}) {
    super(wire.message);
    this.wire = wire;
    this.endsConnection = endsConnection;
  }
}

/** Returns the method if it exists and the principal is allowed to call it. Params are checked later. */
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

/** Validates the params and resolves the user of the call. */
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
  const { userId } = scope;
  return { params, call: { principal, userId, isAdmin: isAdmin(principal), isLocal: isLocal(principal) } };
}

export class Dispatch {
  readonly #options: DispatchOptions;
  /** Limits heavy calls per token, across all transports. */
  readonly heavy = new HeavyCalls();

  constructor(options: DispatchOptions) {
    this.#options = options;
  }

  /** Calls a method. Rejects with the handler's error, or with the reason why the call was not allowed. */
  async invoke(principal: Principal, name: string, given: unknown, signal: AbortSignal): Promise<unknown> {
    const method = methodFor(name, principal);
    if (method.isSocketOnly === true) throw new RequestRefusedError(invalidRequest([onlyOnSockets(name)]));
    const { params, call } = checkCall(method, given, principal);
    const line = heavyQueueOf(name, params, this.#options.mcpServers?.());
    return this.heavy.run(principal.tokenId, line, signal, () =>
      this.#handle(name as HandledMethod, params, { ...call, signal }),
    );
  }

  async #handle(name: HandledMethod, params: Checked["params"], call: Call): Promise<unknown> {
    const { handlers, acquire, onEnd } = this.#options;
    using _lease = acquire?.();
    let outcome: "ok" | "error" = "error";
    try {
      const handler = handlers()[name] as Handler<HandledMethod>;
      const result = await handler(params as Parameters<typeof handler>[0], call);
      outcome = "ok";
      return result;
    } finally {
      onEnd?.(name, outcome);
    }
  }

  /** Like `invoke`, but returns the outcome as a value. */
  async answer(principal: Principal, name: string, given: unknown, signal: AbortSignal): Promise<Answer> {
    try {
      return { ok: true, payload: await this.invoke(principal, name, given, signal) };
    } catch (error) {
      return { ok: false, error: this.refusal(principal, name, error, signal) };
    }
  }

  /**
   * Returns an error in the form that the client is allowed to see. `principal` is `null` for an unknown client. An
   * abort is reported as the signal's reason.
   */
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
  return { path: "", problem: `works only on a socket; call ${name} at /ws` };
}

/** Params that name one user, or a session that belongs to one user. */
const besideAllUsers = ["userId", "sessionKey", "spawnedBy", "key", "keys"] as const;

function notWithAllUsers(path: string): FieldProblem {
  return { path, problem: "names a single user; omit it or allUsers" };
}

function onlyForAdmins(fields: readonly string[]): WireError {
  const message = `Only a token with the "admin" scope can set ${fields.join(", ")}. Omit it, or use such a token.`;
  return { code: "forbidden", message };
}

function forbidden({ problem, advice }: Denied): SkeinError {
  return new SkeinError("forbidden", { problem, advice });
}
