import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { AccessAction } from "../access/visibility/access-policy.ts";
import type { AccessExplanation } from "../access/visibility/decide-access.ts";
import type { InboundMessage } from "../channels/contract.ts";
import type { OptionNames } from "../core/check-options.ts";
import { checkObject, checkOptions } from "../core/check-options.ts";
import { SkeinError } from "../core/errors.ts";
import type { EventBus, SkeinEvent } from "../core/events.ts";
import { present } from "../core/present.ts";
import type { AgentListPayload, ModelListPayload } from "../protocol/directory.ts";
import type { SessionToolResults } from "../protocol/tool-results.ts";
import type {
  BudgetFigures,
  OutboxRow,
  OutboxState,
  OutboxStore,
  Run,
  RunStore,
  RunWaits,
} from "../runs/contract.ts";
import type { SessionRecord, Store } from "../store/contract.ts";
import { noSuchSession } from "../store/rules.ts";
import { withPlainUsers } from "../store/spaces.ts";
import { findFor } from "./accept.ts";
import type { GuardNote } from "./append.ts";
import type { HookRegistry } from "./hooks.ts";
import { noSuchRun } from "./run-error.ts";
import type { RunWatcher, WaitOptions } from "./run-watcher.ts";
import { endedWithin } from "./run-watcher.ts";
import { guardNotesOf } from "./run-writer.ts";
import type { RuntimeContext } from "./runtime-context.ts";
import { resolveRuntimeContext } from "./runtime-context.ts";
import { ApprovalService, RunService, SessionService } from "./services.ts";
import type { HandleDeps } from "./session-handle.ts";
import { SessionHandle } from "./session-handle.ts";
import type { SessionXray } from "./xray.ts";

/** Input of a channel that is accepted. */
export interface Received {
  readonly runId: string;
  readonly sessionKey: string;
  /** `false`: the message was known already. */
  readonly isNew: boolean;
}

/** What of a request is shown. */
export interface ShowRequestOptions {
  /** Instead of the model that the next request goes to, as provider/model. */
  readonly model?: string;
  /** Of a model whose provider is not known. */
  readonly baseUrl?: string;
  /** Adds the body as the provider receives it. */
  readonly wire?: boolean;
}

const showRequestOptionNames: OptionNames<ShowRequestOptions> = { model: true, baseUrl: true, wire: true };

/** On whose behalf a session tool is called, and how. */
export interface ToolCallOptions extends RuntimeContext {
  /** The same one again finds what the first call has set off. */
  readonly idempotencyKey?: string;
  readonly signal?: AbortSignal;
  /** Told of the runs that the call begins to wait for. */
  readonly onWait?: (runIds: readonly string[]) => void;
  /**
   * The run of that session on whose behalf the call is made, as a tool finds it in its context: what the call sets off
   * counts toward the budget of that run. Left out, or not a run that is running: the call begins a budget of its own.
   */
  readonly runId?: string;
  /** The result is for an operator: rows of `sessions_list` name the files of the sessions. */
  readonly isOperator?: boolean;
}

/** What a session tool answered. */
export interface ToolCalled<Result = Readonly<Record<string, unknown>>> {
  /** One JSON object; a refusal is one too, with `status`, `code` and `error`. */
  readonly result: Result;
  /** Of what the call has set off, for `settled`; `null`: nothing. */
  readonly rootId: string | null;
}

/** What a tool answered that was called as an agent would. */
export interface ToolInvoked extends ToolCalled {
  /** It was refused, or failed. */
  readonly isError: boolean;
}

