import type { Runtime, SummarizerOptions, Tool, Turn, TurnModel, TurnRequest } from "../agents/contract.ts";
import type { Config } from "../config/sections/all.ts";
import type { Clock } from "../core/clock.ts";
import type { Emit } from "../core/events.ts";
import type { IdSource } from "../core/ids.ts";
import type { MessageDraft } from "../core/seal.ts";
import type { FileBoundary } from "../file-access/file-boundary.ts";
import type { OutboxRequest, Run, RunStore } from "../runs/contract.ts";
import type { Worker } from "../runs/worker.ts";
import type { Scope, SessionRecord, Store } from "../store/contract.ts";
import type { Summarize } from "../transcript/compaction/summarize-piece.ts";
import type { ImagePort } from "../transcript/contract.ts";
import type { HookRegistry } from "./hooks.ts";
import type { RuntimeContext } from "./runtime-context.ts";
import type { SessionEnds } from "./session-ends.ts";
import type { StateModule } from "./with-state.ts";

/** What running needs of the rest of the program. Concrete runtimes and models are composed in. */
export interface RunningDeps {
  readonly store: Store;
  readonly files: FileBoundary;
  readonly runs: RunStore;
  readonly hooks: HookRegistry;
  readonly ends: Pick<SessionEnds<Store>, "reset">;
  readonly emit: Emit;
  readonly clock: Clock;
  /** Masks secrets in a text. */
  readonly redact: (text: string) => string;
  readonly newId: IdSource;
  readonly worker: Pick<Worker, "resume" | "isClosing">;
  readonly runtime: Runtime;
  readonly models: ModelPort;
  readonly shrink?: ImagePort["shrink"];
  readonly settings: RunSettings;
  /** Who answers in a session; `null`: nobody has configured or defined it. */
  agent(session: Pick<SessionRecord, "agentId" | "key">): AgentProfile | null;
  /** The tools of a run, those of servers too. */
  tools(agent: AgentProfile, session: SessionRecord, run: Run): Promise<readonly Tool[]>;
  /** Whether the model of a session may learn where files are on this machine. */
  seesPaths(session: SessionRecord): boolean;
  /** What goes to a channel when a run has ended well. */
  outgoing(session: SessionRecord, run: Run, reply: string): readonly OutboxRequest[];
  /** An answer as a JSON Schema asked for it, or what the model is told of it. */
  readOutput(
    reply: string,
    schema: Readonly<Record<string, unknown>>,
  ): Promise<{ readonly output: unknown } | { readonly correction: MessageDraft }>;
  /** Resolves when an approval is answered, or its time is over. */
  untilApproved(approvalId: string, expiresAt: number, signal: AbortSignal): Promise<void>;
  /** The turns in progress in this process, by the uid of their session. */
  readonly turns: Map<string, TurnInProgress>;
  report(error: unknown): void;
}

export interface TurnInProgress {
  readonly plan: Turn;
  readonly requests: { preview(): Promise<TurnRequest> };
}

export interface ModelPort {
  /** Throws a SkeinError where the name is none. */
  turnModel(name: string): TurnModel;
  /** Summaries by the same model. */
  summarizer(model: TurnModel, options: SummarizerOptions): Summarize;
}

/** An agent as it runs. */
export interface AgentProfile {
  readonly id: string;
  /** `acp`: somebody else's agent, with a model and tools of its own. */
  readonly runtime: "loop" | "acp";
  /** As provider/model. */
  readonly model: string;
  readonly system: string | null;
  readonly thinking: string | null;
  readonly maxSteps: number;
  /** Of one answer; `null`: as much as the model may. */
  readonly maxOutputTokens: number | null;
  /** New instances for each run. */
  state(): readonly StateModule[];
  /** Groups whose tools are offered only while they are active in the session. */
  readonly onDemand: readonly string[];
}

export interface RunSettings
  extends Pick<Config, "compaction" | "contextPruning" | "channels">,
    Pick<Config["session"], "reset"> {
  readonly approvalTimeoutMs: number;
  readonly stallMs: number;
  readonly maxRetries: number;
  readonly yieldTimeoutMs: number;
}

/** The session of a run, and for whom. */
export interface RunPlace {
  readonly scope: Scope & { readonly agentId: string };
  readonly session: SessionRecord;
  readonly ctx: RuntimeContext;
}
