import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { Redactor } from "../access/redaction/redactor.ts";
import type { Runtime, SummarizerOptions, Turn, TurnModel, TurnRequest } from "../agents/contract.ts";
import type { Channel } from "../channels/contract.ts";
import type { LoadedConfig } from "../config/load.ts";
import type { Config } from "../config/sections/all.ts";
import type { Clock } from "../core/clock.ts";
import type { EventBus } from "../core/events.ts";
import type { IdSource } from "../core/ids.ts";
import type { FileBoundary } from "../file-access/file-boundary.ts";
import type { Calls } from "../protocol/calls.ts";
import type { Run } from "../runs/contract.ts";
import type { EmbeddedRuns } from "../runs/ledger/embedded-runs.ts";
import type { Worker } from "../runs/worker.ts";
import type { FilesStore } from "../store/files/store.ts";
import type { Spaces, WorkingStore } from "../store/spaces.ts";
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

/** Everything that one process shares. `src/app.ts` builds it once; functions take the members they need: `Pick<App, …>`. */
export interface App {
  readonly config: Config;
  /** The same configuration with the source of each value. */
  readonly loaded: LoadedConfig;
  readonly clock: Clock;
  readonly newId: IdSource;
  /** This process, as the owner of runs and waits. */
  readonly owner: string;
  readonly redactor: Redactor;
  readonly log: Log;
  /** `null`: metrics were not asked for. */
  readonly metrics: Metrics | null;
  /** Receives errors that no caller waits for. */
  report(error: unknown): void;

  readonly store: SkeinStore;
  /** Maps users of other stores and namespaces to the user IDs that the store and the runs use. */
  readonly spaces: Pick<Spaces<SkeinStore>, "enter" | "missingStore">;
  readonly files: FileBoundary;
  readonly runs: EmbeddedRuns;
  readonly endHooks: SessionEndHooks<SkeinStore>;
  readonly bus: EventBus;
  readonly hooks: HookRegistry;

  readonly agents: Agents;
  readonly acp: AcpAgents;
  readonly models: Models;
  readonly tools: RunTools;
  readonly access: SessionAccess;
  readonly channels: ReadonlyMap<string, Channel>;
  readonly outgoing: Outgoing;

  readonly worker: Worker;
  /** Whether this process executes runs. */
  readonly isWorking: boolean;
  readonly runtime: Runtime;
  readonly watcher: RunWatcher;
  /** The turns in progress in this process, by the uid of their session. */
  readonly turns: Map<string, TurnInProgress>;
  /** Runs whose result a caller in this process waits for. */
  readonly awaitedRuns: Set<string>;
  /** Aborted when the app closes. Later calls throw its reason. */
  readonly closed: AbortSignal;

  readonly sessionTools: SessionToolCalls;
  /** The gateway's methods, called within this process. */
  readonly calls: ServiceCalls;
  /** Opens a gateway for a server of the caller's own. */
  mount(options: MountOptions): Promise<MountedGateway>;
  /** Call after adding to the outbox. */
  wakeOutbox(): void;
  close(graceMs: number): Promise<void>;
}

/** The session tools, for callers outside of runs. */
export interface SessionToolCalls {
  /** With a context, only the tools that the session's rules allow. */
  list(context: RuntimeContext | null): Promise<readonly ToolListing[]>;
  call(name: string, args: unknown, options: ToolCallOptions): Promise<ToolCalled>;
  /** Also calls the agent's own tools and tools of MCP servers. */
  invoke(
    name: string,
    args: Readonly<Record<string, unknown>>,
    options: ToolCallOptions,
  ): Promise<ToolInvoked>;
}

/** The store of an app: a folder of files, memory, or a custom store. Only the first has files. */
export type SkeinStore = WorkingStore & Partial<Pick<FilesStore, "root" | "upkeep">>;

interface TurnInProgress {
  readonly plan: Turn;
  /** When the model is called again after a failure; `null`: it is being called, or tools run. */
  retryAt: number | null;
  readonly requests: { preview(): Promise<TurnRequest> };
}

/** The models that runs can use. */
export interface Models {
  /** Throws a SkeinError for a name that is not a model. */
  turnModel(name: string): TurnModel;
  /** A summarizer that uses the same model. */
  summarizer(model: TurnModel, options: SummarizerOptions): Summarize;
  /** Throws if the model cannot be used. */
  check(name: string): void;
  /** Whether the application supplied the model. Such a model needs no base URL. */
  isGiven(name: string): boolean;
  /** Names of the models that the application supplied. */
  readonly given: readonly string[];
}

/** The configured ACP agents. An agent is loaded and started only when a run needs it. */
export interface AcpAgents {
  /** Agents that may be spawned. */
  readonly names: readonly string[];
  /** The agent for spawns that do not name one; `null`: there is no default. */
  readonly defaultAgent: string | null;
  /**
   * The agent's own ID for the session of this run, once the agent reports it; `null` if the run ends or the agent times out
   * first. Rejects with the signal's reason.
   */
  untilAgentSessionId(run: Run, signal: AbortSignal): Promise<string | null>;
  /** Whether this process can run sessions of this agent. */
  serves(agentId: string, key: string): boolean;
  /** `null`: not a session of an ACP agent, or its agent is not configured. */
  profile(session: { readonly agentId: string; readonly key: string }): AgentProfile | null;
}

/** For which session a session tool is called, and how. */
export interface ToolCallOptions extends RuntimeContext {
  /** Repeating a call with the same key returns the result of the first call. */
  readonly idempotencyKey?: string;
  readonly signal?: AbortSignal;
  /** Called with the runs that the call starts to wait for. */
  readonly onWait?: (runIds: readonly string[]) => void;
  /**
   * A running run of that session. What the call starts counts toward the run's budget. Without it, or if the run is not
   * running, the call starts its own budget.
   */
  readonly runId?: string;
  /** An operator reads the result: rows of `sessions_list` include file paths. */
  readonly isOperator?: boolean;
}

/** The result of a session tool. */
export interface ToolCalled<Result = Readonly<Record<string, unknown>>> {
  /** One JSON object. A refusal has `status`, `code` and `error`. */
  readonly result: Result;
  /** The root of everything that the call started, for `settled`; `null`: it started nothing. */
  readonly rootId: string | null;
}

/** The result of a tool that was called as an agent would call it. */
export interface ToolInvoked extends ToolCalled {
  /** The call was refused or failed. */
  readonly isError: boolean;
}

/** The description of a session tool. */
export interface ToolListing {
  readonly name: string;
  readonly label: string;
  readonly description: string;
  /** A JSON Schema of its arguments. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** Options of `mount`. */
export interface MountOptions {
  /** Host names that the server accepts besides `localhost`, its own address and `gateway.allowedHosts`. */
  readonly allowedHosts?: readonly string[];
}

/** A gateway inside your own server: HTTP, server-sent events, MCP and WebSocket. */
export interface MountedGateway {
  /** Handles a request. Do not read its body first. */
  readonly handler: (request: IncomingMessage, response: ServerResponse) => void;
  /** Handles the `upgrade` event of a server, for WebSocket clients. */
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
  /** Refuses new requests and closes its sockets. `skein.close()` does this too. */
  close(): Promise<void>;
}

/** The gateway methods that the library calls within its own process. */
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
 * Loads the handlers on the first call, and throws once the app is closed. With `user`, the calls only reach sessions of that
 * user; without it, those of the user that each call names.
 */
export type ServiceCalls = (user?: string) => Promise<UserCalls>;
