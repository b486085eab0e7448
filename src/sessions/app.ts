import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { Redactor } from "../access/redaction/redactor.ts";
import type { Runtime, SummarizerOptions, Turn, TurnModel, TurnRequest } from "../agents/contract.ts";
import type { Channel } from "../channels/contract.ts";
import type { LoadedConfig } from "../config/load.ts";
import type { Config } from "../config/sections/all.ts";
import type { Clock } from "../core/clock.ts";
import type { EventBus, SharedEvents } from "../core/events.ts";
import type { IdSource } from "../core/ids.ts";
import type { FileBoundary } from "../file-access/file-boundary.ts";
import type { Calls } from "../protocol/calls.ts";
import type { Run } from "../runs/contract.ts";
import type { LedgerRuns } from "../runs/ledger/ledger-runs.ts";
import type { Worker } from "../runs/worker.ts";
import type { Embedding } from "../store/contract.ts";
import type { FilesStore } from "../store/files/store.ts";
import type { Spaces } from "../store/spaces.ts";
import type { WorkingStore } from "../store/work.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { Summarize } from "../transcript/compaction/summarize-piece.ts";
import type { AgentProfile, Agents } from "./agents.ts";
import type { HookRegistry } from "./hooks.ts";
import type { Outgoing } from "./outgoing.ts";
import type { RunTools } from "./run-tools.ts";
import type { RunWatcher } from "./run-watcher.ts";
import type { RuntimeContext } from "./runtime-context.ts";
import type { SessionAccess } from "./session-access.ts";
import type { SessionEndHooks } from "./session-end-hooks.ts";

/**
 * The services and state shared within one process. `src/app.ts` builds them once. Functions declare the members they
 * need with `Pick<App, …>`.
 */
export interface App {
  readonly config: Config;
  /** The same configuration, with the source of each value. */
  readonly loaded: LoadedConfig;
  readonly clock: Clock;
  readonly newId: IdSource;
  /** Identifies this process as the owner of runs and waits. */
  readonly owner: string;
  readonly redactor: Redactor;
  readonly log: Log;
  /** `null` if metrics are off. */
  readonly metrics: Metrics | null;
  /** Reports an error that cannot be returned to a caller. */
  report(error: unknown): void;

  readonly store: SkeinStore;
  /** Maps users in other stores and namespaces to the user IDs that the store and the runs use. */
  readonly spaces: Pick<Spaces<SkeinStore>, "enter" | "missingStore">;
  readonly files: FileBoundary;
  readonly runs: LedgerRuns;
  readonly endHooks: SessionEndHooks<SkeinStore>;
  /** The events of this process. */
  readonly bus: EventBus;
  /** The events of all processes that use the store, including this one. */
  readonly events: SharedEvents;
  readonly hooks: HookRegistry;

  readonly agents: Agents;
  readonly acp: AcpAgents;
  readonly models: Models;
  /** `null` if no embedding model is configured. `ofQuery` embeds a query and returns `null` if the model fails. */
  readonly embeddings: { ofQuery(text: string): Promise<Embedding | null> } | null;
  readonly tools: RunTools;
  readonly access: SessionAccess;
  readonly channels: ReadonlyMap<string, Channel>;
  readonly outgoing: Outgoing;

  readonly worker: Worker;
  /** Whether this process, or another one that shares its database, executes runs. */
  hasWorkers(): boolean;
  readonly runtime: Runtime;
  readonly watcher: RunWatcher;
  /** The turns in progress in this process, keyed by session uid. */
  readonly turns: Map<string, TurnInProgress>;
  /** Runs whose result a caller in this process is waiting for. */
  readonly awaitedRuns: Set<string>;
  /** Aborted when the app closes. Later calls throw its reason. */
  readonly closed: AbortSignal;

  readonly sessionTools: SessionToolCalls;
  /** The gateway's methods, called within this process. */
  readonly calls: ServiceCalls;
  /** Opens a gateway for the caller's own server. */
  mount(options: MountOptions): Promise<MountedGateway>;
  /** Call this after adding a message to the outbox. */
  wakeOutbox(): void;
  close(graceMs: number): Promise<void>;
}

/** The session tools, for callers outside runs. */
export interface SessionToolCalls {
  /** If a context is given, lists only the tools that the session's rules allow. */
  list(context: RuntimeContext | null): Promise<readonly ToolListing[]>;
  call(name: string, args: unknown, options: ToolCallOptions): Promise<ToolCalled>;
  /** Like `call`, but can also call the agent's own tools and tools from MCP servers. */
  invoke(
    name: string,
    args: Readonly<Record<string, unknown>>,
    options: ToolCallOptions,
  ): Promise<ToolInvoked>;
}

