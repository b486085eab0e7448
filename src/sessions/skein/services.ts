import { SkeinError } from "../../core/errors.ts";
import { present } from "../../core/present.ts";
import type { Calls } from "../../protocol/methods/calls.ts";
import type { Params, Result } from "../../protocol/methods/method-table.ts";
import type { Approval, ApprovalQuery, Run, RunQuery, RunState, RunStore } from "../../runs/contract.ts";
import { noSuchRun } from "./run-error.ts";

/** The methods of a gateway that the library calls in its own process. */
export type ServiceMethod =
  | "sessions.list"
  | "sessions.get"
  | "sessions.search"
  | "sessions.create"
  | "sessions.branch"
  | "sessions.fork"
  | "sessions.rename"
  | "sessions.reset"
  | "chat.history";

/** Loads the handlers with the first call, and throws once the Skein is closed. */
export type ServiceCalls = () => Promise<Calls<ServiceMethod>>;

/**
 * Lists, finds, reads and creates sessions. The parameters and results are those of the gateway's methods of the same
 * names, and so are the checks. `userId` selects whose sessions are meant; without it, those of the unnamed user.
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
  readonly #calls: ServiceCalls;

  constructor(calls: ServiceCalls) {
    this.#calls = calls;
  }

  /** Lists sessions, most recently active first. */
  async list(query: Params<"sessions.list"> = {}): Promise<Result<"sessions.list">> {
    return (await this.#calls()).call("sessions.list", query);
  }

  /** Returns what is known of one session besides its entries. Throws `not_found`. */
  async get(session: Params<"sessions.get">): Promise<Result<"sessions.get">> {
    return (await this.#calls()).call("sessions.get", session);
  }

  /** Returns a page of a session's active branch, oldest message first. Throws `not_found`. */
  async history(query: Params<"chat.history">): Promise<Result<"chat.history">> {
    return (await this.#calls()).call("chat.history", query);
  }

  /** Searches the full text of sessions, best match first. */
  async search(query: Params<"sessions.search">): Promise<Result<"sessions.search">> {
    return (await this.#calls()).call("sessions.search", query);
  }

  /** Creates an empty session. Throws `conflict` if its key or ID is taken. */
  async create(session: Params<"sessions.create"> = {}): Promise<Result<"sessions.create">> {
    return (await this.#calls()).call("sessions.create", session);
  }
}

/**
 * Reads and controls runs. Every method takes an optional `userId`; with it, runs of other users do not exist.
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
  readonly #runs: () => RunStore;

  constructor(runs: () => RunStore) {
    this.#runs = runs;
  }

  /** Lists runs, newest first. */
  async list(query: RunQuery = {}, userId?: string | null): Promise<readonly Run[]> {
    return this.#runs().list(query, userId);
  }

  /** Returns a run, or `null` if there is none. */
  async get(runId: string, userId?: string | null): Promise<Run | null> {
    return this.#runs().get(runId, userId);
  }

  /** Aborts a run and returns its state afterwards. Throws `not_found`. */
  async abort(runId: string, userId?: string | null, reason?: string): Promise<RunState> {
    const state = (await this.get(runId, userId)) === null ? null : await this.#runs().abort(runId, reason);
    if (state === null) throw noSuchRun(runId);
    return state;
  }

  /**
   * Queues the input of a run that ended as `lost_too_often` again. Returns the new run; retrying twice returns the same one.
   * Throws `not_found`, and `conflict` for a run that was not lost.
   */
  async retry(runId: string, userId?: string | null): Promise<Run> {
    const known = await this.get(runId, userId);
    const accepted = known === null ? null : await this.#runs().retry(runId);
    if (accepted === null) throw noSuchRun(runId);
    return accepted.run;
  }

  /**
   * Lets any process that has the agent claim a queued or sleeping run that waits for an app. Later input of its session is no
   * longer reserved for that app either. A released run is returned as it is. Throws `not_found`, and `conflict` for a run
   * of an app that is running or has ended.
   */
  async release(runId: string, userId?: string | null): Promise<Run> {
    const known = await this.get(runId, userId);
    const released = known === null ? null : await this.#runs().releaseApp(runId);
    if (released === null) throw noSuchRun(runId);
    return released;
  }
}

/**
 * Lists and answers tool calls that wait for approval.
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
  readonly #runs: () => RunStore;

  constructor(runs: () => RunStore) {
    this.#runs = runs;
  }

  /** Lists pending approvals, oldest first. `open: false` adds the answered ones; `limit` keeps the newest. */
  async list(
    { open = true, ...query }: ApprovalQuery = {},
    userId?: string | null,
  ): Promise<readonly Approval[]> {
    return this.#runs().approvals({ ...query, ...present({ open: open ? true : null }) }, userId);
  }

  /** Answers an approval. The first answer is final; later ones return it. Throws `not_found`. */
  async resolve(
    approvalId: string,
    answer: "approved" | "denied",
    by: string | null = null,
    userId?: string | null,
  ): Promise<Approval> {
    const known = await this.#runs().approval(approvalId);
    const isTheirs = known !== null && (userId === undefined || known.session.userId === userId);
    const resolved = isTheirs ? await this.#runs().resolveApproval(approvalId, answer, by) : null;
    if (resolved !== null) return resolved;
    throw new SkeinError("not_found", {
      what: "Approval",
      name: approvalId,
      advice: "See which are open with skein runs ls",
    });
  }
}
