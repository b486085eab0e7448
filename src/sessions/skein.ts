import type { AccessAction } from "../access/visibility/access-policy.ts";
import type { AccessExplanation } from "../access/visibility/decide-access.ts";
import type { InboundMessage } from "../channels/contract.ts";
import type { AcceptedInbound } from "../channels/webhook-inbound.ts";
import type { OptionNames } from "../core/check-options.ts";
import { checkObject, checkOptions } from "../core/check-options.ts";
import { SkeinError } from "../core/errors.ts";
import type { SkeinEvent } from "../core/events.ts";
import { present } from "../core/present.ts";
import type { AgentListPayload, ModelListPayload } from "../protocol/directory.ts";
import type { RunStepsPayload } from "../protocol/run-details.ts";
import type { SessionToolResults } from "../protocol/tool-results.ts";
import type { BudgetFigures, LaneCount, OutboxRow, OutboxState, Run, RunWaits } from "../runs/contract.ts";
import { runIdOf } from "../runs/ledger/run-ledger.ts";
import type { SessionRecord, Store } from "../store/contract.ts";
import { noSuchSession, scopeOfSession } from "../store/rules.ts";
import { withPlainUsers } from "../store/spaces.ts";
import { findFor } from "./accept.ts";
import type {
  App,
  MountedGateway,
  MountOptions,
  ToolCalled,
  ToolCallOptions,
  ToolInvoked,
  ToolListing,
} from "./app.ts";
import type { GuardNote } from "./append.ts";
import { listAgents, listModels } from "./directory.ts";
import type { HookRegistry } from "./hooks.ts";
import { isWebhook } from "./outgoing.ts";
import { receive } from "./receive.ts";
import { resolveSessionTarget } from "./resolve-context.ts";
import type { WaitOptions } from "./run-watcher.ts";
import { waitForRun } from "./run-watcher.ts";
import { guardNotesOf } from "./run-writer.ts";
import type { RuntimeContext } from "./runtime-context.ts";
import { ScheduleService } from "./schedules.ts";
import { ApprovalService, RunService, SessionService } from "./services.ts";
import { askerOf, isSandboxed } from "./session-access.ts";
import { SessionHandle } from "./session-handle.ts";
import type { ShowRequestOptions } from "./show-request.ts";
import { noSuchRun } from "./turn-handle.ts";
import type { SessionXray } from "./xray.ts";

const showRequestOptionNames: OptionNames<ShowRequestOptions> = {
  model: true,
  baseUrl: true,
  wire: true,
  entryId: true,
};

/**
 * The library's main object: one app's sessions, runs, approvals, tools and channels. Create it with `createSkein`.
 *
 * @example
 * ```ts
 * import { createSkein, defineAgent } from "skein";
 * const skein = await createSkein({ dir: ".skein", agents: [defineAgent({ id: "main" })] });
 * const { reply } = await skein.session({ userId: "alice" }).send("Plan three days in Kyoto").result;
 * await skein.close();
 * ```
 */
export class Skein {
  readonly #app: App;
  readonly sessions: SessionService;
  readonly runs: RunService;
  readonly approvals: ApprovalService;
  readonly schedules: ScheduleService;

  constructor(app: App) {
    this.#app = app;
    this.sessions = new SessionService(app);
    this.runs = new RunService(app);
    this.approvals = new ApprovalService(app);
    this.schedules = new ScheduleService(app);
  }

