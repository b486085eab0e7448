import { setImmediate } from "node:timers";
import type { SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import type { Turn } from "../../agents/contract.ts";
import type { Entry } from "../../core/entries.ts";
import type { ToolCallBlock } from "../../core/messages.ts";
import { failed } from "./errors.ts";
import type { Act, TurnLog } from "./turn-log.ts";

/** If unwritten updates exceed this size, nothing more is read from the agent. */
const maxQueuedBytes = 8 * 1024 * 1024;
/** The limit for the updates of calls that have not ended. */
const maxOpenCallBytes = 128 * 1024 * 1024;
/**
 * The limit for effects that are held back. Beyond it, no update is accepted, and the log closes the unfinished calls.
 */
const maxHeldActs = 1000;
const maxDeltaChars = 32_768;

type Delta = Extract<Extract<Act, { act: "emit" }>["event"], { type: "delta" }>;

/** Applies the effects of updates one at a time, in order of arrival. */
export class UpdateWriter {
  readonly #turn: Turn;
  readonly #log: TurnLog;
  readonly #onFailure: (error: unknown) => void;
  #work: Promise<void> = Promise.resolve();
  #queuedBytes = 0;
  #drained: PromiseWithResolvers<void> | null = null;
  #hasEnded = false;
  /** Set if a write has failed. Later effects are then held back, and `end` returns them. */
  #isHolding = false;
  #held: Act[] = [];
  /**
   * Text from the current tick of the event loop. It is emitted as one event, because every subscriber has to process
   * each event.
   */
  #delta: Delta | null = null;
  /** Calls whose results have not been written yet. */
  readonly #answered = new Map<string, { readonly call: ToolCallBlock; readonly durationMs: number }>();
  #last: Entry | null = null;

  constructor(turn: Turn, log: TurnLog, onFailure: (error: unknown) => void) {
    this.#turn = turn;
    this.#log = log;
    this.#onFailure = onFailure;
  }

  /** The last message that was written. */
  get last(): Entry | null {
    return this.#last;
  }

  /** Returns a promise if the queue is full. The caller must await it before pushing more. */
  push(update: unknown, bytes: number): Promise<void> | undefined {
    if (this.#hasEnded) return undefined;
    this.#queuedBytes += bytes;
    this.#work = this.#work.then(() => this.#take(update, bytes));
    if (this.#queuedBytes <= maxQueuedBytes) return undefined;
    this.#drained ??= Promise.withResolvers<void>();
    return this.#drained.promise;
  }

  /** Resolves when every pushed update has been processed. */
  async settled(): Promise<void> {
    await this.#work;
    this.#emitDelta();
  }

  /** Drops queued updates and returns the effects that were held back. */
  async end(): Promise<readonly Act[]> {
    this.#close();
    await this.settled();
    return this.#held.splice(0);
  }

  async apply(acts: readonly Act[]): Promise<void> {
    this.#emitDelta();
    for (const act of acts) await this.#apply(act);
  }

  async #take(update: unknown, bytes: number): Promise<void> {
    this.#queuedBytes -= bytes;
    if (this.#queuedBytes <= maxQueuedBytes) this.#resume();
    if (this.#hasEnded) return;
    for (const act of this.#log.take(update as SessionUpdate, bytes)) {
      if (act.act === "emit" && act.event.type === "delta") {
        this.#collect(act.event);
        continue;
      }
      this.#emitDelta();
      if (act.act === "emit") await this.#apply(act);
      else if (this.#isHolding || !(await this.#isOwned())) this.#held.push(act);
      else await this.#apply(act).catch((error: unknown) => this.#fail(error));
    }
    if (this.#held.length > maxHeldActs) this.#hasEnded = true;
    if (this.#log.openCallBytes > maxOpenCallBytes) {
      this.#close();
      const agent = this.#turn.acp?.agent ?? "";
      this.#fail(
        failed(agent, `it sent more than ${maxOpenCallBytes} bytes for calls that it has not ended`),
      );
    }
  }

  #collect({ kind, delta, ...event }: Delta): void {
    const previous = this.#delta;
    const isJoined = previous?.kind === kind && previous.delta.length + delta.length <= maxDeltaChars;
    if (!isJoined) this.#emitDelta();
    if (this.#delta === null) setImmediate(() => this.#emitDelta());
    this.#delta = { ...event, kind, delta: isJoined ? previous.delta + delta : delta };
  }

  #emitDelta(): void {
    const delta = this.#delta;
    this.#delta = null;
    if (delta !== null) this.#turn.emit(delta);
  }

  /** Whether this process still owns the run. */
  async #isOwned(): Promise<boolean> {
    try {
      await this.#turn.check();
      return true;
    } catch (error) {
      this.#fail(error);
      return false;
    }
  }

  #fail(error: unknown): void {
    this.#isHolding = true;
    this.#onFailure(error);
  }

  #close(): void {
    this.#hasEnded = true;
    this.#resume();
  }

  #resume(): void {
    this.#drained?.resolve();
    this.#drained = null;
  }

  async #apply(act: Act): Promise<void> {
    if (act.act === "emit") {
      const { event } = act;
      if (event.type === "tool_result") this.#answered.set(event.call.id, event);
      this.#turn.emit(event);
    } else if (act.act === "note") await this.#turn.note(act.draft);
    else await this.#write(act.message);
  }

  /** Notifies hooks of messages and calls. Hooks cannot reject them, because the agent has already acted. */
  async #write(message: Extract<Act, { act: "say" }>["message"]): Promise<void> {
    const { hooks, say } = this.#turn;
    if (message.role === "assistant") await hooks.llmOutput(message);
    const { entry } = await say(message);
    this.#last = entry ?? this.#last;
    if (message.role !== "toolResult") return;
    const answered = this.#answered.get(message.toolCallId);
    this.#answered.delete(message.toolCallId);
    if (answered !== undefined) await hooks.afterToolCall(answered.call, message, answered.durationMs);
  }
}
