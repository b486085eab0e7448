import type { Entry } from "../core/entries.ts";
import { isRecord } from "../core/is-record.ts";
import type { AssistantMessage } from "../core/messages.ts";

/** The kinds of message that can come last on the branch of a run that has lost its owner. */
export const tails = [
  "none",
  "user",
  "custom_message",
  "bashExecution",
  "custom",
  "other",
  "assistant_open_calls",
  "results_answered",
  "results_of_yield",
  "assistant_stop",
  "assistant_length",
  "assistant_error",
  "assistant_aborted",
] as const;

export type Tail = (typeof tails)[number];

/**
 * `finish_calls` repeats the calls that are safe to repeat, gives the others a result that reports the loss, and
 * continues. `sleep` becomes `ask_model` if the run has been woken since.
 */
export type RecoveryAction =
  | "run_turn"
  | "finish_calls"
  | "ask_model"
  | "sleep"
  | "close"
  | "retry_or_close"
  | "close_aborted";

export const recoveryActions = {
  none: "run_turn",
  user: "run_turn",
  custom_message: "run_turn",
  bashExecution: "run_turn",
  custom: "run_turn",
  other: "run_turn",
  assistant_open_calls: "finish_calls",
  results_answered: "ask_model",
  results_of_yield: "sleep",
  assistant_stop: "close",
  assistant_length: "close",
  assistant_error: "retry_or_close",
  assistant_aborted: "close_aborted",
} as const satisfies Record<Tail, RecoveryAction>;

/** The recovery decision for a branch. */
export type Recovery = Exclude<RecoveryAction, "retry_or_close"> | "retry" | "close_error";

export interface RecoveryOptions {
  /** `true` if the run has been woken since it yielded. */
  readonly wasWoken: boolean;
  readonly mostAttempts: number;
  /** When the run was first claimed. */
  readonly startedAt: number | null;
}

const closing: readonly RecoveryAction[] = ["close", "retry_or_close", "close_aborted"];

/** Decides how a run continues. An answer from before the run's first claim belongs to another run. */
export function recoveryOf(path: readonly Entry[], options: RecoveryOptions): Recovery {
  const { tail, answer, at } = tailOf(path);
  const action = recoveryActions[tail];
  if (closing.includes(action) && at !== null && options.startedAt !== null && at < options.startedAt)
    return "run_turn";
  if (action === "sleep" && options.wasWoken) return "ask_model";
  if (action !== "retry_or_close") return action;
  return answer !== null && mayRetry(answer, options.mostAttempts) ? "retry" : "close_error";
}

/** Retries only answers that the agent loop marked as retryable, up to the maximum number of attempts. */
function mayRetry(message: AssistantMessage, most: number): boolean {
  const skein: unknown = message.skein;
  if (!isRecord(skein)) return false;
  return skein.retryable === true && typeof skein.attempts === "number" && skein.attempts < most;
}

/**
 * Classifies the last message on a branch. Results are considered together with their calls. Entries that are not
 * messages are skipped.
 */
export function tailOf(path: readonly Entry[]): {
  readonly tail: Tail;
  /** The last assistant message. */
  readonly answer: AssistantMessage | null;
  /** When the message was written, or `null` if unknown. */
  readonly at: number | null;
} {
  const none = { answer: null, at: null };
  const results = new Map<string, Entry>();
  for (const entry of path.toReversed()) {
    if (entry.type === "custom_message" && results.size === 0) return { tail: "custom_message", ...none };
    if (entry.type === "custom_message") break;
    if (entry.type !== "message") continue;
    const { message } = entry;
    if (message.role === "toolResult") {
      if (!results.has(message.toolCallId)) results.set(message.toolCallId, entry);
    } else if (message.role === "assistant")
      return { tail: tailOfAnswer(message, results), answer: message, at: timeOf(entry) };
    else if (results.size === 0) return { tail: tailOfRole(message.role), ...none };
    else break;
  }
  // The calls for these results are not on the branch, so the model has not seen the results yet.
  return { tail: results.size === 0 ? "none" : "results_answered", ...none };
}

function timeOf({ timestamp }: Entry): number | null {
  const at = Date.parse(timestamp);
  return Number.isNaN(at) ? null : at;
}

function tailOfRole(role: string): Tail {
  return role === "user" || role === "bashExecution" || role === "custom" ? role : "other";
}

function tailOfAnswer(message: AssistantMessage, results: ReadonlyMap<string, Entry>): Tail {
  if (message.stopReason === "error") return "assistant_error";
  if (message.stopReason === "aborted") return "assistant_aborted";
  const calls = message.content.filter((block) => block.type === "toolCall");
  if (calls.some(({ id }) => !results.has(id))) return "assistant_open_calls";
  if (calls.some(({ id, name }) => name === "sessions_yield" && hasYielded(results.get(id)))) {
    return "results_of_yield";
  }
  if (calls.length > 0 || results.size > 0) return "results_answered";
  return message.stopReason === "length" ? "assistant_length" : "assistant_stop";
}

/** Reads the result's details or, if there are none, its text as JSON. */
function hasYielded(entry: Entry | undefined): boolean {
  if (entry?.type !== "message" || entry.message.role !== "toolResult") return false;
  const { details, content, isError } = entry.message;
  if (isError === true) return false;
  if (isRecord(details) && details.status !== undefined) return details.status === "yielded";
  const text = typeof content === "string" ? content : content.find((block) => block.type === "text")?.text;
  return statusIn(text ?? "") === "yielded";
}

function statusIn(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value.status : null;
  } catch {
    return null; // Not a `sessions_yield` result.
  }
}
