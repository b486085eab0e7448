import type { Refusal } from "../contract.ts";
import type { Fields } from "../openai-shared-values.ts";
import { isBlank, isFields, listOf } from "../openai-shared-values.ts";
import { checkCallId, checkCallSchemas, checkCalls, checkName } from "./check-calls.ts";
import { checkChunks } from "./check-chunks.ts";
import type { Place } from "./errors.ts";
import { extraField, missing, refuse, unknownTag, wrongType } from "./errors.ts";

const roles = ["system", "user", "assistant", "tool"];
/** The fields of each role (API reference, SystemMessage, UserMessage, AssistantMessage, ToolMessage). */
const known: Readonly<Record<string, ReadonlySet<string>>> = {
  system: new Set(["role", "content"]),
  user: new Set(["role", "content"]),
  assistant: new Set(["role", "content", "tool_calls", "prefix"]),
  tool: new Set(["role", "content", "tool_call_id", "name"]),
};

/** Each message by its schema: what is wrong here is answered with 422. */
export function checkSchemas(messages: readonly unknown[]): Refusal | null {
  for (const [index, message] of messages.entries()) {
    const wrong = checkSchema(message, index);
    if (wrong !== null) return wrong;
  }
  return null;
}

function checkSchema(message: unknown, index: number): Refusal | null {
  const loc: Place = ["messages", index];
  if (!isFields(message)) return wrongType(loc, "dictionary", message);
  const { role, content } = message;
  const fields = typeof role === "string" && roles.includes(role) ? known[role] : undefined;
  if (typeof role !== "string" || fields === undefined)
    return unknownTag(loc, "role", role, roles, "bad_role");
  const place = [...loc, role];
  const extra = extraField(place, message, fields);
  if (extra !== null) return extra;
  if (content === undefined || content === null)
    return role === "assistant" ? checkCallSchemas(message, place) : missing([...place, "content"], message);
  if (typeof content !== "string" && !Array.isArray(content))
    return wrongType([...place, "content"], "string", content);
  const wrong = checkChunks(listOf(content), [...place, "content"]);
  return wrong ?? (role === "assistant" ? checkCallSchemas(message, place) : null);
}

/** What each message says, once their order is right (mistral-common, `validator.py`). */
export function checkSaid(messages: readonly Fields[]): Refusal | null {
  for (const [index, message] of messages.entries()) {
    const wrong = checkMessage(message, index, index === messages.length - 1);
    if (wrong !== null) return wrong;
  }
  return null;
}

function checkMessage(message: Fields, index: number, isLast: boolean): Refusal | null {
  switch (message.role) {
    case "user":
      // Stricter than the server, which takes a blank text: none of ours says nothing.
      return saysNothing(message.content)
        ? refuse("empty_content", "other", "User message must have content.")
        : null;
    case "assistant":
      return checkAssistant(message, index, isLast);
    case "tool":
      return checkTool(message, index);
    default:
      return null;
  }
}

function checkAssistant(message: Fields, index: number, isLast: boolean): Refusal | null {
  if (listOf(message.tool_calls).length === 0 && saysNothing(message.content)) {
    const none = "Assistant message must have either content or tool_calls, but not none.";
    return refuse("empty_content", "assistant", none);
  }
  if (message.prefix === true && !isLast) {
    const early = "Assistant message with prefix True must be last message";
    return refuse("prefix_not_last", "assistant", early);
  }
  return checkCalls(message, ["messages", index, "assistant"]);
}

function checkTool(message: Fields, index: number): Refusal | null {
  const loc: Place = ["messages", index, "tool"];
  const wrong = checkCallId(message.tool_call_id, "Tool call id has to be defined.");
  if (wrong !== null || message.name === undefined || message.name === null) return wrong;
  return checkName(message.name, [...loc, "name"], message);
}

/** No content, or a text in it that is blank. */
function saysNothing(content: unknown): boolean {
  if (typeof content === "string") return isBlank(content);
  const chunks = listOf(content);
  return (
    chunks.length === 0 ||
    chunks.some((chunk) => isFields(chunk) && typeof chunk.text === "string" && isBlank(chunk.text))
  );
}
