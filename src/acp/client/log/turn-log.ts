import type { SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import type { AssistantBlock, ToolCallBlock } from "../../../core/messages.ts";
import type { MessageDraft } from "../../../core/seal.ts";
import { isRecord } from "../../../core/shape.ts";
import { cutText } from "../../../core/text.ts";
import type { Act } from "./act.ts";
import { contentText } from "./content-text.ts";
import type { Ending, TurnEnding } from "./ending.ts";
import { endingOf } from "./ending.ts";
import type { TurnUsage } from "./figures.ts";
import { CostMeter, turnUsage } from "./figures.ts";
import { Notes } from "./notes.ts";
import { Reply } from "./reply.ts";
import { boundedId, SafeIds } from "./safe-ids.ts";
import { mostCalls, Step } from "./step.ts";
import type { TextKind } from "./texts.ts";
import { AgentCall } from "./tool-call.ts";

export interface TurnLogOptions {
  /** Its name in the configuration: the model of what it says. */
  readonly agent: string;
  /** What a terminal has printed so far; `null`: there is none of this id. */
  terminalText(terminalId: string): string | null;
  now(): number;
  /** The dollars that the agent's session had cost before; `0` for a new one, `null`: not known. */
  readonly costBefore: number | null;
}

export interface TurnLogEnd {
  readonly acts: readonly Act[];
  /** The last message since the last call, else the last that was said at all. */
  readonly reply: string;
  readonly stopReason: Ending["stopReason"];
  /** To be charged: without `cost` where that is not known. */
  readonly usage: Omit<TurnUsage, "cost"> & Partial<Pick<TurnUsage, "cost">>;
}

interface Placed {
  readonly call: AgentCall;
  readonly step: Step;
  /** The most that one update of it had, in bytes. */
  held: number;
}

type Fields = Readonly<Record<string, unknown>>;

const mostDelta = 400_000;

/**
 * The updates of an agent in one turn as entries of our session. A message with calls is followed by a result for each
 * of them before anything else is said: what comes meanwhile waits in the next step. Takes whatever an agent may send.
 */
export class TurnLog {
  readonly #options: TurnLogOptions;
  /** The last of them collects; those before it wait until they can be said. */
  #steps: Step[] = [new Step()];
  /** Those before this one are done. */
  #first = 0;
  readonly #ids = new SafeIds();
  /** By the agent's own ids; `null`: it has ended. Never deleted: a key put in anew ten thousand times is slow to find. */
  readonly #calls = new Map<string, Placed | null>();
  readonly #notes = new Notes();
  readonly #cost: CostMeter;
  readonly #reply = new Reply();
  #isOver = false;
  #held = 0;

  constructor(options: TurnLogOptions) {
    this.#options = options;
    this.#cost = new CostMeter(options.costBefore);
  }

  /** Dollars of the agent's session so far: `costBefore` of its next turn. */
  get cost(): number | null {
    return this.#cost.sum;
  }

  /** About how much is kept for calls that have not ended, in bytes as they came. */
  get held(): number {
    return this.#held;
  }

  /** The call that is open under the agent's own id, as far as it is known. */
  call(toolCallId: string): ToolCallBlock | null {
    return this.#isOver ? null : (this.#calls.get(boundedId(toolCallId))?.call.block ?? null);
  }

  take(update: SessionUpdate, bytes = 0): readonly Act[] {
    const acts: Act[] = [];
    if (this.#isOver) return acts;
    if (!isRecord(update)) this.#notes.takeUnknown(update);
    else if (!this.#takeWords(update, bytes, acts) && !this.#notes.take(update)) this.#takeOther(update);
    this.#sayReady(acts);
    return acts;
  }

  /** Everything that waits is said, and the last message last. */
  end(end: TurnEnding): TurnLogEnd {
    const acts: Act[] = [];
    const ending = endingOf(end);
    const cost = this.#cost.ofTurn;
    const usage = turnUsage("usage" in end ? end.usage : null, cost);
    const { cost: _, ...tokens } = usage;
    const told = {
      reply: this.#reply.toString(),
      stopReason: ending.stopReason,
      usage: cost === null ? tokens : usage,
    };
    if (this.#isOver) return { acts, ...told };
    this.#isOver = true;
    for (const step of this.#steps.slice(this.#first))
      for (const call of step.openCalls()) this.#endCall({ call, step, held: 0 }, ending.openCall, acts);
    this.#sayReady(acts);
    for (const draft of this.#notes.finish()) acts.push({ act: "note", draft });
    acts.push({ act: "say", message: this.#lastMessage(ending, usage, cost !== null) });
    return { acts, ...told };
  }

  get #collecting(): Step {
    return this.#steps.at(-1) as Step;
  }

  #takeWords(update: Fields, bytes: number, acts: Act[]): boolean {
    switch (update.sessionUpdate) {
      case "agent_message_chunk":
        this.#addText("text", update, acts);
        return true;
      case "agent_thought_chunk":
        this.#addText("thinking", update, acts);
        return true;
      case "tool_call":
      case "tool_call_update":
        this.#takeCall(update, bytes, acts);
        return true;
      default:
        return false;
    }
  }

  #addText(kind: TextKind, { content, messageId }: Fields, acts: Act[]): void {
    const text = contentText(content);
    if (text === "") return;
    const of = typeof messageId === "string" ? boundedId(messageId) : null;
    this.#collecting.addText(kind, of, text);
    if (kind === "text") this.#reply.add(of, text);
    acts.push({ act: "emit", event: { type: "delta", kind, delta: cutText(text, mostDelta) } });
  }

  #takeCall(update: Fields, bytes: number, acts: Act[]): void {
    const id = typeof update.toolCallId === "string" ? boundedId(update.toolCallId) : "";
    const known = this.#calls.get(id);
    if (known === null && update.sessionUpdate !== "tool_call") return;
    const placed = known ?? this.#begin(id);
    const { call } = placed;
    call.take(update);
    this.#held += Math.max(0, bytes - placed.held);
    placed.held = Math.max(placed.held, bytes);
    if (call.hasEnded) {
      this.#held -= placed.held;
      this.#calls.set(id, null);
      this.#endCall(placed, null, acts);
    } else if (call.isKnown) this.#tell(call, acts);
  }

  #begin(id: string): Placed {
    if (this.#collecting.calls === mostCalls) this.#close(this.#collecting);
    const call = new AgentCall(this.#ids.take(id), this.#options.now());
    const placed = { call, step: this.#collecting, held: 0 };
    placed.step.addCall(call);
    this.#calls.set(id, placed);
    this.#reply.callBegun();
    return placed;
  }

  #tell(call: AgentCall, acts: Act[]): void {
    if (call.isTold) return;
    call.isTold = true;
    acts.push({ act: "emit", event: { type: "tool_call", call: call.block } });
  }

  #endCall({ call, step }: Placed, cut: string | null, acts: Act[]): void {
    this.#tell(call, acts);
    const { isError, content } = call.end(this.#options.terminalText, cut);
    const durationMs = Math.max(0, this.#options.now() - call.beganAt);
    acts.push({
      act: "emit",
      event: { type: "tool_result", call: call.block, isError, content, durationMs },
    });
    step.endCall(call);
    this.#close(step);
  }

  #close(step: Step): void {
    if (!step.isClosed) this.#steps.push(step.close());
  }

  /** From the oldest step on: its message, its results as they are there, and the next once all are. */
  #sayReady(acts: Act[]): void {
    for (let step = this.#steps[this.#first]; step?.isClosed === true; step = this.#steps[++this.#first]) {
      if (!step.isSaid) this.#sayStep(step, acts);
      for (const { result } of step.takeEnded())
        if (result !== null) acts.push({ act: "say", message: result });
      if (!step.isAnswered) break;
    }
    // Not each time: many may wait.
    if (this.#first * 2 < this.#steps.length) return;
    this.#steps = this.#steps.slice(this.#first);
    this.#first = 0;
  }

  #sayStep(step: Step, acts: Act[]): void {
    // No call is open here: the guard finds those of a message only where few entries lie behind it.
    for (const draft of this.#notes.flush()) acts.push({ act: "note", draft });
    const message = {
      ...this.#message(step.say()),
      usage: turnUsage(null, null),
      stopReason: "toolUse" as const,
    };
    acts.push({ act: "say", message });
  }

  #message(content: AssistantBlock[]) {
    return { role: "assistant" as const, content, api: "acp", provider: "acp", model: this.#options.agent };
  }

  /** There is one even where the agent said nothing: it is what shows that the turn has ended, and how. */
  #lastMessage(
    { stopReason, errorMessage, raw }: Ending,
    usage: TurnUsage,
    costKnown: boolean,
  ): MessageDraft {
    const words = this.#collecting.words();
    return {
      ...this.#message(words.length === 0 ? [{ type: "text", text: "" }] : words),
      usage,
      stopReason,
      ...(errorMessage !== undefined && { errorMessage }),
      skein: {
        ...(raw !== null && { finishReason: { unified: unified[stopReason], raw } }),
        ...(!costKnown && { costKnown: false }),
      },
    };
  }

  #takeOther(update: Fields): void {
    switch (update.sessionUpdate) {
      case "usage_update":
        this.#cost.take(update.cost);
        return;
      case "session_info_update":
      case "user_message_chunk":
      case "current_mode_update":
      case "available_commands_update":
      case "config_option_update":
        return;
      default:
        this.#notes.takeUnknown(update.sessionUpdate);
    }
  }
}

const unified = { stop: "stop", length: "length", error: "error", aborted: "interrupted" } as const;
