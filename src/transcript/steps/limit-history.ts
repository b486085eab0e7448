import type { StepResult, TranscriptMessage } from "../contract.ts";
import type { Recorder } from "../derive.ts";
import { isInserted } from "../derive.ts";

/**
 * Keeps the last `historyLimit` user turns and what followed them; without a limit, everything. The last user turn is always
 * kept. A group of user messages in a row is one turn.
 */
export function limitHistory(
  messages: readonly TranscriptMessage[],
  { historyLimit: limit, record }: { readonly historyLimit?: number | undefined; readonly record: Recorder },
): StepResult {
  if (limit === undefined || Number.isNaN(limit)) return { messages, changes: [] };
  const turns = userTurns(messages);
  const kept = Math.max(1, Math.floor(limit));
  const gone = turns.length - kept;
  const from = gone > 0 ? turns[gone] : undefined;
  if (from === undefined) return { messages, changes: [] };
  const note = `Left out: ${counted(from, "older message")} with ${counted(gone, "user turn")}. Kept: the last ${kept}.`;
  return { messages: messages.slice(from), changes: [record("history_limited", note)] };
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

/** Where each user turn begins. What a step put in is no turn of the conversation. */
function userTurns(messages: readonly TranscriptMessage[]): number[] {
  const isTurn = (message: TranscriptMessage | undefined) => message?.role === "user" && !isInserted(message);
  const turns: number[] = [];
  for (const [index, message] of messages.entries()) {
    if (isTurn(message) && !isTurn(messages[index - 1])) turns.push(index);
  }
  return turns;
}
