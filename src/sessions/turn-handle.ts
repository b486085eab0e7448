import type { Entry } from "../core/entries.ts";
import { SkeinError } from "../core/errors.ts";
import type { SkeinEvent } from "../core/events.ts";
import { present } from "../core/present.ts";
import type { Outcome, Run, RunUsage, RunWaits } from "../runs/contract.ts";

/** An event that a {@link Turn} yields when you iterate over it. */
export type TurnEvent =
  | { readonly type: "text" | "thinking"; readonly delta: string }
  | {
      readonly type: "tool_call";
      readonly id: string;
      readonly name: string;
      readonly args: Readonly<Record<string, unknown>>;
    }
  | {
      readonly type: "tool_result";
      readonly id: string;
      readonly name: string;
      readonly isError: boolean;
      readonly content: readonly unknown[];
    }
  | { readonly type: "entry"; readonly entry: Entry }
  | {
      readonly type: "child";
      readonly childSessionKey: string;
      readonly childRunId: string;
      readonly state: string;
    }
  /** The text of this answer so far has been discarded because the model is being called again. */
  | { readonly type: "retry"; readonly attempt: number; readonly delayMs: number; readonly error: string }
  | {
      readonly type: "compaction";
      readonly phase: "started" | "done" | "not_done";
      readonly measure: string;
      readonly note?: string;
      /** The number of tokens by which the next request is smaller. Set when a recovery step has ended. */
      readonly freedTokens?: number;
    }
  | {
      readonly type: "approval";
      readonly approvalId: string;
      readonly name: string;
      readonly args: Readonly<Record<string, unknown>>;
      readonly answer: "approved" | "denied" | "expired" | null;
    }
  /**
   * This process cannot run the turn, so the turn waits for one of the app's processes. If this process belongs to that
   * app, `missingTools` lists the required tools that it does not offer.
   */
  | { readonly type: "waiting"; readonly app: string; readonly missingTools: readonly string[] }
  | { readonly type: "end"; readonly state: "ok" | "error" | "timeout" | "aborted" };

/** The result of a turn. */
export interface TurnResult {
  readonly runId: string;
  readonly sessionKey: string;
  readonly sessionId: string;
  readonly reply: string;
  /** The answer, parsed into a value that matches `schema`. */
  readonly output?: unknown;
  readonly usage: RunUsage;
  /** The entry that contains the reply. */
  readonly entryId?: string;
}

/**
 * A running turn. Iterate over it to read its events. It continues even if its events are not read or the loop exits
 * early.
 */
export interface Turn extends AsyncIterable<TurnEvent> {
  readonly runId: string;
  /** Rejects with a {@link RunError} unless the run ends successfully. */
  readonly result: Promise<TurnResult>;
  /** Aborts the run durably. Once this resolves, the run can no longer end successfully. */
  abort(): Promise<void>;
}

interface TurnSource {
  readonly runId: string;
  /** Resolves when the input is accepted, and rejects if it is not. */
  readonly accepted: Promise<Run>;
  subscribe(listener: (event: SkeinEvent) => void): () => void;
  waits(runId: string): Promise<RunWaits | null>;
  /** Resolves when the run has ended, in any process. */
  untilEnded(runId: string): Promise<Run>;
  abort(runId: string): Promise<unknown>;
  /** Runs whose result a caller is waiting for. */
  readonly awaitedRuns: Set<string>;
}

/** Follows a run through its events. Every reader receives all events from the beginning. */
export class TurnHandle implements Turn {
  readonly runId: string;
  readonly #result: Promise<TurnResult>;
  readonly #source: TurnSource;
  readonly #events: TurnEvent[] = [];
  readonly #approvals: Approvals = new Map();
  #hasEnded = false;
  #following: string;
  /** The session whose new entries belong to this turn, or `null` if the turn is not running. */
  #runsIn: EventSession | null = null;
  /** The entry for this handle's own input. It might be written before the turn that reads it is known. */
  #entryId: string | null = null;
  #news = Promise.withResolvers<void>();