/** A session tool as people and models are told of it. */
export interface ToolListing {
  readonly name: string;
  readonly label: string;
  readonly description: string;
  /** A JSON Schema of its arguments. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** How a gateway is mounted. */
export interface MountOptions {
  /** Names that the server is reached under, beside `localhost`, its address and those of `gateway.allowedHosts`. */
  readonly allowedHosts?: readonly string[];
}

/** A gateway inside a server of your own: HTTP, server-sent events, MCP and WebSocket. */
export interface MountedGateway {
  /** Handles a request. Its body must not have been read. */
  readonly handler: (request: IncomingMessage, response: ServerResponse) => void;
  /** Handles the `upgrade` event of a server, for WebSocket clients. */
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
  /** Refuses new requests and closes its sockets. `skein.close()` does this too. */
  close(): Promise<void>;
}

export interface SkeinParts {
  readonly store: Store;
  readonly runs: RunStore;
  readonly outbox: OutboxStore;
  readonly bus: EventBus;
  readonly hooks: HookRegistry;
  readonly handles: HandleDeps;
  readonly watcher: Pick<RunWatcher, "untilSettled" | "untilEnded">;
  tools(session: RuntimeContext | null): Promise<readonly ToolListing[]>;
  callTool(name: string, args: unknown, options: ToolCallOptions): Promise<ToolCalled>;
  invokeTool(
    name: string,
    args: Readonly<Record<string, unknown>>,
    options: ToolCallOptions,
  ): Promise<ToolInvoked>;
  explainAccess(asker: SessionRecord, reference: string, action: AccessAction): Promise<AccessExplanation>;
  isSandboxed(session: SessionRecord): boolean;
  showRequest(session: SessionRecord, options?: ShowRequestOptions): Promise<SessionXray | null>;
  agents(userId: string | null): Promise<AgentListPayload["agents"]>;
  models(): ModelListPayload["models"];
  /** There may be something to send. */
  wakeOutbox(): void;
  metrics(): Promise<{ readonly contentType: string; readonly body: string } | null>;
  receive(message: InboundMessage): Promise<Received>;
  webhook(channelId: string): ((request: Request) => Promise<Response>) | null;
  mount(options: MountOptions): Promise<MountedGateway>;
  close(graceMs: number): Promise<void>;
}

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
  readonly #parts: SkeinParts;
  readonly sessions: SessionService;
  readonly runs: RunService;
  readonly approvals: ApprovalService;

