import type { SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import type { TurnEvent } from "../../agents/contract.ts";
import { isRecord } from "../../core/is-record.ts";
import type { AssistantBlock, ToolCallBlock } from "../../core/messages.ts";
import type { EntryDraft, MessageDraft } from "../../core/seal.ts";
import { cutText } from "../../core/text.ts";
import { Notes } from "./notes.ts";
import type { TextKind } from "./step.ts";
import { Step, TextBuffer } from "./step.ts";
import { AgentCall, boundedId, CallIds } from "./tool-call.ts";
import { contentText } from "./tool-content.ts";
import type { AgentTurnEnd, TurnOutcome, TurnUsage } from "./turn-outcome.ts";
import { CostMeter, outcomeOf, turnUsage } from "./turn-outcome.ts";

/** One effect of an update, applied in order. */
export type Act =
  | { readonly act: "say"; readonly message: MessageDraft }
  | { readonly act: "note"; readonly draft: EntryDraft }
  | { readonly act: "emit"; readonly event: TurnEvent };

export interface TurnLogOptions {
  /** The agent's name in the configuration, stored as the model of its messages. */
  readonly agent: string;
  /** Returns a terminal's output so far, or `null` if there is no such terminal. */
  terminalText(terminalId: string): string | null;
  now(): number;
  /** The cost of the agent's session before this turn: `0` for a new session, `null` if unknown. */
  readonly costBefore: number | null;
}

export interface TurnLogEnd {
  readonly acts: readonly Act[];
  /** The agent's last message since its last call. If there is none, its last message overall. */
  readonly reply: string;
  readonly stopReason: TurnOutcome["stopReason"];
  /** The usage to charge. Has no `cost` if the cost is unknown. */
  readonly usage: Omit<TurnUsage, "cost"> & Partial<Pick<TurnUsage, "cost">>;
}

interface OpenCall {
  readonly call: AgentCall;
  readonly step: Step;
  /** The size of the call's largest update. */
  bytes: number;
}

type Fields = Readonly<Record<string, unknown>>;

const maxDeltaChars = 400_000;

/**
 * Converts the updates in one agent turn into session entries. The results of all calls in a message are written before
 * the next message. Until all of them have arrived, later updates wait in the next step. Accepts any input that an
 * agent might send.
 */
export class TurnLog {
  readonly #options: TurnLogOptions;
  /** The last step collects updates. The steps before it are waiting to be written. */
  #steps: Step[] = [new Step()];
  /** The index of the first step that is not finished. */
  #first = 0;
  readonly #ids = new CallIds();
  /**
   * Keyed by the agent's call ID. `null` once the call has ended. Keys are kept, because deleting and adding them again
   * makes lookups slow.
   */
  readonly #calls = new Map<string, OpenCall | null>();
  readonly #notes = new Notes();
  readonly #cost: CostMeter;
  readonly #reply = new Reply();
  #hasEnded = false;
  #openCallBytes = 0;

  constructor(options: TurnLogOptions) {
    this.#options = options;
    this.#cost = new CostMeter(options.costBefore);
  }

  /** The cost of the agent's session so far, which is `costBefore` for its next turn. */
  get cost(): number | null {
    return this.#cost.sum;
  }

  /** The approximate memory used by unfinished calls. */
  get openCallBytes(): number {
    return this.#openCallBytes;
  }

  /** Returns the unfinished call with this agent ID, with the fields known so far. */
  call(toolCallId: string): ToolCallBlock | null {
    return this.#hasEnded ? null : (this.#calls.get(boundedId(toolCallId))?.call.block ?? null);
  }

  take(update: SessionUpdate, bytes = 0): readonly Act[] {
    const acts: Act[] = [];
    if (this.#hasEnded) return acts;
    if (isRecord(update)) this.#takeUpdate(update, bytes, acts);
    else this.#notes.takeUnknown(update);
    this.#writeSteps(acts);
    return acts;
  }

  /** Closes unfinished tool calls and writes all pending entries, ending with the last message. */
  end(end: AgentTurnEnd): TurnLogEnd {
    const acts: Act[] = [];
    const outcome = outcomeOf(end);
    const cost = this.#cost.turnCost;
    const usage = turnUsage("usage" in end ? end.usage : null, cost);
    const { cost: _, ...tokens } = usage;
    const summary = {
      reply: this.#reply.toString(),
      stopReason: outcome.stopReason,
      usage: cost === null ? tokens : usage,
    };
    if (this.#hasEnded) return { acts, ...summary };
    this.#hasEnded = true;
    for (const step of this.#steps.slice(this.#first))
      for (const call of step.openCalls()) this.#endCall(call, step, outcome.openCall, acts);
    this.#writeSteps(acts);
    for (const draft of this.#notes.finish()) acts.push({ act: "note", draft });
    acts.push({ act: "say", message: this.#lastMessage(outcome, usage, cost !== null) });
    return { acts, ...summary };
  }

  get #current(): Step {
    return this.#steps.at(-1) as Step;
  }

  #takeUpdate(update: Fields, bytes: number, acts: Act[]): void {
    switch (update.sessionUpdate) {
      case "agent_message_chunk":
        this.#addText("text", update, acts);
        break;
      case "agent_thought_chunk":
        this.#addText("thinking", update, acts);
        break;
      case "tool_call":
      case "tool_call_update":
        this.#takeCall(update, bytes, acts);
        break;
      case "usage_update":
        this.#cost.take(update.cost);
        break;
      case "session_info_update":
      case "user_message_chunk":
      case "current_mode_update":
      case "available_commands_update":
      case "config_option_update":
        break;
      default:
        if (!this.#notes.take(update)) this.#notes.takeUnknown(update.sessionUpdate);
    }
  }

  #addText(kind: TextKind, { content, messageId: given }: Fields, acts: Act[]): void {
    const text = contentText(content);
    if (text === "") return;
    const messageId = typeof given === "string" ? boundedId(given) : null;
    this.#current.addText(kind, messageId, text);
    if (kind === "text") this.#reply.add(messageId, text);
    acts.push({ act: "emit", event: { type: "delta", kind, delta: cutText(text, maxDeltaChars) } });
  }

  #takeCall(update: Fields, bytes: number, acts: Act[]): void {
    const id = typeof update.toolCallId === "string" ? boundedId(update.toolCallId) : "";
    const known = this.#calls.get(id);
    if (known === null && update.sessionUpdate !== "tool_call") return;
    const open = known ?? this.#beginCall(id);
    const { call, step } = open;
    call.take(update);
    this.#openCallBytes += Math.max(0, bytes - open.bytes);
    open.bytes = Math.max(open.bytes, bytes);
    if (call.hasEnded) {
      this.#openCallBytes -= open.bytes;
      this.#calls.set(id, null);
      this.#endCall(call, step, null, acts);
    } else if (call.isKnown) this.#emitCall(call, acts);
  }

  #beginCall(id: string): OpenCall {
    if (this.#current.isFull) this.#close(this.#current);
    const call = new AgentCall(this.#ids.take(id), this.#options.now());
    const open = { call, step: this.#current, bytes: 0 };
    open.step.addCall(call);
    this.#calls.set(id, open);
    this.#reply.startCall();
    return open;
  }

  #emitCall(call: AgentCall, acts: Act[]): void {
    if (call.isEmitted) return;
    call.isEmitted = true;
    acts.push({ act: "emit", event: { type: "tool_call", call: call.block } });
  }

  #endCall(call: AgentCall, step: Step, interruption: string | null, acts: Act[]): void {
    this.#emitCall(call, acts);
    const { isError, content } = call.end(this.#options.terminalText, interruption);
    const durationMs = Math.max(0, this.#options.now() - call.startedAt);
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

  /** Writes the oldest step and then its results as they arrive. Moves on once all of them have been written. */
  #writeSteps(acts: Act[]): void {
    for (let step = this.#steps[this.#first]; step?.isClosed === true; step = this.#steps[++this.#first]) {
      if (!step.isWritten) this.#writeStep(step, acts);
      for (const { result } of step.takeEnded())
        if (result !== null) acts.push({ act: "say", message: result });
      if (!step.isAnswered) break;
    }
    // Dropping finished steps copies the list, so it is done only once half of the steps are finished.
    if (this.#first * 2 < this.#steps.length) return;
    this.#steps = this.#steps.slice(this.#first);
    this.#first = 0;
  }

  #writeStep(step: Step, acts: Act[]): void {
    // Notes are written here, where no call is unfinished, because the guard looks for a message's calls only in the
    // most recent entries.
    for (const draft of this.#notes.flush()) acts.push({ act: "note", draft });
    const usage = turnUsage(null, null);
    acts.push({
      act: "say",
      message: { ...this.#message(step.write()), usage, stopReason: "toolUse" },
    });
  }

  #message(content: AssistantBlock[]) {
    return { role: "assistant" as const, content, api: "acp", provider: "acp", model: this.#options.agent };
  }

  /** The last message is written even if the agent sent no text, because it records how the turn ended. */
  #lastMessage(
    { stopReason, errorMessage, raw }: TurnOutcome,
    usage: TurnUsage,
    isCostKnown: boolean,
  ): MessageDraft {
    const blocks = this.#current.textBlocks();
    return {
      ...this.#message(blocks.length === 0 ? [{ type: "text", text: "" }] : blocks),
      usage,
      stopReason,
      ...(errorMessage !== undefined && { errorMessage }),
      skein: {
        ...(raw !== null && { finishReason: { unified: unified[stopReason], raw } }),
        ...(!isCostKnown && { costKnown: false }),
      },
    };
  }
}

const unified = { stop: "stop", length: "length", error: "error", aborted: "interrupted" } as const;

const maxReplyChars = 400_000;

interface ReplyMessage {
  /** `null` for agents that send no message IDs. */
  readonly messageId: string | null;
  readonly text: TextBuffer;
  isBlank: boolean;
}

/**
 * A turn's reply: the agent's last message since its last call, or its last message overall if there is none since. A
 * new message ID starts a new message. If other text has a message ID, text without one is a notice and is not part of
 * the reply.
 */
class Reply {
  #current = startMessage(null);
  #previous: ReplyMessage | null = null;

  add(messageId: string | null, text: string): void {
    if (messageId !== this.#current.messageId) {
      if (messageId === null && !this.#current.isBlank) return;
      this.#next(messageId);
    }
    this.#current.text.add("text", null, text);
    if (text.trim() !== "") this.#current.isBlank = false;
  }

  startCall(): void {
    this.#next(null);
  }

  toString(): string {
    const { text } = this.#current.isBlank && this.#previous !== null ? this.#previous : this.#current;
    return text.toString();
  }

  #next(messageId: string | null): void {
    if (!this.#current.isBlank) this.#previous = this.#current;
    this.#current = startMessage(messageId);
  }
}

function startMessage(messageId: string | null): ReplyMessage {
  return { messageId, text: new TextBuffer(maxReplyChars), isBlank: true };
}
