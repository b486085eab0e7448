import type { Entry } from "./entries.ts";
import type { Usage } from "./messages.ts";

/** The session that an event belongs to. */
interface EventAbout {
  readonly userId: string | null;
  readonly sessionKey: string;
  readonly sessionId: string;
  readonly runId?: string;
}

/** The final state of a run. */
type RunEnd = "ok" | "error" | "timeout" | "aborted" | "merged";

interface Kinds {
  "run.queued": {
    readonly lane: string;
    readonly kind: string;
    /** The run that started this one, by a send or a spawn. */
    readonly startedBy?: string;
  };
  "run.started": {
    readonly attempt: number;
    readonly model: string | null;
    readonly lane?: string;
    /** The time since the input was accepted. Set only for the first start. */
    readonly queuedMs?: number;
    readonly startedBy?: string;
    /** Defaults to the agent in the key. */
    readonly agentId?: string;
  };
  /** A request to a model was sent or answered. `code` is set if it failed. */
  "run.step": {
    readonly phase: "asked" | "answered";
    /** Counted from 1 within the run. */
    readonly step: number;
    readonly provider: string;
    readonly model: string;
    /** Set for `answered`. */
    readonly usage?: Usage;
    readonly finishReason?: string;
    readonly code?: string;
    readonly error?: string;
  };
  "run.delta": {
    readonly kind: "text" | "thinking";
    readonly delta: string;
    /** The model request that is being answered, as in `run.step`. */
    readonly step: number;
    /**
     * The number of UTF-16 code units of this kind that were streamed before this chunk. Starts at 0 with each answer
     * and after `run.retry`.
     */
    readonly offset: number;
  };
  "run.tool": {
    readonly phase: "call" | "result";
    readonly toolCallId: string;
    readonly toolName: string;
    /** Set for `call`. */
    readonly arguments?: Readonly<Record<string, unknown>>;
    /** Set for `result`. */
    readonly isError?: boolean;
    readonly content?: readonly unknown[];
    readonly durationMs?: number;
  };
  /** The answer streamed so far has been discarded, and the model is being called again. */
  "run.retry": {
    readonly attempt: number;
    readonly delayMs: number;
    readonly code: string;
    readonly error: string;
  };
  /** The guard changed a message, for example by removing an invalid call or truncating a result. */
  "run.note": { readonly kind: string; readonly note: string };
  "run.compaction": {
    readonly phase: "started" | "done" | "not_done";
    readonly measure: string;
    readonly note?: string;
    readonly entryId?: string;
    /** The number of tokens by which a recovery step shrinks the next request. Set when the step has ended. */
    readonly freedTokens?: number;
  };
  "run.waiting": { readonly for: "run" | "approval"; readonly runIds?: readonly string[] };
  /** The wait has ended, and the run holds a slot again. */
  "run.resumed": object;
  /** The input joined a running turn, whose outcome it shares. */
  "run.steered": { readonly mergedInto: string };
  "run.sleeping": { readonly waitingFor: readonly string[]; readonly wakeAt: number };
  "run.ended": {
    readonly state: RunEnd;
    readonly code: string | null;
    readonly error: string | null;
    readonly lane?: string;
    /** The time since the first start, in any process. Absent if the run was never started. */
    readonly durationMs?: number;
    /** Set for a merged run. */
    readonly mergedInto?: string;
  };
  /** A process is continuing a run whose owner was lost. */
  "run.recovered": { readonly attempt: number; readonly action: string };
  /** The state of a run that this one spawned has changed. */
  "run.child": { readonly childSessionKey: string; readonly childRunId: string; readonly state: string };
  "entry.appended": { readonly entry: Entry };
  "session.created": object;
  /** `isRedacted` is set if entries became tombstones. */
  "session.updated": { readonly isRedacted?: true };
  "session.reset": { readonly freshSessionId: string };
  "session.archived": object;
  "session.deleted": object;
  "session.restored": object;
  "outbox.queued": { readonly outboxId: string; readonly channel: string };
  "outbox.delivered": { readonly outboxId: string; readonly channel: string };
  "outbox.retry": {
    readonly outboxId: string;
    readonly channel: string;
    readonly nextAt: number;
    readonly error: string;
  };
  "outbox.dead": { readonly outboxId: string; readonly channel: string; readonly error: string };
  "outbox.dropped": { readonly outboxId: string; readonly channel: string };
  "approval.requested": {
    readonly approvalId: string;
    readonly toolCallId: string;
    readonly toolName: string;
    readonly arguments: Readonly<Record<string, unknown>>;
    readonly expiresAt: number;
  };
  "approval.resolved": {
    readonly approvalId: string;
    readonly answer: "approved" | "denied" | "expired";
    readonly by: string | null;
  };
}

export type SkeinEventType = keyof Kinds;

/** An event in a session, with its time. */
export type SkeinEvent<T extends SkeinEventType = SkeinEventType> = {
  readonly [K in T]: { readonly type: K; readonly at: number } & EventAbout & Kinds[K];
}[T];

export type Emit = (event: SkeinEvent) => void;

/** The events of all processes that use the same store. */
export interface SharedEvents {
  /**
   * Calls `onLoss` when events of other processes might have been missed. The subscriber should then read the current
   * state. Returns a function that unsubscribes.
   */
  subscribe(listener: (event: SkeinEvent) => void, onLoss?: () => void): () => void;
  /** Resolves once other processes can read the events that this process has emitted. */
  flush(): Promise<void>;
  /** Delivers the events that other processes have emitted so far. */
  catchUp(): Promise<void>;
}

/** A process that uses a shared database. */
export interface LiveProcess {
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  readonly startedAt: number;
  readonly executesRuns: boolean;
}

/** Carries events to and from other processes. */
export interface EventFeed extends SharedEvents {
  /**
   * Starts sending and receiving. Earlier events of other processes are not delivered. `process` describes this process
   * to the others. `owner` is the name under which it claims work.
   */
  join(process?: LiveProcess, owner?: string): Promise<void>;
  /** The processes that have joined and are not known to have ended, in the order of their starts. */
  processes(): readonly LiveProcess[];
  /** Whether the process with this owner name has left, or has been silent for as long as a lease. */
  isGone(owner: string): boolean;
  publish(event: SkeinEvent): void;
}

/**
 * Passes the events of this process to listeners in order. An error in a listener is reported and does not affect the
 * other listeners.
 */
export class EventBus implements SharedEvents {
  readonly #listeners = new Set<(event: SkeinEvent) => void>();
  readonly #report: (error: unknown) => void;

  constructor(report: (error: unknown) => void = () => undefined) {
    this.#report = report;
  }

  readonly emit: Emit = (event) => {
    for (const listener of [...this.#listeners]) {
      try {
        listener(event);
      } catch (error) {
        this.#report(error);
      }
    }
  };

  subscribe(listener: (event: SkeinEvent) => void): () => void {
    const entry = (event: SkeinEvent) => listener(event);
    this.#listeners.add(entry);
    return () => void this.#listeners.delete(entry);
  }

  async flush(): Promise<void> {
    // No other process reads the bus.
  }

  async catchUp(): Promise<void> {
    // The bus delivers events immediately.
  }
}

/** Combines the events of this process with those that a feed delivers. */
export function withFeed(bus: EventBus, feed: EventFeed | null): SharedEvents {
  if (feed === null) return bus;
  return {
    subscribe: (listener, onLoss) => {
      const leaves = [bus.subscribe(listener), feed.subscribe(listener, onLoss)];
      return () => {
        for (const leave of leaves) leave();
      };
    },
    flush: () => feed.flush(),
    catchUp: () => feed.catchUp(),
  };
}
