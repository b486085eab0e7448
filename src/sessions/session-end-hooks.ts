import { SkeinError } from "../core/errors.ts";
import { present } from "../core/present.ts";
import type { Scope, SessionRecord, SessionStore, Store } from "../store/contract.ts";
import type { FenceOption, WorkingSessions } from "../store/work.ts";
import type { HookRegistry } from "./hooks.ts";
import type { RuntimeContext } from "./runtime-context.ts";
import { contextOfSession } from "./runtime-context.ts";

interface ResetRequest extends FenceOption {
  /** One sentence, passed to the hooks. */
  readonly why: string;
  readonly sessionId?: string;
  /** The calling run's context. Defaults to the session's. */
  readonly ctx?: RuntimeContext;
}

type ResetResult = Awaited<ReturnType<SessionStore["reset"]>>;

/**
 * Calls `before_reset` before every reset and `session_end` after every reset and removal, regardless of the caller.
 */
export class SessionEndHooks<S extends Store & { readonly sessions: WorkingSessions }> {
  /** The store whose resets and removals trigger the hooks. */
  readonly store: S;
  readonly #plain: S;
  readonly #hooks: HookRegistry;
  readonly #report: (error: unknown) => void;

  constructor(store: S, hooks: HookRegistry, report: (error: unknown) => void) {
    this.#plain = store;
    this.#hooks = hooks;
    this.#report = report;
    const hooked: Pick<WorkingSessions, "reset" | "remove"> = {
      reset: (scope, sessionId, options) => this.#resetOrThrow(scope, sessionId, options),
      remove: (scope, sessionId, options) => this.#remove(scope, sessionId, options),
    };
    const sessions = new Proxy(store.sessions, {
      get: (target, name) => Reflect.get(Object.hasOwn(hooked, name) ? hooked : target, name),
    });
    this.store = { ...store, sessions, purgeUser: (userId: string) => this.#purgeUser(userId) };
  }

  /** Moves the key to a new session unless a hook cancels the reset. */
  async reset(
    scope: Scope,
    session: SessionRecord,
    { why, ctx = contextOfSession(this.store, session), ...options }: ResetRequest,
  ): Promise<ResetResult | { readonly cancel: string }> {
    const { key, sessionId } = session;
    const { cancel } = await this.#hooks.ask("before_reset", { key, sessionId, why, ctx });
    if (cancel !== null) return { cancel };
    const done = await this.#plain.sessions.reset(scope, sessionId, options);
    await this.#notifyEnd(session, "reset", ctx);
    return done;
  }

  async #resetOrThrow(
    scope: Scope,
    sessionId: string,
    options: Omit<ResetRequest, "why"> = {},
  ): Promise<ResetResult> {
    const { sessions } = this.#plain;
    const session = await findById(sessions, scope, sessionId);
    // The store throws the appropriate error.
    if (session === null) return sessions.reset(scope, sessionId, options);
    const done = await this.reset(scope, session, { ...options, why: "The reset was requested." });
    if (!("cancel" in done)) return done;
    throw new SkeinError("forbidden", {
      problem: `A before_reset hook prevented the reset of ${session.key}: ${done.cancel.replace(/\.$/, "")}`,
      advice: "Change the hook, or continue in this session",
    });
  }

  async #remove(scope: Scope, sessionId: string, options?: { ifUpdatedAt?: number }): Promise<boolean> {
    const { sessions } = this.#plain;
    const session = this.#hooks.has("session_end") ? await findById(sessions, scope, sessionId) : null;
    const isRemoved = await sessions.remove(scope, sessionId, options);
    if (isRemoved && session !== null) await this.#notifyEnd(session, "removed");
    return isRemoved;
  }

  async #purgeUser(userId: string): Promise<{ readonly sessions: number }> {
    const ended = this.#hooks.has("session_end") ? await this.#sessionsOf(userId) : [];
    const purged = await this.#plain.purgeUser(userId);
    for (const session of ended) await this.#notifyEnd(session, "removed");
    return purged;
  }

  async #sessionsOf(userId: string): Promise<SessionRecord[]> {
    const found: SessionRecord[] = [];
    for (const archived of [false, true]) {
      for (let cursor: string | null | undefined; cursor !== null; ) {
        const query = { archived, includeGlobal: true, includeUnknown: true, limit: 1000 };
        const page = await this.#plain.sessions.list({ userId }, { ...query, ...present({ cursor }) });
        found.push(...page.sessions);
        cursor = page.nextCursor;
      }
    }
    return found;
  }

  /** Notifies the hooks. An error from a hook does not undo the reset or removal. */
  async #notifyEnd(
    session: SessionRecord,
    reason: "reset" | "removed",
    ctx = contextOfSession(this.store, session),
  ): Promise<void> {
    const { key, sessionId } = session;
    await this.#hooks.notify("session_end", { key, sessionId, reason, ctx }).catch(this.#report);
  }
}

/** Unlike `get`, also returns a session whose log is missing. */
async function findById(
  sessions: Pick<SessionStore, "find">,
  scope: Scope,
  sessionId: string,
): Promise<SessionRecord | null> {
  const [session] = await sessions.find(scope, { by: "sessionId", sessionId });
  return session ?? null;
}
