import type { SleepRequest } from "../../agents/contract.ts";
import type { Entry } from "../../core/entries.ts";
import type { ToolResultMessage } from "../../core/messages.ts";
import { textOf } from "../../core/messages.ts";
import type { MessageDraft } from "../../core/seal.ts";
import { isRecord } from "../../core/shape.ts";

/** What the yields at the end of a branch wait for; where one does not say, everything that the run started. */
export function yieldedFor(tail: readonly Entry[]): SleepRequest {
  const named = lastResults(tail)
    .filter(({ toolName, isError }) => toolName === "sessions_yield" && isError !== true)
    .map(({ details, content }) => idsIn(details) ?? idsIn(parsed(textOf(content))));
  if (named.length === 0 || named.includes(null)) return {};
  return { waitFor: [...new Set(named.flatMap((ids) => ids ?? []))] };
}

/** The run that a tool call started and this message is the result of; `null`: there is none. */
export function runStartedBy(message: MessageDraft): string | null {
  if (message.role !== "toolResult" || !waitingTools.includes(message.toolName ?? "")) return null;
  const { runId } = fieldsOf(message.details) ?? fieldsOf(parsed(textOf(message.content))) ?? {};
  return typeof runId === "string" ? runId : null;
}

const waitingTools = ["sessions_send", "sessions_spawn"];

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> | null {
  return isRecord(value) ? value : null;
}

/** Behind the last message that is no result. */
function lastResults(tail: readonly Entry[]): readonly ToolResultMessage[] {
  const said = tail.flatMap((entry) => (entry.type === "message" ? [entry.message] : []));
  const begin = said.findLastIndex(({ role }) => role !== "toolResult");
  return said.slice(begin + 1).filter((message) => message.role === "toolResult");
}

function idsIn(value: unknown): readonly string[] | null {
  if (!isRecord(value) || !Array.isArray(value.waitingFor)) return null;
  return value.waitingFor.every((id) => typeof id === "string") ? value.waitingFor : null;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null; // no JSON: no result of ours
  }
}
