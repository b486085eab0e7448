import type { ContextMessage } from "../core/context.ts";
import type { BashExecutionMessage, UserMessage } from "../core/messages.ts";
import type { TranscriptMessage } from "./contract.ts";

/** Converts a context message to the form that the model sees, or returns `null` if the model does not see it. */
export function modelMessage(message: ContextMessage): TranscriptMessage | null {
  switch (message.role) {
    case "user":
    case "assistant":
    case "toolResult":
      return message;
    case "custom":
      return asUser(message.content, message.timestamp);
    case "bashExecution":
      return message.excludeFromContext === true ? null : asUser(commandText(message), message.timestamp);
    case "compactionSummary":
      return asUser(summaryText("Summary of the conversation so far:", message.summary), message.timestamp);
    case "branchSummary":
      return asUser(summaryText("Summary of an abandoned branch:", message.summary), message.timestamp);
    default:
      return null;
  }
}

function asUser(content: UserMessage["content"], timestamp: number | undefined): UserMessage {
  return { role: "user", content, ...(timestamp === undefined ? {} : { timestamp }) };
}

/** Escapes the summary's text so that it cannot close its own tag. */
function summaryText(lead: string, summary: string): string {
  return `${lead}\n<summary>\n${escapeSummaryTag(summary)}\n</summary>`;
}

function commandText(message: BashExecutionMessage): string {
  const ending =
    message.cancelled === true
      ? "It was cancelled."
      : message.exitCode !== undefined && message.exitCode !== 0
        ? `It exited with code ${message.exitCode}.`
        : null;
  const cut = message.truncated === true ? "The output is truncated." : null;
  const parts = [`The user ran \`${message.command}\`:`, message.output || "(no output)", ending, cut];
  return parts.filter((part) => part !== null).join("\n");
}

/** The tags around quoted text in prompts. */

const names = ["conversation", "previous-summary", "later-summary", "known-files", "focus", "summary"];

/** Characters that can occur between the bracket and the name of a look-alike tag. */
const between = "[\\s/\\\\\\p{Cf}\\p{Cc}]*";

function tagPattern(names: readonly string[]): RegExp {
  return new RegExp(`<(?=${between}(?:${names.join("|")})(?![\\p{L}\\p{N}_]))`, "giu");
}

const anyTag = tagPattern(names);
const summaryTag = tagPattern(["summary"]);

/** Prevents text from opening or closing any of the tags. */
export function escapeTags(text: string): string {
  return text.replace(anyTag, "&lt;");
}

/** Prevents text from opening or closing the one tag that models see. */
function escapeSummaryTag(text: string): string {
  return text.replace(summaryTag, "&lt;");
}
