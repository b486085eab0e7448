import { setImmediate } from "node:timers";
import type { SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import type { Turn } from "../../../agents/contract.ts";
import type { Entry } from "../../../core/entries.ts";
import type { ToolCallBlock } from "../../../core/messages.ts";
import type { Act } from "../log/act.ts";
import type { TurnLog } from "../log/turn-log.ts";
import { failed } from "./failures.ts";

/** Updates that wait to be written; beyond that nothing more is read from the agent. */
const mostWaiting = 8 * 1024 * 1024;
/** What calls that have not ended may be told of, all together. */
const mostUnended = 128 * 1024 * 1024;

/** Acts that are held back; beyond that nothing more is taken, and the log closes what is open. */
const mostHeld = 1000;

/** Words that are told in one piece. */
const mostGathered = 32_768;

type Delta = Extract<Extract<Act, { act: "emit" }>["event"], { type: "delta" }>;

/** Writes what becomes of updates, one after the other, in the order in which they came. */
export class UpdateWriter {
  readonly #turn: Turn;
  readonly #log: TurnLog;
  readonly #onFailure: (error: unknown) => void;
  #work: Promise<void> = Promise.resolve();
  #waiting = 0;
  #room: PromiseWithResolvers<void> | null = null;
  #isOver = false;
  /** The turn is being stopped: what comes still is not written by the way, but belongs to its end. */
  #isHolding = false;
  #held: Act[] = [];
  /** Words that came in this turn of the event loop and nobody was told of: a reader pays for each event, not each word. */
  #words: Delta | null = null;
  /** Calls that have a result, until it is written. */
  readonly #answered = new Map<string, { readonly call: ToolCallBlock; readonly durationMs: number }>();
  #last: Entry | null = null;

  constructor(turn: Turn, log: TurnLog, onFailure: (error: unknown) => void) {
    this.#turn = turn;
    this.#log = log;
    this.#onFailure = onFailure;
  }

  /** The last message that was written; `null`: none was. */
  get last(): Entry | null {
    return this.#last;
  }

  /** A promise: too much waits, and the next may come when it resolves. */
  push(update: unknown, bytes: number): Promise<void> | undefined {
    if (this.#isOver) return undefined;
    this.#waiting += bytes;
    this.#work = this.#work.then(() => this.#take(update, bytes));
    if (this.#waiting <= mostWaiting) return undefined;
    this.#room ??= Promise.withResolvers<void>();
    return this.#room.promise;
  }

  /** Resolves when all that came before is written, or nothing more is. */
  async settled(): Promise<void> {
    await this.#work;
    this.#tellWords();
  }

  /** Nothing more is taken, and what waits is let go. What was taken since the turn was stopped, and is not written. */
  async end(): Promise<readonly Act[]> {
    this.#isOver = true;
    this.#makeRoom();
    await this.settled();
    return this.#held.splice(0);
  }

  async apply(acts: readonly Act[]): Promise<void> {
    this.#tellWords();
    for (const act of acts) await this.#apply(act);
  }

  async #take(update: unknown, bytes: number): Promise<void> {
    this.#waiting -= bytes;
    if (this.#waiting <= mostWaiting) this.#makeRoom();
    if (this.#isOver) return;
    for (const act of this.#log.take(update as SessionUpdate, bytes)) {
      if (act.act === "emit" && act.event.type === "delta") {
        this.#gather(act.event);
        continue;
      }
      this.#tellWords();
      if (act.act === "emit") await this.#apply(act);
      else if (this.#isHolding || !(await this.#isOurs())) this.#held.push(act);
      else await this.#apply(act).catch((error: unknown) => this.#fail(error));
    }
    if (this.#held.length > mostHeld) this.#isOver = true;
    if (this.#log.held > mostUnended) this.#endless();
  }

  #gather({ kind, delta, ...event }: Delta): void {
    const before = this.#words;
    const isOne = before?.kind === kind && before.delta.length + delta.length <= mostGathered;
    if (!isOne) this.#tellWords();
    if (this.#words === null) setImmediate(() => this.#tellWords());
    this.#words = { ...event, kind, delta: isOne ? before.delta + delta : delta };
  }

  #tellWords(): void {
    const words = this.#words;
    this.#words = null;
    if (words !== null) this.#turn.emit(words);
  }

  #endless(): void {
    this.#isOver = true;
    this.#makeRoom();
    const agent = this.#turn.acp?.agent ?? "";
    this.#fail(failed(agent, `it told more than ${mostUnended} bytes of calls that it did not end`));
  }

  async #isOurs(): Promise<boolean> {
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

  #makeRoom(): void {
    this.#room?.resolve();
    this.#room = null;
  }

  async #apply(act: Act): Promise<void> {
    const turn = this.#turn;
    if (act.act === "emit") {
      const { event } = act;
      if (event.type === "tool_result") this.#answered.set(event.call.id, event);
      turn.emit(event);
    } else if (act.act === "note") await turn.note(act.draft);
    else await this.#say(act.message);
  }

  /** The agent's calls are not ours to refuse: hooks are told of what it said and did, as of any answer. */
  async #say(message: Extract<Act, { act: "say" }>["message"]): Promise<void> {
    const { hooks, say } = this.#turn;
    if (message.role === "assistant") await hooks.llmOutput(message);
    const { entry } = await say(message);
    this.#last = entry ?? this.#last;
    if (message.role !== "toolResult") return;
    const done = this.#answered.get(message.toolCallId);
    this.#answered.delete(message.toolCallId);
    if (done !== undefined) await hooks.afterToolCall(done.call, message, done.durationMs);
  }
}
