import type { AssistantBlock } from "../../../core/messages.ts";
import type { TextKind } from "./texts.ts";
import { Texts } from "./texts.ts";
import { AgentCall, mostArguments } from "./tool-call.ts";

/** Words of one step; and at least so many behind each of its calls. */
const mostCharacters = 400_000;
const leastBehindCall = 20_000;
/** What its calls are given, all together; and at least so much of each. */
const mostGiven = 400_000;
const leastGiven = 2000;
/** The guard looks back a thousand entries for a call; a step with as many would lose its first. */
export const mostCalls = 100;

/**
 * What becomes one assistant message: words and calls in their order. Once one of its calls has ended it takes nothing
 * more, and words behind the last call belong to the next.
 */
export class Step {
  readonly #parts: (Texts | AgentCall)[] = [];
  #texts: Texts;
  #left = mostCharacters;
  #calls = 0;
  /** Results that can be said, in the order in which they came. */
  readonly #ended: AgentCall[] = [];
  #answered = 0;
  isClosed = false;
  isSaid = false;

  constructor(begun = new Texts(mostCharacters)) {
    this.#texts = begun;
  }

  get calls(): number {
    return this.#calls;
  }

  get isAnswered(): boolean {
    return this.#answered === this.#calls;
  }

  addText(kind: TextKind, messageId: string | null, text: string): void {
    this.#texts.add(kind, messageId, text);
  }

  addCall(call: AgentCall): void {
    this.#left = Math.max(leastBehindCall, this.#left - this.#texts.length);
    this.#parts.push(this.#texts, call);
    this.#texts = new Texts(this.#left);
    this.#calls++;
  }

  /** Those that have no result yet, in order. */
  openCalls(): readonly AgentCall[] {
    return this.#parts.filter((part) => part instanceof AgentCall && part.result === null) as AgentCall[];
  }

  endCall(call: AgentCall): void {
    this.#ended.push(call);
  }

  /** The step that comes after it, with the words that this one had behind its calls. */
  close(): Step {
    this.isClosed = true;
    return new Step(this.#texts);
  }

  /** What it says with its calls; the words behind them are the next step's. */
  say(): AssistantBlock[] {
    this.isSaid = true;
    let left = mostGiven;
    return this.#parts.flatMap((part): AssistantBlock[] => {
      if (part instanceof Texts) return part.blocks();
      const block = part.say(Math.max(leastGiven, Math.min(left, mostArguments)));
      left -= JSON.stringify(block.arguments).length;
      return [block];
    });
  }

  /** The words of a step without calls. */
  words(): AssistantBlock[] {
    return this.#texts.blocks();
  }

  /** Those whose results are to be said now, each once. */
  takeEnded(): readonly AgentCall[] {
    const ended = this.#ended.splice(0);
    this.#answered += ended.length;
    return ended;
  }
}