  /** Throws after `close`. */
  get #open(): App {
    this.#app.closed.throwIfAborted();
    return this.#app;
  }

  get store(): Store {
    return this.#app.store;
  }

  /** The registry for hooks. */
  get hooks(): HookRegistry {
    return this.#app.hooks;
  }

  /** The agent for calls that do not name an agent. */
  get defaultAgentId(): string {
    return this.#app.agents.first;
  }

  /** Returns a handle for a session, addressed by user, agent, key or ID. The first message creates the session. */
  session(context: RuntimeContext = {}): SessionHandle {
    checkObject("session()", context, '{ sessionId: "trip" }');
    return new SessionHandle(this.#app, context);
  }

  /** Calls the listener for every event in this process. Returns a function that unsubscribes. */
  subscribe(listener: (event: SkeinEvent) => void): () => void {
    return this.#app.events.subscribe((event) => listener(withPlainUsers(event)));
  }

  /** Returns the run that was accepted under this user's idempotency key, or `null` if there is none. */
  async runFor(idempotencyKey: string, userId: string | null = null): Promise<Run | null> {
    const { runs } = this.#open;
    const run = await runs.get(runIdOf(userId, idempotencyKey), userId);
    if (run !== null) runs.adoptRequest(run);
    return run;
  }

  /**
   * Waits for a run to end in any process and returns it. If the timeout expires or the signal is aborted first, the
   * returned run has no outcome yet. Throws `not_found` if this user has no such run.
   */
  async ended(runId: string, options: WaitOptions = {}, userId?: string | null): Promise<Run> {
    const now = await this.runs.get(runId, userId);
    if (now === null) throw noSuchRun(runId);
    if (now.outcome !== null) return now;
    const ended = await waitForRun(this.#open.watcher, runId, options);
    return withPlainUsers(ended) ?? (await this.runs.get(runId, userId)) ?? now;
  }

  /** Lists the changes that the guard made to a run's messages, oldest first. */
  async notes({ runId }: Run): Promise<readonly GuardNote[]> {
    const run = await this.#open.runs.get(runId);
    return run === null ? [] : guardNotesOf(this.store, run);
  }

  /** Explains what a run is waiting for. Returns `null` if there is no such run. */
  async waits(runId: string): Promise<RunWaits | null> {
    const { runs, spaces } = this.#open;
    const waits = await runs.waits(runId);
    const run = waits === null ? null : await runs.get(runId);
    const store = run === null ? null : spaces.missingStore(run.session.userId);
    return waits === null ? null : { ...waits, ...present({ store }) };
  }

  /** Explains what several runs are waiting for. Unknown runs are omitted. */
  async waitsOf(runIds: readonly string[]): Promise<ReadonlyMap<string, RunWaits>> {
    return this.#open.runs.waitsOf(runIds);
  }

  /** Returns a run's model requests and tool calls from its session's log. Throws `not_found`. */
  async steps(runId: string): Promise<RunStepsPayload> {
    const run = await this.#open.runs.get(runId);
    if (run === null) throw noSuchRun(runId);
    const { readRunSteps } = await import("./run-steps.ts");
    return readRunSteps(this.#app, run);
  }

  /** Returns the lanes with their limits. If a user is given, counts only that user's runs. */
  async lanes(userId?: string | null): Promise<readonly LaneCount[]> {
    return this.#open.runs.lanes(userId);
  }

  /** Resolves when a request and everything it started have ended, in any process. */
  async settled(rootId: string, signal?: AbortSignal): Promise<void> {
    return this.#open.watcher.untilSettled(rootId, signal);
  }

  /** Lists the session tools. If a context is given, lists only those that the session's rules allow. */
  async tools(session: RuntimeContext | null = null): Promise<readonly ToolListing[]> {
    return this.#open.sessionTools.list(session);
  }

  /**
   * Calls a session tool on behalf of a session, under its agent's rules and hooks. A tool that starts something
   * creates the session if it does not exist. A read-only tool does not. A refusal is returned as a result and does not
   * throw.
   */
  callTool<Name extends keyof SessionToolResults>(
    name: Name,
    args: unknown,
    options?: ToolCallOptions,
  ): Promise<ToolCalled<SessionToolResults[Name]>>;
  callTool(name: string, args: unknown, options?: ToolCallOptions): Promise<ToolCalled>;
  async callTool(name: string, args: unknown, options: ToolCallOptions = {}): Promise<ToolCalled> {
    return this.#open.sessionTools.call(name, args, options);
  }

  /**
   * Calls a tool as an agent in that session would: a session tool, one of the agent's own tools, or an MCP server's
   * tool. Throws `not_found` if the session does not have the tool. A rejected or failed call is returned as a result.
   */
  async invokeTool(
    name: string,
    args: Readonly<Record<string, unknown>>,
    options: ToolCallOptions = {},
  ): Promise<ToolInvoked> {
    return this.#open.sessionTools.invoke(name, args, options);
  }

  /**
   * Lists the agents and what each one can reach. Includes agents that are not defined but have sessions for this user.
   */
  async agents(userId: string | null = null): Promise<AgentListPayload["agents"]> {
    return listAgents(this.#open, userId);
  }

  /** Lists the models named in the configuration, in code or by an agent. */
  async models(): Promise<ModelListPayload["models"]> {
    return listModels(this.#open);
  }

  /** Whether a session is isolated from everything outside its own tree. */
  isSandboxed(session: SessionRecord): boolean {
    return isSandboxed(this.#app, session);
  }

  /**
   * Shows the request that a session's model is currently answering or, if there is none, the one that would be sent
   * next, with all changes made for the provider. With `entryId`, shows the request that led to an earlier answer. A
   * string option names the model. Sends nothing and starts no server. Throws `not_found` if this process does not have
   * the agent.
   */
  async xray(context: RuntimeContext, given: string | ShowRequestOptions = {}): Promise<SessionXray> {
    const options = typeof given === "string" ? { model: given } : given;
    checkOptions("xray", options, showRequestOptionNames);
    const record = await this.#recordOf(context);
    const shown = await this.showRequest(record, options);
    if (shown !== null) return shown;
    const advice = "Define it with defineAgent or add it under agents in the configuration";
    throw new SkeinError("not_found", { what: "Agent", name: record.agentId, advice });
  }

  /**
   * Like `xray`, but for a session record. Returns `null` if this process does not have the agent or if it is an ACP
   * agent.
   */
  async showRequest(session: SessionRecord, options: ShowRequestOptions): Promise<SessionXray | null> {
    const { showRequest } = await import("./show-request.ts");
    const { readAnsweredRequest } = await import("./answered-request.ts");
    const { entryId, model } = options;
    const { store, models } = this.#open;
    const answer =
      entryId === undefined
        ? null
        : await readAnsweredRequest(store, scopeOfSession(session), session, entryId);
    const shown = await showRequest(this.#open, session, options, { answer });
    // If the agent exists, reports which model is missing.
    if (shown === null && answer !== null && model === undefined)
      models.turnModel(`${answer.model.provider}/${answer.model.model}`);
    return shown;
  }

  /**
   * Explains whether a session is allowed to act on another one, with every rule. The reference is written as the
   * requester would write it.
   */
  async explainAccess(
    asker: RuntimeContext,
    reference: string,
    action: AccessAction,
  ): Promise<AccessExplanation> {
    const session = await this.#recordOf(asker);
    return this.#open.access.explain(askerOf(this.#app, session), reference, action);
  }

  async #recordOf(context: RuntimeContext): Promise<SessionRecord> {
    checkObject("The session", context, '{ sessionId: "trip" }');
    const target = resolveSessionTarget(this.#open, context);
    return (await findFor(this.#app.store, target)) ?? noSuchSession(target.key);
  }

  /** Returns how much of the shared budget a request and everything it started have used. */
  async budget(rootId: string): Promise<BudgetFigures | null> {
    return this.#open.runs.budget(rootId);
  }

  /** Returns the metrics in the Prometheus text format, or `null` if metrics are not enabled. */
  async metrics(): Promise<{ readonly contentType: string; readonly body: string } | null> {
    const { metrics, runs } = this.#app;
    if (metrics === null) return null;
    // The other metrics are still useful while the database is unavailable.
    return metrics.render(await runs.countOpen().catch(() => null));
  }

  /** Accepts a message from a channel. Accepting the same message again returns the same run. */
  async receive(message: InboundMessage): Promise<AcceptedInbound> {
    return receive(this.#open, message);
  }

  /**
   * Returns the handler for a webhook channel's signed requests, to be mounted in a server. Returns `null` if there is
   * no such channel.
   */
  webhook(channelId: string): ((request: Request) => Promise<Response>) | null {
    const channel = this.#app.channels.get(channelId);
    return isWebhook(channel) ? (request) => channel.handler(request) : null;
  }

  /**
   * Opens the gateway for your own server. As with `skein start`, clients use the folder's tokens. The admin token is
   * in the file `token`. Throws `unavailable` for an in-memory store.
   */
  async mount(options: MountOptions = {}): Promise<MountedGateway> {
    return this.#open.mount(options);
  }

  /** Lists messages to channels, newest first. */
  async outbox(
    query: { readonly states?: readonly OutboxState[]; readonly limit?: number } = {},
    userId?: string | null,
  ): Promise<readonly OutboxRow[]> {
    return withPlainUsers(await this.#open.runs.outbox.list(query, userId));
  }

  /** Returns an outbox message, or `null` if this user has no such message. */
  async outboxRow(outboxId: string, userId?: string | null): Promise<OutboxRow | null> {
    return withPlainUsers(await this.#open.runs.outbox.get(outboxId, userId));
  }

  /** Sends a dead letter again or drops a message. Throws `not_found`. */
  async settleOutbox(outboxId: string, act: "retry" | "drop", userId?: string | null): Promise<OutboxRow> {
    const known = await this.#open.runs.outbox.get(outboxId, userId);
    const row = known === null ? null : await this.#open.runs.outbox[act](outboxId);
    if (row === null) {
      throw new SkeinError("not_found", {
        what: "Message in the outbox",
        name: outboxId,
        advice: "List the messages with skein outbox ls",
      });
    }
    this.#app.wakeOutbox();
    return row;
  }

  /**
   * Waits up to `graceMs` for runs to reach a durable state, then closes everything. Unfinished runs continue on the
   * next start.
   */
  close({ graceMs = 5000 }: { readonly graceMs?: number } = {}): Promise<void> {
    return this.#app.close(graceMs);
  }
}
