import type { AssistantMessage, ToolCallBlock, ToolResultMessage } from "../../core/messages.ts";
import type { Change, StepResult, TranscriptMessage, TranscriptPolicy } from "../contract.ts";
import type { Recorder } from "../derive.ts";
import { derive, inserted } from "../derive.ts";

/** What stands for a result that was never recorded. */
export const missingResultText =
  "[skein] No result was recorded for this call: the run was interrupted before it ended.";

/**
 * Step 5, and once more after the limit: each result directly behind its call, in the calls' order. Results that
 * answer no earlier call, and second ones, are dropped; a call without a result gets one or goes, by the policy. Calls
 * of an answer that was cut off always go. Ids must be unique (step 4).
 */
export function repairToolPairing(
  messages: readonly TranscriptMessage[],
  { policy, record }: { readonly policy: TranscriptPolicy; readonly record: Recorder },
): StepResult {
  if (!policy.repairToolPairing || isPaired(messages)) return { messages, changes: [] };
  const changes: Change[] = [];
  const results = resultsByCall(messages, (note, kind, message) => changes.push(record(kind, note, message)));
  const after: TranscriptMessage[] = [];
  for (const [index, message] of messages.entries()) {
    if (message.role === "toolResult") continue;
    if (message.role !== "assistant") {
      after.push(message);
      continue;
    }
    const tell = (kind: string, note: string) => changes.push(record(kind, note, message));
    const { answer, behind } = withResults(message, index, results, policy, tell);
    after.push(answer, ...behind);
  }
  return { messages: after, changes };
}

/** Whether nothing is to be done. */
function isPaired(messages: readonly TranscriptMessage[]): boolean {
  let at = 0;
  while (at < messages.length) {
    const message = messages[at++];
    if (message?.role === "toolResult") return false;
    if (message?.role !== "assistant") continue;
    for (const block of message.content) {
      if (block.type !== "toolCall") continue;
      const result = messages[at++];
      if (result?.role !== "toolResult" || result.toolCallId !== block.id) return false;
      if (result.toolName !== block.name) return false;
    }
  }
  return true;
}

interface Found {
  readonly call: number;
  readonly index: number;
  readonly message: ToolResultMessage;
}

function resultsByCall(
  messages: readonly TranscriptMessage[],
  tell: (note: string, kind: string, message: ToolResultMessage) => void,
): ReadonlyMap<string, Found> {
  const calls = new Map<string, number>();
  const results = new Map<string, Found>();
  for (const [index, message] of messages.entries()) {
    if (message.role === "assistant") {
      for (const block of message.content) if (block.type === "toolCall") calls.set(block.id, index);
    }
    if (message.role !== "toolResult") continue;
    const call = calls.get(message.toolCallId);
    if (call === undefined) {
      tell("A result that answers no call is dropped.", "orphan_result", message);
    } else if (results.has(message.toolCallId)) {
      tell("A second result of one call is dropped.", "duplicate_result", message);
    } else {
      results.set(message.toolCallId, { call, index, message });
    }
  }
  return results;
}

function withResults(
  message: AssistantMessage,
  index: number,
  results: ReadonlyMap<string, Found>,
  policy: TranscriptPolicy,
  tell: (kind: string, note: string) => void,
): { readonly answer: AssistantMessage; readonly behind: readonly ToolResultMessage[] } {
  const behind: ToolResultMessage[] = [];
  const gone = new Set<ToolCallBlock>();
  const made = policy.missingResults === "synthetic" && message.stopReason !== "aborted";
  for (const block of message.content) {
    if (block.type !== "toolCall") continue;
    const found = results.get(block.id);
    if (found !== undefined) {
      if (found.index !== index + behind.length + 1)
        tell("result_moved", "A result is moved behind its call.");
      behind.push(named(found.message, block.name, tell));
    } else if (made) {
      tell("result_made", `The call of ${block.name} has no result; it gets one that says so.`);
      behind.push(missingResult(block));
    } else {
      tell("call_removed", `The call of ${block.name} has no result and is dropped.`);
      gone.add(block);
    }
  }
  if (gone.size === 0) return { answer: message, behind };
  const content = message.content.filter((block) => block.type !== "toolCall" || !gone.has(block));
  return { answer: derive(message, { content }), behind };
}

/** Some providers pair by name too. */
function named(
  result: ToolResultMessage,
  toolName: string,
  tell: (kind: string, note: string) => void,
): ToolResultMessage {
  if (result.toolName === toolName) return result;
  tell("result_renamed", `A result bears the name of its call, ${toolName}.`);
  return derive(result, { toolName });
}

function missingResult({ id, name }: ToolCallBlock): ToolResultMessage {
  const content = [{ type: "text" as const, text: missingResultText }];
  return inserted({ role: "toolResult", toolCallId: id, toolName: name, content, isError: true });
}
