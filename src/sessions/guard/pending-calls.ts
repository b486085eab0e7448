import type { Entry } from "../../core/entries.ts";
import type { AssistantMessage, ToolCallBlock } from "../../core/messages.ts";
import { isRecord } from "../../core/shape.ts";

/** Tool calls that a branch still owes a result for, in the order of the calls. */
export interface PendingCalls {
  readonly calls: readonly ToolCallBlock[];
  /** The entry of the assistant message that made them. */
  readonly entryId: string | null;
}

const none: PendingCalls = { calls: [], entryId: null };
/** A message that did not come to its end is not answered. */
const broken = ["error", "aborted"];

/** Looks back from the end of a path; entries that are no messages are passed by. */
export function pendingCalls(path: readonly Entry[]): PendingCalls {
  const answered = new Set<string>();
  for (const entry of path.toReversed()) {
    if (entry.type === "custom_message") return none;
    if (entry.type !== "message") continue;
    const { message } = entry;
    if (message.role === "toolResult") answered.add(message.toolCallId);
    else if (message.role !== "assistant" || broken.includes(message.stopReason ?? "")) return none;
    else return { calls: callsOf(message).filter((call) => !answered.has(call.id)), entryId: entry.id };
  }
  return none;
}

export function callsOf(message: AssistantMessage): ToolCallBlock[] {
  return message.content.filter((block) => block.type === "toolCall");
}

const toolName = /^[A-Za-z0-9_-]{1,64}$/;

/** What keeps a call from being made; `null`: nothing. */
export function callProblem(call: {
  readonly id?: unknown;
  readonly name?: unknown;
  readonly arguments?: unknown;
}): string | null {
  if (typeof call.id !== "string" || call.id === "") return "it has no id";
  if (typeof call.name !== "string" || !toolName.test(call.name))
    return `its name does not match ${toolName.source}`;
  return isRecord(call.arguments) ? null : "its arguments are not an object";
}
