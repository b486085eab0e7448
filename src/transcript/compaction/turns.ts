import type { ContextMessage } from "../../core/context.ts";

/** Where a conversation may be cut in two so that each half still makes sense to a provider. */

const userRoles: ReadonlySet<string> = new Set(["user", "custom", "bashExecution", "branchSummary"]);

/** Whether a message begins a turn, or belongs to what begins one: whatever the model sees as the user's. */
export function isUserTurn(message: ContextMessage | undefined): boolean {
  return message !== undefined && userRoles.has(message.role);
}

/** Tells of each place between two messages what it is. Place `i` is the one before `messages[i]`. */
export interface Places {
  /** A user turn begins here, and no call is open. */
  isTurn(place: number): boolean;
  /** Inside a turn: the answer goes on behind an answered call group, or behind an answer without calls. */
  isInner(place: number): boolean;
}

/**
 * `from` is where the conversation begins. With `isCut` more of it stands before: a result without a call is then taken
 * to answer one there.
 */
export function placesOf(messages: readonly ContextMessage[], from: number, isCut: boolean): Places {
  const open = openCalls(messages, from, isCut);
  const isFree = (place: number) => place >= from && open[place] === 0;
  return {
    isTurn: (place) => isFree(place) && isUserTurn(messages[place]),
    isInner: (place) =>
      place > from &&
      isFree(place) &&
      messages[place]?.role === "assistant" &&
      (messages[place - 1]?.role === "toolResult" || messages[place - 1]?.role === "assistant"),
  };
}

/** How many calls are on one side of a place and their results on the other. */
function openCalls(messages: readonly ContextMessage[], from: number, isCut: boolean): Int32Array {
  const steps = new Int32Array(messages.length + 2);
  const span = (first: number, last: number) => {
    steps[first] = (steps[first] ?? 0) + 1;
    steps[last + 1] = (steps[last + 1] ?? 0) - 1;
  };
  /** The last call of an id that has no result yet. */
  const callOf = new Map<string, number>();
  for (let index = from; index < messages.length; index++) {
    const message = messages[index];
    if (message?.role === "assistant") {
      for (const block of message.content) if (block.type === "toolCall") callOf.set(block.id, index);
    } else if (message?.role === "toolResult") {
      const call = callOf.get(message.toolCallId);
      if (call !== undefined) span(call + 1, index);
      else if (isCut) span(from, index);
      callOf.delete(message.toolCallId);
    }
  }
  for (let place = 1; place < steps.length; place++)
    steps[place] = (steps[place] ?? 0) + (steps[place - 1] ?? 0);
  return steps;
}
