import type { AssistantMessage, ToolCallBlock, ToolResultMessage } from "../../core/messages.ts";
import type { Change, StepResult, TranscriptMessage, TranscriptPolicy } from "../contract.ts";
import type { StepOptions } from "../derive.ts";
import { derive, insertMessage } from "../derive.ts";

/**
 * Step 5, repeated after the history limit: puts each result directly after its call, in the order of the calls. Drops
 * orphaned and duplicate results. A call without a result gets a synthetic result or is dropped, depending on the
 * policy. In an aborted answer, such calls are always dropped. IDs must already be unique (step 4). If the policy turns
 * the repair off, results are still sorted, because parallel calls finish in any order.
 */
export function repairToolPairing(
  messages: readonly TranscriptMessage[],
  { policy, record }: Pick<StepOptions, "policy" | "record">,
): StepResult {
  if (isPaired(messages)) return { messages, changes: [] };
  if (!policy.repairToolPairing) return { messages: sortResults(messages), changes: [] };
  const changes: Change[] = [];
  const tell: Tell = (...told) => changes.push(record(...told));
  const results = resultsByCall(messages, tell);
  const after: TranscriptMessage[] = [];
  for (const message of messages) {
    if (message.role === "toolResult") continue;
    if (message.role !== "assistant") {
      after.push(message);
      continue;
    }
    const { answer, behind } = attachResults(message, results, policy, tell);
    after.push(answer);
    for (const result of behind) after.push(result);
  }
  return { messages: after, changes };
}

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

/** Sorts the results that follow an answer in the order of its calls. Results of other calls come last. */
function sortResults(messages: readonly TranscriptMessage[]): readonly TranscriptMessage[] {
  const sorted: TranscriptMessage[] = [];
  for (let at = 0; at < messages.length; ) {
    const message = messages[at++] as TranscriptMessage;
    sorted.push(message);
    if (message.role !== "assistant") continue;
    const calls = message.content.flatMap((block) => (block.type === "toolCall" ? [block.id] : []));
    const results: ToolResultMessage[] = [];
    for (let next = messages[at]; next?.role === "toolResult"; next = messages[++at]) results.push(next);
    const placeOf = ({ toolCallId }: ToolResultMessage) => {
      const index = calls.indexOf(toolCallId);
      return index === -1 ? calls.length : index;
    };
    sorted.push(...results.toSorted((a, b) => placeOf(a) - placeOf(b)));
  }
  return sorted;
}

type Tell = (kind: string, note: string, message: TranscriptMessage) => void;

interface Found {
  readonly message: ToolResultMessage;
  /** `true` if something other than a result is between this result and its call. */
  readonly apart: boolean;
}

function resultsByCall(messages: readonly TranscriptMessage[], tell: Tell): ReadonlyMap<string, Found> {
  const calls = new Map<string, number>();
  const results = new Map<string, Found>();
  let speaker = -1;
  for (const [index, message] of messages.entries()) {
    if (message.role !== "toolResult") {
      speaker = index;
      if (message.role !== "assistant") continue;
      for (const block of message.content) if (block.type === "toolCall") calls.set(block.id, index);
      continue;
    }
    const call = calls.get(message.toolCallId);
    if (call === undefined) {
      tell("orphan_result", "A result without a matching call is dropped.", message);
    } else if (results.has(message.toolCallId)) {
      tell("duplicate_result", "A second result for the same call is dropped.", message);
    } else {
      results.set(message.toolCallId, { message, apart: call !== speaker });
    }
  }
  return results;
}

function attachResults(
  message: AssistantMessage,
  results: ReadonlyMap<string, Found>,
  policy: TranscriptPolicy,
  tell: Tell,
): { readonly answer: AssistantMessage; readonly behind: readonly ToolResultMessage[] } {
  const behind: ToolResultMessage[] = [];
  const gone = new Set<ToolCallBlock>();
  const made = policy.missingResults === "synthetic" && message.stopReason !== "aborted";
  for (const block of message.content) {
    if (block.type !== "toolCall") continue;
    const found = results.get(block.id);
    if (found !== undefined) {
      if (found.apart) tell("result_moved", "A result is moved after its call.", found.message);
      behind.push(renameResult(found.message, block.name, tell));
    } else if (made) {
      tell(
        "result_made",
        `The call to ${block.name} has no result, so a result that says so is added.`,
        message,
      );
      behind.push(insertMessage(createMissingResult(block)));
    } else {
      tell("call_removed", `The call to ${block.name} has no result and is dropped.`, message);
      gone.add(block);
    }
  }
  if (gone.size === 0) return { answer: message, behind };
  const content = message.content.filter((block) => block.type !== "toolCall" || !gone.has(block));
  return { answer: derive(message, { content }), behind };
}

/** Uses the call's tool name because some providers also match results by name. */
function renameResult(result: ToolResultMessage, toolName: string, tell: Tell): ToolResultMessage {
  if (result.toolName === toolName) return result;
  tell("result_renamed", `A result is renamed to match its call to ${toolName}.`, result);
  return derive(result, { toolName });
}

const missingResultText =
  "[skein] No result was recorded for this call: the run was interrupted before it ended.";

/** Creates the result that stands in for one that was never recorded, for sessions and requests. */
export function createMissingResult({ id, name }: ToolCallBlock) {
  const content = [{ type: "text" as const, text: missingResultText }];
  return {
    role: "toolResult",
    toolCallId: id,
    toolName: name,
    content,
    isError: true,
  } as const satisfies ToolResultMessage;
}
