import { SkeinError } from "../../core/errors.ts";
import { checkParams } from "../../protocol/check-params.ts";
import type { FieldProblem, WireError } from "../../protocol/errors.ts";
import { invalidRequest, wireErrorOf } from "../../protocol/errors.ts";
import type { Method } from "../../protocol/methods/method.ts";
import { findMethod } from "../../protocol/methods/method-table.ts";
import type { Denied, Principal } from "../auth/principal.ts";
import { isAdmin, mayCall, scopeFor } from "../auth/principal.ts";
import { HeavyCalls, heavyLine } from "../limits/heavy-calls.ts";
import type { Call, HandledMethod, Handler, Handlers } from "./contract.ts";

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
export class Refused extends Error {
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
  if ("problems" in checked) throw new Refused(invalidRequest(checked.problems));
  const params = checked.params as Readonly<Record<string, unknown>>;
  const reserved = isAdmin(principal)
    ? []
    : (method.adminOnly ?? []).filter((field) => params[field] !== undefined);
  if (reserved.length > 0) throw new Refused(onlyForAdmins(reserved));
  if (params.allUsers === true && method.adminOnly?.includes("allUsers") === true) {
    const may = mayCall(principal, { scope: method.scope, needsAll: true });
    if (!may.allowed) throw forbidden(may);
    const besides = besideAllUsers.filter((field) => params[field] !== undefined);
    if (besides.length > 0) throw new Refused(invalidRequest(besides.map(notWithAllUsers)));
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
    if (method.isSocketOnly === true) throw new Refused(invalidRequest([onlyOnSockets(name)]));
    const { params, call } = checkCall(method, given, principal);
    const { handlers, during = (_, act) => act(), mcpServers } = this.#options;
    const line = heavyLine(name, params, mcpServers?.());
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
    if (error instanceof Refused) return error.wire;
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
