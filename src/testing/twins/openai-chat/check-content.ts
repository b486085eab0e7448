import type { Refusal } from "../contract.ts";
import {
  emptyList,
  emptyText,
  maximumText,
  missing,
  refuse,
  tooLong,
  unknownField,
  unsupported,
  wrongType,
} from "../openai-shared-errors.ts";
import type { SentImage } from "../openai-shared-images.ts";
import type { Fields } from "../openai-shared-values.ts";
import { isBlank, isFields, listOf } from "../openai-shared-values.ts";

const partTypes = ["text", "image_url", "input_audio", "refusal", "audio", "file"];
const known = new Set([...partTypes, "type", "prompt_cache_breakpoint"]);
/** The parts that a role may have (API reference, Chat, "messages", content); a user's are all but a refusal. */
const partsOfRole: Readonly<Record<string, readonly string[]>> = {
  user: ["text", "image_url", "input_audio", "file"],
  assistant: ["text", "refusal"],
};
const textOnly = ["text"];

/** The content that a role must have. */
export function checkContent(message: Fields, role: string, index: number): Refusal | null {
  const { content } = message;
  const param = `messages[${index}].content`;
  if (content === undefined || content === null)
    return role === "assistant" && standsForContent(message) ? null : noContent(index);
  const mayBeBlank = role === "assistant" ? standsForContent(message) : role !== "user";
  if (typeof content === "string") return checkText(content, param, mayBeBlank);
  if (!Array.isArray(content)) return wrongType(param, "one of a string or array of objects", content);
  if (content.length === 0) return emptyList(param, "empty_content");
  for (const [at, part] of content.entries()) {
    const wrong = checkPart(part, `${param}[${at}]`, role, index, mayBeBlank);
    if (wrong !== null) return wrong;
  }
  return null;
}

/** "The contents of the assistant message. Required unless `tool_calls` or `function_call` is specified." */
function standsForContent(message: Fields): boolean {
  return ["tool_calls", "function_call", "refusal", "audio"].some(
    (name) => message[name] !== undefined && message[name] !== null,
  );
}

function noContent(index: number): Refusal {
  const message = "Invalid value for 'content': expected a string, got null.";
  return refuse({ rule: "empty_content", message, param: `messages.[${index}].content` });
}

/** Stricter than the server, which takes a blank text: none of ours says nothing. */
function checkText(text: string, param: string, mayBeBlank: boolean): Refusal | null {
  if (text.length > maximumText) return tooLong(param, maximumText, text, "text_too_long");
  return !mayBeBlank && isBlank(text) ? emptyText(param, "empty_content") : null;
}

function checkPart(part: unknown, param: string, role: string, index: number, mayBeBlank: boolean) {
  if (!isFields(part)) return wrongType(param, "an object", part);
  const { type } = part;
  if (type === undefined) return missing(`${param}.type`, "bad_part");
  const allowed = partsOfRole[role] ?? textOnly;
  if (type === "image_url" && !allowed.includes(type)) return imageOutsideUser(role, index);
  if (typeof type !== "string" || !allowed.includes(type))
    return unsupported(`${param}.type`, type, allowed, "bad_part");
  const unknown = unknownField(param, part, known);
  if (unknown !== null) return unknown;
  const value = part[type];
  if (value === undefined) return missing(`${param}.${type}`, "bad_part");
  if (type === "text" || type === "refusal") {
    if (typeof value !== "string") return wrongType(`${param}.${type}`, "a string", value, "bad_part");
    return checkText(value, `${param}.${type}`, mayBeBlank);
  }
  if (!isFields(value)) return wrongType(`${param}.${type}`, "an object", value, "bad_part");
  if (type !== "image_url" || typeof value.url === "string") return null;
  return value.url === undefined
    ? missing(`${param}.image_url.url`, "bad_part")
    : wrongType(`${param}.image_url.url`, "a string", value.url, "bad_part");
}

/** "Image URLs are only allowed for messages with role 'user', but this message with role 'tool' contains an image URL." */
function imageOutsideUser(role: string, index: number): Refusal {
  const param = `messages[${index}]`;
  const message = `Invalid '${param}'. Image URLs are only allowed for messages with role 'user', but this message with role '${role}' contains an image URL.`;
  return refuse({ rule: "image_outside_user", message, param, code: "invalid_value" });
}

/** The images of messages that have passed. */
export function imagesOf(messages: readonly Fields[]): SentImage[] {
  return messages.flatMap(({ content }, index) =>
    listOf(content).flatMap((part, at) => {
      if (!isFields(part) || !isFields(part.image_url)) return [];
      return [{ url: String(part.image_url.url), param: `messages[${index}].content[${at}].image_url` }];
    }),
  );
}