  constructor(parts: SkeinParts) {
    this.#parts = parts;
    const { calls, defaults } = parts.handles;
    this.sessions = new SessionService(calls, (call) => defaults.enter(call));
    this.runs = new RunService(() => this.#open.runs);
    this.approvals = new ApprovalService(() => this.#open.runs);
  }

  /** Refuses, once everything is closed. */
  get #open(): SkeinParts {
    this.#parts.handles.closed.throwIfAborted();
    return this.#parts;
  }

  /** Where everything is kept. */
  get store(): Store {
    return this.#parts.store;
  }

  /** Called at certain moments of every run. */
  get hooks(): HookRegistry {
    return this.#parts.hooks;
  }

  /** Who answers where nobody is named. */
  get defaultAgentId(): string {
    return this.#parts.handles.defaults.agentId;
  }

  /** A session by its user, agent, key or id. Nothing is made until something is said to it. */
  session(context: RuntimeContext = {}): SessionHandle {
    checkObject("session()", context, '{ sessionId: "trip" }');
    return new SessionHandle(this.#parts.handles, context);
  }

  /** Everything that happens in this process. Returns a function that ends it. */
  subscribe(listener: (event: SkeinEvent) => void): () => void {
    return this.#parts.bus.subscribe((event) => listener(withPlainUsers(event)));
  }

  /** The run that was accepted under an idempotency key of this user; `null`: there is none. */
  async runFor(idempotencyKey: string, userId: string | null = null): Promise<Run | null> {
    const { runs, handles } = this.#open;
    const run = await runs.get(handles.newRunId(userId, idempotencyKey), userId);
    if (run !== null) runs.adoptRequest(run);
    return run;
  }

  /**
   * The run once it has ended, whoever runs it; without an outcome where it had not when the time was over or the signal came.
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
    const { runs, handles } = this.#open;
    const waits = await runs.waits(runId);
    const run = waits === null ? null : await runs.get(runId);
    const store = run === null ? null : handles.defaults.missingStore(run.session.userId);
    return waits === null ? null : { ...waits, ...present({ store }) };
  }

  /** The same of many at once; those that are unknown are left out. */
  async waitsOf(runIds: readonly string[]): Promise<ReadonlyMap<string, RunWaits>> {
    return this.#open.runs.waitsOf(runIds);
  }

  /** Resolves when one request and all that it set off has ended, whoever runs it. */
  async settled(rootId: string, signal?: AbortSignal): Promise<void> {
    return this.#open.watcher.untilSettled(rootId, signal);
  }

  /** The session tools; of a session, those that its rules allow. */
  async tools(session: RuntimeContext | null = null): Promise<readonly ToolListing[]> {
    return this.#open.tools(session);
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
    return this.#open.callTool(name, args, options);
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
    return this.#open.invokeTool(name, args, options);
  }

  /** The agents, with what each may reach: those that are defined, and those that only have sessions of this user. */
  async agents(userId: string | null = null): Promise<AgentListPayload["agents"]> {
    return this.#open.agents(userId);
  }

  /** The models that the configuration, the code or an agent names. */
  async models(): Promise<ModelListPayload["models"]> {
    return this.#open.models();
  }

  /** Whether a session is kept from everything outside its own tree. */
  isSandboxed(session: SessionRecord): boolean {
    return this.#parts.isSandboxed(session);
  }

  /**
   * Shows the request that a session's model is answering now, or would be sent next, with everything that was changed for
   * the provider. A text instead of options names the model. Nothing is sent, and no server is started. `not_found` where this process does not have the agent.
   */
  async xray(context: RuntimeContext, given: string | ShowRequestOptions = {}): Promise<SessionXray> {
    const options = typeof given === "string" ? { model: given } : given;
    checkOptions("xray", options, showRequestOptionNames);
    const record = await this.#recordOf(context);
    const shown = await this.#open.showRequest(record, options);
    if (shown !== null) return shown;
    const advice = "Define it with defineAgent, or under agents in the configuration";
    throw new SkeinError("not_found", { what: "Agent", name: record.agentId, advice });
  }

  /** The same of a session record; `null`: this process does not have the agent, or it is an ACP agent. */
  async showRequest(session: SessionRecord, options: ShowRequestOptions): Promise<SessionXray | null> {
    return this.#open.showRequest(session, options);
  }

  /** Whether a session may do this with another, and every rule on the way. The reference is as the asker would write it. */
  async explainAccess(
    asker: RuntimeContext,
    reference: string,
    action: AccessAction,
  ): Promise<AccessExplanation> {
    return this.#open.explainAccess(await this.#recordOf(asker), reference, action);
  }

  async #recordOf(context: RuntimeContext): Promise<SessionRecord> {
    checkObject("The session", context, '{ sessionId: "trip" }');
    const { store, defaults } = this.#open.handles;
    const resolved = resolveRuntimeContext(context, defaults);
    return (await findFor(store, resolved)) ?? noSuchSession(resolved.sessionKey);
  }

  /** What one request and all that it set off has come to. */
  async budget(rootId: string): Promise<BudgetFigures | null> {
    return this.#open.runs.budget(rootId);
  }

  /** What has happened, as Prometheus reads it; `null`: nobody asked for metrics when it was opened. */
  metrics(): Promise<{ readonly contentType: string; readonly body: string } | null> {
    return this.#parts.metrics();
  }

  /** Takes in a message of a channel. The same message again is the same run. */
  async receive(message: InboundMessage): Promise<Received> {
    return this.#open.receive(message);
  }

  /** What takes the signed messages of a webhook channel in, for a server to mount; `null`: there is no such channel. */
  webhook(channelId: string): ((request: Request) => Promise<Response>) | null {
    return this.#parts.webhook(channelId);
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
    return withPlainUsers(await this.#open.outbox.list(query, userId));
  }

  /** `null`: there is no such message, or it is another user's. */
  async outboxRow(outboxId: string, userId?: string | null): Promise<OutboxRow | null> {
    return withPlainUsers(await this.#open.outbox.get(outboxId, userId));
  }

  /** Sends a dead letter again, or drops a message. */
  async settleOutbox(outboxId: string, act: "retry" | "drop", userId?: string | null): Promise<OutboxRow> {
    const known = await this.#open.outbox.get(outboxId, userId);
    const row = known === null ? null : await this.#open.outbox[act](outboxId);
    if (row === null) {
      throw new SkeinError("not_found", {
        what: "Message in the outbox",
        name: outboxId,
        advice: "See what is there with skein outbox",
      });
    }
    this.#parts.wakeOutbox();
    return row;
  }

  /**
   * Lets runs come to a written state, for so long at the most, and closes everything. What was not finished goes on at
   * the next start.
   */
  close({ graceMs = 5000 }: { readonly graceMs?: number } = {}): Promise<void> {
    return this.#parts.close(graceMs);
  }
}
