import type { ToolCallBlock } from "../../core/messages.ts";
import { shortHash } from "../../core/short-hash.ts";
import type { AnsweredCall } from "./answer-calls.ts";
import { canonicalJson } from "./canonical-json.ts";

/** So often in a row, and it is a loop. */
const most = 3;

/** Sees when a model asks for the very same again and gets the very same, message after message. */
export class Repeats {
  #last = "";
  #times = 0;

  /** `true`: the calls of a message, all of them, gave the same results three times in a row. */
  see(calls: readonly AnsweredCall[]): boolean {
    return this.#count(
      calls.map(({ call, result }) => [call.name, call.arguments, result.isError, result.content]),
    );
  }

  /** The same for calls that are invalid and were not made. */
  seeInvalid(calls: readonly Pick<ToolCallBlock, "name" | "arguments">[]): boolean {
    return this.#count(calls.map((call) => [call.name, call.arguments, "invalid"]));
  }

  #count(calls: readonly (readonly unknown[])[]): boolean {
    const each = calls.map((call) => shortHash(canonicalJson(call)));
    // The same call twice in one message is said twice, not tried again.
    const step = [...new Set(each)].toSorted().join(" ");
    this.#times = step === this.#last ? this.#times + 1 : 1;
    this.#last = step;
    return this.#times >= most;
  }

  /** Somebody said something: what is asked again may well be meant. */
  forget(): void {
    this.#last = "";
    this.#times = 0;
  }
}
