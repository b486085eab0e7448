import type { Refusal } from "../contract.ts";
import { emptyText, missing, unknownField, unsupported, wrongType } from "../openai-shared-errors.ts";
import type { Fields } from "../openai-shared-values.ts";
import { isFields } from "../openai-shared-values.ts";
import { checkCalls } from "./check-calls.ts";
import { checkContent } from "./check-content.ts";

const roles = ["system", "assistant", "user", "function", "tool", "developer"] as const;
type Role = (typeof roles)[number];

/** The fields of each role (API reference, Chat, "messages"). */
const known: Readonly<Record<Role, ReadonlySet<string>>> = {
  system: new Set(["role", "content", "name"]),
  developer: new Set(["role", "content", "name"]),
  user: new Set(["role", "content", "name"]),
  assistant: new Set([
    "role",
    "content",
    "name",
    "refusal",
    "audio",
    "annotations",
    "tool_calls",
    "function_call",
  ]),
  tool: new Set(["role", "content", "name", "tool_call_id"]),
  function: new Set(["role", "content", "name"]),
};

/** Models whose own servers take `reasoning_content` back (DeepSeek, "Thinking Mode"; Moonshot, "Kimi K2 Thinking"). */
const reasoningModels = /^(?:deepseek|kimi)-/;
const withReasoning = new Set([...known.assistant, "reasoning_content"]);

/** Each message by itself: its role, its fields, its content and its calls. */
export function checkMessages(messages: readonly unknown[], model?: unknown): Refusal | null {
  const takesReasoning = reasoningModels.test(String(model));
  for (const [index, message] of messages.entries()) {
    const wrong = checkMessage(message, index, takesReasoning);
    if (wrong !== null) return wrong;
  }
  return null;
}

function checkMessage(message: unknown, index: number, takesReasoning: boolean): Refusal | null {
  const at = `messages[${index}]`;
  if (!isFields(message)) return wrongType(at, "an object", message);
  const { role } = message;
  if (role === undefined) return missing(`${at}.role`, "bad_role");
  if (!isRole(role)) return unsupported(`${at}.role`, role, roles, "bad_role");
  return (
    unknownField(at, message, takesReasoning && role === "assistant" ? withReasoning : known[role]) ??
    checkContent(message, role, index) ??
    (role === "assistant" ? checkCalls(message, index) : null) ??
    (role === "tool" ? checkCallId(message, at) : null)
  );
}

function isRole(role: unknown): role is Role {
  return roles.some((each) => each === role);
}

/** "Tool call that this message is responding to." (API reference, required) */
function checkCallId({ tool_call_id: id }: Fields, at: string): Refusal | null {
  const param = `${at}.tool_call_id`;
  if (id === undefined) return missing(param, "bad_call_id");
  if (typeof id !== "string") return wrongType(param, "a string", id, "bad_call_id");
  return id === "" ? emptyText(param, "bad_call_id") : null;
}
