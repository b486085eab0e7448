import type { Entry } from "./entries.ts";
import type { Usage } from "./messages.ts";

/** Everything that happens, on one bus: gateway, console, command line and telemetry read the same. */

/** Whose event it is. */
export interface EventAbout {
  readonly userId: string | null;
  readonly sessionKey: string;
  readonly sessionId: string;
  readonly runId?: string;
}

/** Where a run ended. */
export type RunEnd = "ok" | "error" | "timeout" | "aborted" | "merged";

interface Kinds {
  "run.queued": {
    readonly lane: string;
    readonly kind: string;
    /** The run that set it off: a send or a spawn. */
    readonly startedBy?: string;
  };
  "run.started": {
    readonly attempt: number;
    readonly model: string | null;
    readonly startedBy?: string;
    /** Left out: that of the key. */
    readonly agentId?: string;
  };
  /** A request goes out to a model, or its answer is there; with a code, it failed. */
  "run.step": {
    readonly phase: "asked" | "answered";
    /** Counted from 1 within the run. */
    readonly step: number;
    readonly provider: string;
    readonly model: string;
    /** Of an answer. */
    readonly usage?: Usage;
    readonly finishReason?: string;
    readonly code?: string;
    readonly error?: string;
  };
  "run.delta": { readonly kind: "text" | "thinking"; readonly delta: string };
  "run.tool": {
    readonly phase: "call" | "result";
    readonly toolCallId: string;
    readonly toolName: string;
    /** Of a call. */
    readonly arguments?: Readonly<Record<string, unknown>>;
    /** Of a result. */
    readonly isError?: boolean;
    readonly content?: readonly unknown[];
    readonly durationMs?: number;
  };
  /** What has been streamed of this answer does not count: the model is asked again. */
  "run.retry": {
    readonly attempt: number;
    readonly delayMs: number;
    readonly code: string;
    readonly error: string;
  };
  /** What was changed of a message on its way into the session: an invalid call left out, a result cut. */
  "run.note": { readonly kind: string; readonly note: string };
  "run.compaction": {
    readonly phase: "started" | "done" | "not_done";
    readonly measure: string;
    readonly note?: string;
    readonly entryId?: string;
    /** Of a measure that has ended: by how many tokens the next request is smaller. */
    readonly freedTokens?: number;
  };
  "run.waiting": { readonly for: "run" | "approval"; readonly runIds?: readonly string[] };
  /** Its wait is over, and it has a slot again. */
  "run.resumed": object;
  /** Its input has gone into a turn that runs, whose outcome it shares. */
  "run.steered": { readonly mergedInto: string };
  "run.sleeping": { readonly waitingFor: readonly string[]; readonly wakeAt: number };
  "run.ended": {
    readonly state: RunEnd;
    readonly code: string | null;
    readonly error: string | null;
    /** Of a merged run. */
    readonly mergedInto?: string;
  };
  /** Somebody takes up a run whose owner was lost. */
  "run.recovered": { readonly attempt: number; readonly action: string };
  /** A run that this one spawned. */
  "run.child": { readonly childSessionKey: string; readonly childRunId: string; readonly state: string };
  "entry.appended": { readonly entry: Entry };
  "session.created": object;
  /** `isRedacted`: some of its entries are tombstones now. */
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

/** An event: what happened, whose it is, and when. */
export type SkeinEvent<T extends SkeinEventType = SkeinEventType> = {
  readonly [K in T]: { readonly type: K; readonly at: number } & EventAbout & Kinds[K];
}[T];

export type Emit = (event: SkeinEvent) => void;

/** Hands events on, in order. A listener that fails is reported, and hinders nobody. */
export class EventBus {
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

  /** Returns a function that ends it. */
  subscribe(listener: (event: SkeinEvent) => void): () => void {
    const entry = (event: SkeinEvent) => listener(event);
    this.#listeners.add(entry);
    return () => void this.#listeners.delete(entry);
  }
}