/** An app's store: a root folder, memory, or a custom store. Only a root folder has files. */
export type SkeinStore = WorkingStore & Partial<Pick<FilesStore, "root" | "upkeep">>;

interface TurnInProgress {
  readonly plan: Turn;
  /**
   * When the model will be called again after a failure. `null` while the model is being called or tools are running.
   */
  retryAt: number | null;
  readonly requests: { preview(): Promise<TurnRequest> };
}

/** The models that runs can use. */
export interface Models {
  /** Throws a `SkeinError` if the name is not a valid model name. */
  turnModel(name: string): TurnModel;
  /** Returns a summarizer that uses the same model. */
  summarizer(model: TurnModel, options: SummarizerOptions): Summarize;
  /** Throws if the model cannot be used. */
  check(name: string): void;
  /** Whether the application supplied the model. A supplied model needs no base URL. */
  isGiven(name: string): boolean;
  /** Names of the models supplied by the application. */
  readonly given: readonly string[];
}

/** The configured ACP agents. An agent is loaded and started only when a run needs it. */
export interface AcpAgents {
  /** The agents that can be spawned. */
  readonly names: readonly string[];
  /** The agent for spawns that do not name one, or `null` if there is no default. */
  readonly defaultAgent: string | null;
  /**
   * Resolves to the agent's own ID for this run's session once the agent reports it. Resolves to `null` if the run ends
   * or the agent times out first. Rejects with the signal's reason.
   */
  untilAgentSessionId(run: Run, signal: AbortSignal): Promise<string | null>;
  /** Whether this process can run this agent's sessions. */
  serves(agentId: string, key: string): boolean;
  /** Returns `null` if this is not an ACP session or its agent is not configured. */
  profile(session: { readonly agentId: string; readonly key: string }): AgentProfile | null;
}

/** The session on whose behalf a session tool is called, and the options for the call. */
export interface ToolCallOptions extends RuntimeContext {
  /** A call with the same key returns the first call's result. */
  readonly idempotencyKey?: string;
  readonly signal?: AbortSignal;
  /** Called with the runs that the call waits for. */
  readonly onWait?: (runIds: readonly string[]) => void;
  /**
   * A run in the calling session. While that run is running, anything that the call starts counts toward the run's
   * budget. Otherwise, and if `runId` is absent, the call gets a separate budget.
   */
  readonly runId?: string;
  /** `true` if the result is for an operator. Rows from `sessions_list` then include file paths. */
  readonly isOperator?: boolean;
}

/** The result of a session tool. */
export interface ToolCalled<Result = Readonly<Record<string, unknown>>> {
  /** One JSON object. A rejected call has `status`, `code` and `error`. */
  readonly result: Result;
  /** The root of the runs that the call started, to pass to `settled`. `null` if the call started no runs. */
  readonly rootId: string | null;
}

/** The result of a tool called as an agent would call it. */
export interface ToolInvoked extends ToolCalled {
  /** `true` if the call was rejected or failed. */
  readonly isError: boolean;
}

/** The description of a session tool. */
export interface ToolListing {
  readonly name: string;
  readonly label: string;
  readonly description: string;
  /** A JSON Schema for its arguments. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** Options for `mount`. */
export interface MountOptions {
  /** Host names that the server accepts in addition to `localhost`, its own address and `gateway.allowedHosts`. */
  readonly allowedHosts?: readonly string[];
  /** The path under which your server serves the gateway, such as `/skein`. Defaults to `gateway.basePath`. */
  readonly basePath?: string;
}

/** A gateway inside your own server: HTTP, server-sent events, MCP and WebSocket. */
export interface MountedGateway {
  /** Handles a request. Do not read the request's body before you call this. */
  readonly handler: (request: IncomingMessage, response: ServerResponse) => void;
  /** Handles a server's `upgrade` event, for WebSocket clients. */
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
  /** Rejects new requests and closes the gateway's sockets. `skein.close()` does this too. */
  close(): Promise<void>;
}

/** The gateway methods that the library calls in its own process. */
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

export type UserCalls = Calls<ServiceMethod>;

/**
 * Loads the handlers on the first call. Throws once the app is closed. If `user` is set, calls reach only that user's
 * sessions. Otherwise, they reach the sessions of the user that each call names.
 */
export type ServiceCalls = (user?: string) => Promise<UserCalls>;
