import { SkeinError } from "../core/errors.ts";
import { present } from "../core/present.ts";
import { isReservedUserId } from "../core/space.ts";
import type { Params, Result } from "../protocol/method-table.ts";
import type { Approval, ApprovalQuery, Run, RunQuery, RunState, RunStore } from "../runs/contract.ts";
import { withPlainUsers } from "../store/spaces.ts";
import type { EditingApp } from "./accept.ts";
import { editMessage } from "./accept.ts";
import type { App, ServiceCalls, UserCalls } from "./app.ts";
import type { RuntimeContext } from "./runtime-context.ts";
import { noSuchRun } from "./turn-handle.ts";

/**
 * Returns the methods for a user. Callers cannot name a user in another store or namespace, so the methods for such a
 * user are bound to that user.
 */
export async function callsFor(
  calls: ServiceCalls,
  userId: string | null,
): Promise<{ calls: UserCalls; userId?: string }> {
  if (userId !== null && isReservedUserId(userId)) return { calls: await calls(userId) };
  return { calls: await calls(), ...present({ userId }) };
}

/** A query for sessions. By default, it covers Skein's own store and the user's default namespace. */
type InSpace<Query> = Query & Pick<RuntimeContext, "store" | "namespace">;

/**
 * Lists, finds, reads and creates sessions. Parameters, results and checks are the same as for the gateway methods with
 * these names. If `userId` is absent, the sessions are the unnamed user's.
 *
 * @example
 * ```ts
 * import type { SessionService } from "skein";
 * async function lastReplies(sessions: SessionService, userId: string) {
 *   const { sessions: rows } = await sessions.list({ userId, limit: 5 });
 *   return Promise.all(rows.map(({ key }) => sessions.history({ sessionKey: key, userId, limit: 1 })));
 * }
 * ```
 */
export class SessionService {
  readonly #app: Pick<App, "calls" | "spaces">;

  constructor(app: Pick<App, "calls" | "spaces">) {
    this.#app = app;
  }

  /** Lists sessions, most recently active first. */
  async list(query: InSpace<Params<"sessions.list">> = {}): Promise<Result<"sessions.list">> {
    const { calls, params } = await this.#at(query);
    return calls.call("sessions.list", params);
  }

  /** Returns a session's metadata. Throws `not_found`. */
  async get(session: InSpace<Params<"sessions.get">>): Promise<Result<"sessions.get">> {
    const { calls, params } = await this.#at(session);
    return calls.call("sessions.get", params);
  }

  /** Returns a page of a session's active branch, oldest message first. Throws `not_found`. */
  async history(query: InSpace<Params<"chat.history">>): Promise<Result<"chat.history">> {
    const { calls, params } = await this.#at(query);
    return calls.call("chat.history", params);
  }

  /** Searches the full text of sessions, best match first. */
  async search(query: InSpace<Params<"sessions.search">>): Promise<Result<"sessions.search">> {
    const { calls, params } = await this.#at(query);
    return calls.call("sessions.search", params);
  }

  /** Creates an empty session. Throws `conflict` if its key or ID is taken. */
  async create(session: InSpace<Params<"sessions.create">> = {}): Promise<Result<"sessions.create">> {
    const { calls, params } = await this.#at(session);
    return calls.call("sessions.create", params);
  }

  async #at<Query extends { readonly userId?: string }>({
    store,
    namespace,
    ...query
  }: InSpace<Query>): Promise<{ calls: UserCalls; params: Query }> {
    const userId = this.#app.spaces.enter({ ...present({ userId: query.userId, store, namespace }) });
    const { calls, ...named } = await callsFor(this.#app.calls, userId);
    const { userId: _given, ...rest } = query;
    return { calls, params: { ...rest, ...named } as unknown as Query };
  }
}

/**
 * Reads and controls runs. Every method takes an optional `userId`. If it is set, other users' runs are not found.
 *
 * @example
 * ```ts
 * import type { RunService } from "skein";
 * async function abortQueued(runs: RunService) {
 *   for (const { runId } of await runs.list({ states: ["queued"] })) await runs.abort(runId);
 * }
 * ```
 */
export class RunService {
  readonly #app: EditingApp & Pick<App, "closed">;

  constructor(app: EditingApp & Pick<App, "closed">) {
    this.#app = app;
  }