  constructor(source: TurnSource) {
    this.#source = source;
    this.runId = source.runId;
    this.#following = source.runId;
    const leave = source.subscribe((event) => this.#take(event));
    this.#result = this.#follow().finally(() => {
      leave();
      source.awaitedRuns.delete(this.runId);
    });
    // Callers that ignore the result must not cause an unhandled rejection.
    this.#result.catch(() => undefined);
  }

  get result(): Promise<TurnResult> {
    if (!this.#hasEnded) this.#source.awaitedRuns.add(this.runId);
    return this.#result;
  }

  async abort(): Promise<void> {
    await this.#source.accepted;
    await this.#source.abort(this.runId);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<TurnEvent, void, undefined> {
    for (let next = 0; ; ) {
      const event = this.#events[next];
      if (event !== undefined) {
        next += 1;
        yield event;
      } else if (this.#hasEnded) return;
      else await this.#news.promise;
    }
  }

  async #follow(): Promise<TurnResult> {
    try {
      const accepted = await this.#source.accepted.then((run) => this.#join(run));
      const waits = accepted.app === null ? null : await this.#source.waits(accepted.runId);
      if (waits !== null && waits.app !== null)
        this.#push({ type: "waiting", app: waits.app, missingTools: waits.missingTools });
      const run = await this.#source.untilEnded(accepted.runId);
      const outcome = run.outcome ?? { state: "error", error: "The run ended without an outcome." };
      this.#push({ type: "end", state: outcome.state });
      if (outcome.state !== "ok") throw new RunError(run, outcome);
      const { key, sessionId } = run.session;
      const { reply = "", output, entryId } = outcome;
      return {
        runId: this.runId,
        sessionKey: key,
        sessionId,
        reply,
        ...(output === undefined ? {} : { output }),
        usage: run.usage,
        ...(entryId === undefined ? {} : { entryId }),
      };
    } finally {
      this.#hasEnded = true;
      this.#news.resolve();
    }
  }

  /** Joins a run. The run might already be running, because a retried request finds the run of the first attempt. */
  #join(run: Run): Run {
    this.#entryId = run.entryId;
    if (run.mergedInto !== null) this.#following = run.mergedInto;
    const { userId, key: sessionKey } = run.session;
    if (run.state === "running" || run.state === "waiting") this.#runsIn ??= { userId, sessionKey };
    return run;
  }

  #take(event: SkeinEvent): void {
    if (event.type === "run.steered" && event.runId === this.runId) {
      this.#following = event.mergedInto;
      this.#runsIn = event;
    }
    if (event.type === "entry.appended" && this.#isOurs(event))
      this.#push({ type: "entry", entry: event.entry });
    if (event.runId !== this.#following) return;
    if (event.type === "run.started") this.#runsIn = event;
    if (event.type === "run.sleeping" || event.type === "run.ended") this.#runsIn = null;
    const shown = turnEventOf(event, this.#approvals);
    if (shown !== null) this.#push(shown);
  }

  /** Compares keys because a reset moves the turn to a new session. */
  #isOurs({ entry, userId, sessionKey }: SkeinEvent<"entry.appended">): boolean {
    if (entry.id === this.#entryId) return true;
    return this.#runsIn?.sessionKey === sessionKey && this.#runsIn.userId === userId;
  }

  #push(event: TurnEvent): void {
    this.#events.push(event);
    const { resolve } = this.#news;
    this.#news = Promise.withResolvers();
    resolve();
  }
}

type EventSession = Pick<SkeinEvent, "userId" | "sessionKey">;
type Asked = Omit<Extract<TurnEvent, { type: "approval" }>, "answer">;
type Approvals = Map<string, Asked>;

/** Returns the turn event for a run's event, or `null` if there is none. `approvals` contains the pending requests. */
export function turnEventOf(event: SkeinEvent, approvals: Approvals = new Map()): TurnEvent | null {
  switch (event.type) {
    case "run.delta":
      return { type: event.kind, delta: event.delta };
    case "run.tool": {
      const { toolCallId: id, toolName: name } = event;
      if (event.phase === "call") return { type: "tool_call", id, name, args: event.arguments ?? {} };
      return { type: "tool_result", id, name, isError: event.isError === true, content: event.content ?? [] };
    }
    case "run.child": {
      const { childSessionKey, childRunId, state } = event;
      return { type: "child", childSessionKey, childRunId, state };
    }
    case "run.retry": {
      const { attempt, delayMs, error } = event;
      return { type: "retry", attempt, delayMs, error };
    }
    case "run.compaction": {
      const { phase, measure, note, freedTokens } = event;
      return { type: "compaction", phase, measure, ...present({ note, freedTokens }) };
    }
    case "approval.requested": {
      const { approvalId, toolName, arguments: args } = event;
      const asked: Asked = { type: "approval", approvalId, name: toolName, args };
      approvals.set(approvalId, asked);
      return { ...asked, answer: null };
    }
    case "approval.resolved": {
      const asked = approvals.get(event.approvalId);
      return asked === undefined ? null : { ...asked, answer: event.answer };
    }
    default:
      return null;
  }
}

/**
 * The error for a run that did not end successfully. `code` is stable. `docs/errors.md` lists all codes.
 *
 * @example
 * ```ts
 * import { RunError } from "skein";
 * const isWorthAnotherTry = (error: unknown) => error instanceof RunError && error.code === "model_failed";
 * ```
 */
export class RunError extends Error {
  override readonly name = "RunError";
  readonly code: string;
  readonly state: "error" | "timeout" | "aborted";
  readonly runId: string;
  /** The run's usage, which is recorded despite its failure. */
  readonly usage: RunUsage;

  constructor(run: Pick<Run, "runId" | "usage">, outcome: Outcome) {
    super(outcome.error ?? `The run ended in state ${outcome.state}.`);
    this.code = outcome.code ?? outcome.state;
    this.state = outcome.state === "ok" ? "error" : outcome.state;
    this.runId = run.runId;
    this.usage = run.usage;
  }
}

/** Returns the error for a run that does not exist or ended too long ago. */
export function noSuchRun(runId: string): SkeinError {
  return new SkeinError("not_found", {
    what: "Run",
    name: runId,
    advice: "Ended runs are kept for 30 days; see skein runs ls",
  });
}
