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
import type { Calls } from "../protocol/methods/calls.ts";
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
import type { SessionEnds } from "./session-ends.ts";

/**
 * Everything that the parts of one process share. `src/app.ts` builds it once; a function takes the members that it needs,
 * as `Pick<App, …>`.
 */
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
  /** Users of other stores and namespaces, as the store and the runs know them. */
  readonly spaces: Pick<Spaces<SkeinStore>, "enter" | "missingStore">;
  readonly files: FileBoundary;
  readonly runs: EmbeddedRuns;
  readonly ends: SessionEnds<SkeinStore>;
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
  /** Whether this process runs what is accepted. */
  readonly isWorking: boolean;
  readonly runtime: Runtime;
  readonly watcher: RunWatcher;
  /** The turns in progress in this process, by the uid of their session. */
  readonly turns: Map<string, TurnInProgress>;
  /** Runs whose result a caller in this process waits for. */
  readonly awaitedRuns: Set<string>;
  /** Aborted when the app closes; its reason is the error that later calls get. */
  readonly closed: AbortSignal;

  readonly sessionTools: SessionToolCalls;
  /** The gateway's methods, called in this process. */
  readonly calls: ServiceCalls;
  /** Opens a gateway for a server of the caller's own. */
  mount(options: MountOptions): Promise<MountedGateway>;
  /** There may be something to send. */
  wakeOutbox(): void;
  close(graceMs: number): Promise<void>;
}

/** The session tools, for callers outside of runs. */
export interface SessionToolCalls {
  /** `context` null: all of them; otherwise those that the rules of the session allow. */
  list(context: RuntimeContext | null): Promise<readonly ToolListing[]>;
  call(name: string, args: unknown, options: ToolCallOptions): Promise<ToolCalled>;
  /** Also calls the agent's own tools and those of servers. */
  invoke(
    name: string,
    args: Readonly<Record<string, unknown>>,
    options: ToolCallOptions,
  ): Promise<ToolInvoked>;
}

/** The store of an app: a folder of files, memory, or the caller's own. Only the first has files. */
export type SkeinStore = WorkingStore & Partial<Pick<FilesStore, "root" | "upkeep">>;

export interface TurnInProgress {
  readonly plan: Turn;
  readonly requests: { preview(): Promise<TurnRequest> };
}

/** The models that runs can name. */
export interface Models {
  /** Throws a SkeinError for a name that is not a model. */
  turnModel(name: string): TurnModel;
  /** Summaries by the same model. */
  summarizer(model: TurnModel, options: SummarizerOptions): Summarize;
  /** Throws where no model of this name can be asked. */
  check(name: string): void;
  /** Whether the application made the model itself: then it needs no base URL. */
  isGiven(name: string): boolean;
  /** Names of the models that the application made. */
  readonly given: readonly string[];
}

/** The ACP agents of the configuration. None is loaded or started until a run asks for one. */
export interface AcpAgents {
  /** Those that may be spawned, by name. */
  readonly names: readonly string[];
  /** The agent of a spawn that names none; `null`: there is no default. */
  readonly defaultAgent: string | null;
  /**
   * What the agent calls the session of this run, once it has told it; `null`: the run ended before, or the agent took too
   * long. Rejects with the signal's reason.
   */
  untilAgentSessionId(run: Run, signal: AbortSignal): Promise<string | null>;
  /** Whether this process runs the sessions of such an agent. */
  serves(agentId: string, key: string): boolean;
  /** `null`: the session is of another kind, or its agent is not configured. */
  profile(session: { readonly agentId: string; readonly key: string }): AgentProfile | null;
}

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

export type UserCalls = Calls<ServiceMethod>;

/**
 * Loads the handlers with the first call, and throws once the Skein is closed. `user`: only this one's sessions; left out:
 * those of the user that a call names.
 */
export type ServiceCalls = (user?: string) => Promise<UserCalls>;