  get #runs(): RunStore {
    this.#app.closed.throwIfAborted();
    return this.#app.runs;
  }

  /** Lists runs, newest first. */
  async list(query: RunQuery = {}, userId?: string | null): Promise<readonly Run[]> {
    return withPlainUsers(await this.#runs.list(query, userId));
  }

  /** Returns a run, or `null` if there is none. */
  async get(runId: string, userId?: string | null): Promise<Run | null> {
    return withPlainUsers(await this.#runs.get(runId, userId));
  }

  /** Aborts a run and returns its resulting state. Throws `not_found`. */
  async abort(runId: string, userId?: string | null, reason?: string): Promise<RunState> {
    const state = (await this.get(runId, userId)) === null ? null : await this.#runs.abort(runId, reason);
    if (state === null) throw noSuchRun(runId);
    return state;
  }

  /**
   * Replaces the text of a queued user message and keeps its images. The old text never runs. Throws `not_found`, or
   * `conflict` for a run that has started or whose text is not `expectedText`.
   */
  async edit(runId: string, text: string, userId?: string | null, expectedText?: string): Promise<Run> {
    const known = (await this.get(runId, userId)) === null ? null : await this.#runs.get(runId);
    const edited = known === null ? null : await editMessage(this.#app, known, text, expectedText);
    if (edited === null) throw noSuchRun(runId);
    return withPlainUsers(edited);
  }

  /**
   * Requeues the input of a run that was lost, failed, timed out or was aborted. Returns the new run. Retrying twice
   * returns the same run. Throws `not_found`, or `conflict` for a run that is open or succeeded.
   */
  async retry(runId: string, userId?: string | null): Promise<Run> {
    const known = await this.get(runId, userId);
    const accepted = known === null ? null : await this.#runs.retry(runId);
    if (accepted === null) throw noSuchRun(runId);
    return withPlainUsers(accepted.run);
  }

  /**
   * Lets any process that has the agent claim a queued or sleeping run that is waiting for an app. Later input to its
   * session is no longer reserved for that app either. A run that has already been released is returned unchanged.
   * Throws `not_found`, or `conflict` if the run is running in the app or has ended.
   */
  async release(runId: string, userId?: string | null): Promise<Run> {
    const known = await this.get(runId, userId);
    const released = known === null ? null : await this.#runs.releaseApp(runId);
    if (released === null) throw noSuchRun(runId);
    return withPlainUsers(released);
  }
}

/**
 * Lists tool calls that are waiting for approval, and answers them.
 *
 * @example
 * ```ts
 * import type { ApprovalService } from "skein";
 * async function approveReads(approvals: ApprovalService) {
 *   for (const { approvalId, toolName } of await approvals.list())
 *     if (toolName === "read") await approvals.resolve(approvalId, "approved", "policy");
 * }
 * ```
 */
export class ApprovalService {
  readonly #app: Pick<App, "runs" | "closed">;

  constructor(app: Pick<App, "runs" | "closed">) {
    this.#app = app;
  }

  get #runs(): RunStore {
    this.#app.closed.throwIfAborted();
    return this.#app.runs;
  }

  /**
   * Lists pending approvals, oldest first. `open: false` also lists answered approvals. `limit` returns only the newest
   * approvals.
   */
  async list(
    { open = true, ...query }: ApprovalQuery = {},
    userId?: string | null,
  ): Promise<readonly Approval[]> {
    const which = { ...query, ...present({ open: open ? true : null }) };
    return withPlainUsers(await this.#runs.approvals(which, userId));
  }

  /**
   * Answers an approval. The first answer is final, and later calls return it. If the approval is denied, the model
   * sees the `note`. Throws `not_found`, or `conflict` if the approval has expired.
   */
  async resolve(
    approvalId: string,
    answer: "approved" | "denied",
    by: string | null = null,
    userId?: string | null,
    note: string | null = null,
  ): Promise<Approval> {
    const known = await this.#runs.approval(approvalId);
    const isTheirs = known !== null && (userId === undefined || known.session.userId === userId);
    const resolved = isTheirs ? await this.#runs.resolveApproval(approvalId, answer, by, note) : null;
    if (resolved?.answer === "expired") throw expiredApproval(approvalId);
    if (resolved !== null) return withPlainUsers(resolved);
    throw new SkeinError("not_found", {
      what: "Approval",
      name: approvalId,
      advice: "List the pending approvals with skein runs ls",
    });
  }
}

function expiredApproval(approvalId: string): SkeinError {
  return new SkeinError("conflict", {
    problem: `The approval ${approvalId} has expired, and the run continued without it`,
    advice: "List the pending approvals with skein runs ls",
  });
}
