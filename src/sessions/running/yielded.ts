import type { Entry } from "../../core/entries.ts";
import type { ToolResultMessage } from "../../core/messages.ts";
import { textOf } from "../../core/messages.ts";
import type { MessageDraft } from "../../core/seal.ts";
import { isRecord } from "../../core/shape.ts";
import type { Held, RunStore } from "../../runs/contract.ts";
import type { SleepRequest } from "../../runtimes/contract.ts";

/** What the yields at the end of a branch wait for; where one does not say, everything that the run started. */
export function yieldedFor(tail: readonly Entry[]): SleepRequest {
  const named = lastResults(tail)
    .filter(({ toolName, isError }) => toolName === "sessions_yield" && isError !== true)
    .map(({ details, content }) => idsIn(details) ?? idsIn(parsed(textOf(content))));
  if (named.length === 0 || named.includes(null)) return {};
  return { waitFor: [...new Set(named.flatMap((ids) => ids ?? []))] };
}

/** Confirms the replies of other runs that these messages, as they stand in the session, brought to a run. */
export async function confirmReplies(
  { runs }: { readonly runs: Pick<RunStore, "confirmReply"> },
  held: Held,
  written: readonly (MessageDraft | ToolResultMessage)[],
): Promise<void> {
  for (const message of written) {
    if (message.role !== "toolResult" || !waitingTools.includes(message.toolName ?? "")) continue;
    const { runId } = fieldsOf(message.details) ?? fieldsOf(parsed(textOf(message.content))) ?? {};
    if (typeof runId === "string") await runs.confirmReply(held, runId);
  }
}

const waitingTools = ["sessions_send", "sessions_spawn"];

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> | null {
  return isRecord(value) ? value : null;
}

/** Behind the last message that is no result. */
export function lastResults(tail: readonly Entry[]): readonly ToolResultMessage[] {
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
