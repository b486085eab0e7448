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
import type { SessionToolResults } from "../protocol/tool-results.ts";
import type { BudgetFigures, OutboxRow, OutboxState, Run, RunWaits } from "../runs/contract.ts";
import { runIdOf } from "../runs/ledger/run-ledger.ts";
import type { SessionRecord, Store } from "../store/contract.ts";
import { noSuchSession } from "../store/rules.ts";
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
import { resolveRuntimeContext } from "./resolve-context.ts";
import type { WaitOptions } from "./run-watcher.ts";
import { endedWithin } from "./run-watcher.ts";
import { guardNotesOf } from "./run-writer.ts";
import type { RuntimeContext } from "./runtime-context.ts";
import { ApprovalService, RunService, SessionService } from "./services.ts";
import { askerOf, isSandboxed } from "./session-access.ts";
import { SessionHandle } from "./session-handle.ts";
import type { ShowRequestOptions } from "./show-request.ts";
import { noSuchRun } from "./turn-handle.ts";
import type { SessionXray } from "./xray.ts";

const showRequestOptionNames: OptionNames<ShowRequestOptions> = { model: true, baseUrl: true, wire: true };

/**
 * Sessions that answer: the library's own handle on everything.
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

  constructor(app: App) {
    this.#app = app;
    this.sessions = new SessionService(app);
    this.runs = new RunService(app);
    this.approvals = new ApprovalService(app);
  }

  /** Refuses, once everything is closed. */
  get #open(): App {
    this.#app.closed.throwIfAborted();
    return this.#app;
  }

  /** Where everything is kept. */
  get store(): Store {
    return this.#app.store;
  }

  /** Called at certain moments of every run. */
  get hooks(): HookRegistry {
    return this.#app.hooks;
  }

  /** Who answers where nobody is named. */
  get defaultAgentId(): string {
    return this.#app.agents.first;
  }

  /** A session by its user, agent, key or id. Nothing is made until something is said to it. */
  session(context: RuntimeContext = {}): SessionHandle {
    checkObject("session()", context, '{ sessionId: "trip" }');
    return new SessionHandle(this.#app, context);
  }

  /** Everything that happens in this process. Returns a function that ends it. */
  subscribe(listener: (event: SkeinEvent) => void): () => void {
    return this.#app.bus.subscribe((event) => listener(withPlainUsers(event)));
  }

  /** The run that was accepted under an idempotency key of this user; `null`: there is none. */
  async runFor(idempotencyKey: string, userId: string | null = null): Promise<Run | null> {
    const { runs } = this.#open;
    const run = await runs.get(runIdOf(userId, idempotencyKey), userId);
    if (run !== null) runs.adoptRequest(run);
    return run;
  }

  /**
   * The run once it has ended, in any process; without an outcome when the timeout or the signal came first.
   * `not_found` where there is none, or it is another user's.
   */
  async ended(runId: string, options: WaitOptions = {}, userId?: string | null): Promise<Run> {
    const now = await this.runs.get(runId, userId);
    if (now === null) throw noSuchRun(runId);
    if (now.outcome !== null) return now;
    const ended = await endedWithin(this.#open.watcher, runId, options);
    return withPlainUsers(ended) ?? (await this.runs.get(runId, userId)) ?? now;
  }

  /** What was changed of the messages of a run on their way into its session, oldest first. */
  async notes({ runId }: Run): Promise<readonly GuardNote[]> {
    const run = await this.#open.runs.get(runId);
    return run === null ? [] : guardNotesOf(this.store, run);
  }

  /** Why a run does not go on; `null`: there is no such run. */
  async waits(runId: string): Promise<RunWaits | null> {
    const { runs, spaces } = this.#open;
    const waits = await runs.waits(runId);
    const run = waits === null ? null : await runs.get(runId);
    const store = run === null ? null : spaces.missingStore(run.session.userId);
    return waits === null ? null : { ...waits, ...present({ store }) };
  }

  /** The same of many at once; those that are unknown are left out. */
  async waitsOf(runIds: readonly string[]): Promise<ReadonlyMap<string, RunWaits>> {
    return this.#open.runs.waitsOf(runIds);
  }

  /** Resolves when one request and everything that it started has ended, in any process. */
  async settled(rootId: string, signal?: AbortSignal): Promise<void> {
    return this.#open.watcher.untilSettled(rootId, signal);
  }

  /** The session tools; of a session, those that its rules allow. */
  async tools(session: RuntimeContext | null = null): Promise<readonly ToolListing[]> {
    return this.#open.sessionTools.list(session);
  }

  /**
   * Calls a session tool on behalf of a session, under the rules and hooks of its agent. A tool that sets something off
   * creates the session where it does not exist; one that only reads does not. A refusal is a result.
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
   * Calls a tool as an agent in that session would: a session tool, one of the agent's own, or of a server; `not_found` where it
   * is not offered there. A refusal, and a call that failed, is a result.
   */
  async invokeTool(
    name: string,
    args: Readonly<Record<string, unknown>>,
    options: ToolCallOptions = {},
  ): Promise<ToolInvoked> {
    return this.#open.sessionTools.invoke(name, args, options);
  }

  /** The agents, with what each may reach: those that are defined, and those that only have sessions of this user. */
  async agents(userId: string | null = null): Promise<AgentListPayload["agents"]> {
    return listAgents(this.#open, userId);
  }

  /** The models that the configuration, the code or an agent names. */
  async models(): Promise<ModelListPayload["models"]> {
    return listModels(this.#open);
  }

  /** Whether a session is kept from everything outside its own tree. */
  isSandboxed(session: SessionRecord): boolean {
    return isSandboxed(this.#app, session);
  }

  /**
   * Shows the request that a session's model is answering now, or would be sent next, with everything that was changed for
   * the provider. A text instead of options names the model. Nothing is sent, and no server is started. `not_found` where this process does not have the agent.
   */
  async xray(context: RuntimeContext, given: string | ShowRequestOptions = {}): Promise<SessionXray> {
    const options = typeof given === "string" ? { model: given } : given;
    checkOptions("xray", options, showRequestOptionNames);
    const record = await this.#recordOf(context);
    const shown = await this.showRequest(record, options);
    if (shown !== null) return shown;
    const advice = "Define it with defineAgent, or under agents in the configuration";
    throw new SkeinError("not_found", { what: "Agent", name: record.agentId, advice });
  }

  /** The same of a session record; `null`: this process does not have the agent, or it is an ACP agent. */
  async showRequest(session: SessionRecord, options: ShowRequestOptions): Promise<SessionXray | null> {
    const { showRequest } = await import("./show-request.ts");
    return showRequest(this.#open, session, options);
  }

  /** Whether a session may do this with another, and every rule on the way. The reference is as the asker would write it. */
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
    const resolved = resolveRuntimeContext(this.#open, context);
    return (await findFor(this.#app.store, resolved)) ?? noSuchSession(resolved.sessionKey);
  }

  /** What one request and all that it set off has come to. */
  async budget(rootId: string): Promise<BudgetFigures | null> {
    return this.#open.runs.budget(rootId);
  }

  /** What has happened, as Prometheus reads it; `null`: nobody asked for metrics when it was opened. */
  async metrics(): Promise<{ readonly contentType: string; readonly body: string } | null> {
    return (await this.#app.metrics?.render()) ?? null;
  }

  /** Takes in a message of a channel. The same message again is the same run. */
  async receive(message: InboundMessage): Promise<AcceptedInbound> {
    return receive(this.#open, message);
  }

  /** What takes the signed messages of a webhook channel in, for a server to mount; `null`: there is no such channel. */
  webhook(channelId: string): ((request: Request) => Promise<Response>) | null {
    const channel = this.#app.channels.get(channelId);
    return isWebhook(channel) ? (request) => channel.handler(request) : null;
  }

  /**
   * The gateway for a server of your own. Clients show tokens of the folder, as they do to `skein start`; the admin token is in
   * its file `token`. Throws `unavailable` for a store in memory.
   */
  async mount(options: MountOptions = {}): Promise<MountedGateway> {
    return this.#open.mount(options);
  }

  /** Messages on their way to channels, newest first. */
  async outbox(
    query: { readonly states?: readonly OutboxState[]; readonly limit?: number } = {},
    userId?: string | null,
  ): Promise<readonly OutboxRow[]> {
    return withPlainUsers(await this.#open.runs.outbox.list(query, userId));
  }

  /** `null`: there is no such message, or it is another user's. */
  async outboxRow(outboxId: string, userId?: string | null): Promise<OutboxRow | null> {
    return withPlainUsers(await this.#open.runs.outbox.get(outboxId, userId));
  }

  /** Sends a dead letter again, or drops a message. */
  async settleOutbox(outboxId: string, act: "retry" | "drop", userId?: string | null): Promise<OutboxRow> {
    const known = await this.#open.runs.outbox.get(outboxId, userId);
    const row = known === null ? null : await this.#open.runs.outbox[act](outboxId);
    if (row === null) {
      throw new SkeinError("not_found", {
        what: "Message in the outbox",
        name: outboxId,
        advice: "See what is there with skein outbox",
      });
    }
    this.#app.wakeOutbox();
    return row;
  }

  /**
   * Lets runs come to a written state, for so long at the most, and closes everything. What was not finished goes on at
   * the next start.
   */
  close({ graceMs = 5000 }: { readonly graceMs?: number } = {}): Promise<void> {
    return this.#app.close(graceMs);
  }
}
