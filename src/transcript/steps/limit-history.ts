import type { StepResult, TranscriptMessage } from "../contract.ts";
import type { Recorder } from "../derive.ts";

/**
 * Keeps the last `limit` user turns and what followed them; without a limit, everything. The last user turn is always
 * kept. A group of user messages in a row is one turn.
 */
export function limitHistory(
  messages: readonly TranscriptMessage[],
  { limit, record }: { readonly limit?: number | undefined; readonly record: Recorder },
): StepResult {
  if (limit === undefined || Number.isNaN(limit)) return { messages, changes: [] };
  const turns = userTurns(messages);
  const kept = Math.max(1, Math.floor(limit));
  const gone = turns.length - kept;
  const from = gone > 0 ? turns[gone] : undefined;
  if (from === undefined) return { messages, changes: [] };
  const note = `${counted(from, "older message")} with ${counted(gone, "user turn")} left out; ${counted(kept, "user turn")} kept.`;
  return { messages: messages.slice(from), changes: [record("history_limited", note)] };
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

/** Where each user turn begins. */
function userTurns(messages: readonly TranscriptMessage[]): number[] {
  const turns: number[] = [];
  for (const [index, { role }] of messages.entries()) {
    if (role === "user" && messages[index - 1]?.role !== "user") turns.push(index);
  }
  return turns;
}
