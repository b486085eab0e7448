import type { ToolCallContext } from "../agents/contract.ts";
import type { Clock } from "../core/clock.ts";
import type { IdSource } from "../core/ids.ts";
import type { SessionRef } from "../core/session-ref.ts";
import type { FileBoundary } from "../file-access/file-boundary.ts";
import type { DeliveryTarget, Run, RunStore } from "../runs/contract.ts";
import type { Store } from "../store/contract.ts";
import type { StoreWork } from "../store/work.ts";
import type { FindModelWindow } from "./accept.ts";
import type { HookRegistry } from "./hooks.ts";
import type { Asker, SessionAccess } from "./session-access.ts";

/** A session that sets something off in others, in the middle of a run or from outside of any. */
export interface Caller extends Asker {
  /** `null`: a person, a program or somebody else's loop acts for the session. Then a new root begins. */
  readonly run: Run | null;
  /**
   * Names what this call sets off: the same one again finds what the first has done. In a run it follows from session,
   * assistant entry and tool call; outside, from the caller's idempotency key, else it is fresh.
   */
  readonly callId: string;
  /** The entry of the message that made the call; `null`: there is none. */
  readonly entryId: string | null;
  readonly signal: AbortSignal;
  /** An operator reads the result. Left out: a model does. */
  readonly isOperator?: boolean;
  /** The slot is free meanwhile. */
  readonly whileWaiting: ToolCallContext["whileWaiting"];
}

/** What reaching from session to session needs of the rest of the program. */
export interface BetweenDeps {
  readonly store: Store;
  readonly work: StoreWork;
  readonly runs: RunStore;
  readonly access: SessionAccess;
  readonly agents: AgentDirectory;
  readonly acp: AcpDirectory;
  readonly channels: ChannelDirectory;
  readonly clock: Clock;
  readonly newId: IdSource;
  readonly settings: BetweenSettings;
  /** This process, as the owner of waits. */
  readonly owner: string;
  /** The run, once it has ended, whoever runs it; rejects with the signal's reason. */
  untilEnded(runId: string, signal: AbortSignal): Promise<Run>;
  readonly files: FileBoundary;
  /** Throws for a model that cannot be asked. */
  checkModel?(name: string): void;
  readonly modelWindow: FindModelWindow;
  /** What of the tools that these entries name a child does not get. */
  ungrantedTools(child: SessionRef, entries: readonly string[]): Promise<UngrantedTools>;
  /** Asked before a child is made, and told of it. */
  readonly hooks: Pick<HookRegistry, "ask" | "notify">;
  report(error: unknown): void;
}

export interface UngrantedTools {
  /** Entries that fit no tool of the child's agent. */
  readonly unknown: readonly string[];
  /** Names of tools that the rules about the child take away. */
  readonly denied: readonly string[];
}

export interface BetweenSettings {
  readonly maxPingPongTurns: number;
  /** `global`: main is the one session that all senders share. */
  readonly scope: "per-sender" | "global";
}

/** Agents, as far as sessions reach them. */
export interface AgentDirectory {
  readonly ids: readonly string[];
  /** `null`: nobody has configured or defined it. */
  find(agentId: string): AgentPolicy | null;
}

export interface AgentPolicy {
  readonly id: string;
  readonly model: string;
  readonly cwd: string | null;
  readonly sandboxed: boolean;
  /** Folders, absolute, that children of its sessions may work in beside those inside the parent's. */
  readonly roots: readonly string[];
  /** Its rule about tools. `allow` left out: all; `ask`: none. */
  readonly tools: {
    readonly allow?: readonly string[];
    readonly deny: readonly string[];
    readonly ask?: readonly string[];
  };
  readonly subagents: SubagentPolicy;
}

/** What sessions of an agent may spawn, and what those have. */
export interface SubagentPolicy {
  /** Agent ids, `*` for any; itself is always allowed. */
  readonly allowAgents: readonly string[];
  /** 1 to 5. */
  readonly maxSpawnDepth: number;
  /** 1 to 20. */
  readonly maxChildren: number;
  /** 0: never. */
  readonly archiveAfterMinutes: number;
  /** Given back of the default deny list, and denied beside it. */
  readonly tools: { readonly allow: readonly string[]; readonly deny: readonly string[] };
  readonly attachments: {
    readonly maxFileBytes: number;
    readonly maxTotalBytes: number;
    /** They stay when their session is archived or removed. */
    readonly keep: boolean;
  };
}

/** ACP agents, as far as sessions may spawn them. */
export interface AcpDirectory {
  /** Those that are configured and allowed, by name. */
  readonly names: readonly string[];
  /** Which one is meant where none is named; `null`: none. */
  readonly defaultAgent: string | null;
  /**
   * What the agent calls the session of this run, once it has told it; `null`: the run ended before, or it took longer than an
   * agent may. Rejects with the signal's reason.
   */
  untilAgentSessionId(run: Run, signal: AbortSignal): Promise<string | null>;
}

export interface ChannelDirectory {
  /** `null`: there is no such channel, or it cannot open threads. */
  opener(channel: string): ((target: DeliveryTarget, title: string) => Promise<string>) | null;
}
