import type { Refusal } from "../contract.ts";
import {
  emptyList,
  emptyText,
  maximumText,
  missing,
  tooLong,
  unknownField,
  unsupported,
  wrongType,
} from "../openai-shared-errors.ts";
import type { SentImage } from "../openai-shared-images.ts";
import type { Fields } from "../openai-shared-values.ts";
import { isBlank, isFields, listOf } from "../openai-shared-values.ts";

const roles = ["assistant", "system", "developer", "user"];
const known = new Set(["type", "role", "content", "id", "status"]);
const knownOfAssistant = new Set([...known, "phase"]);
/** What comes in and what went out are parts of different kinds (API reference, "Input message", "Output message"). */
const inputParts = ["input_text", "input_image", "input_file"];
const outputParts = ["output_text", "refusal"];
const knownInPart = new Set(
  `type text refusal annotations logprobs image_url file_id file_data file_url filename detail
  prompt_cache_breakpoint`.split(/\s+/),
);

/** A message. What is said must not be blank; a tool's result may be (stricter than the server, which takes both). */
export function checkMessage(item: Fields, at: string): Refusal | null {
  const { role, content } = item;
  if (role === undefined) return missing(`${at}.role`, "bad_role");
  if (typeof role !== "string" || !roles.includes(role))
    return unsupported(`${at}.role`, role, roles, "bad_role");
  const isAssistant = role === "assistant";
  const unknown = unknownField(at, item, isAssistant ? knownOfAssistant : known);
  if (unknown !== null) return unknown;
  if (content === undefined) return missing(`${at}.content`, "empty_content");
  const mayBeBlank = role === "system" || role === "developer";
  return checkParts(content, `${at}.content`, isAssistant ? outputParts : inputParts, mayBeBlank);
}

/** The output of a call: a text, or input parts (API reference, "Function tool call output"). */
export function checkOutput(output: unknown, param: string): Refusal | null {
  if (output === undefined) return missing(param, "bad_output");
  return checkParts(output, param, inputParts, true);
}

function checkParts(
  content: unknown,
  param: string,
  allowed: readonly string[],
  mayBeBlank: boolean,
): Refusal | null {
  if (typeof content === "string") return checkText(content, param, mayBeBlank);
  if (!Array.isArray(content))
    return wrongType(param, "one of an array of objects or string", content, "bad_content");
  if (content.length === 0) return emptyList(param, "empty_content");
  for (const [index, part] of content.entries()) {
    const wrong = checkPart(part, `${param}[${index}]`, allowed, mayBeBlank);
    if (wrong !== null) return wrong;
  }
  return null;
}

function checkPart(part: unknown, param: string, allowed: readonly string[], mayBeBlank: boolean) {
  if (!isFields(part)) return wrongType(param, "an object", part, "bad_part");
  const { type } = part;
  if (type === undefined) return missing(`${param}.type`, "bad_part");
  // "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'."
  if (typeof type !== "string" || !allowed.includes(type))
    return unsupported(param, type, allowed, "bad_part");
  const unknown = unknownField(param, part, knownInPart);
  if (unknown !== null) return unknown;
  if (type === "input_image") return checkImage(part, param);
  if (type === "input_file") return null;
  const name = type === "refusal" ? "refusal" : "text";
  const text = part[name];
  if (text === undefined) return missing(`${param}.${name}`, "bad_part");
  if (typeof text !== "string") return wrongType(`${param}.${name}`, "a string", text, "bad_part");
  return checkText(text, `${param}.${name}`, mayBeBlank);
}

/** "Provide either `image_url` or `file_id`." (Images and vision guide) */
function checkImage({ image_url: url, file_id: file }: Fields, param: string): Refusal | null {
  if (typeof url === "string" || typeof file === "string") return null;
  if (url === undefined || url === null) return missing(`${param}.image_url`, "bad_part");
  return wrongType(`${param}.image_url`, "a string", url, "bad_part");
}

function checkText(text: string, param: string, mayBeBlank: boolean): Refusal | null {
  if (text.length > maximumText) return tooLong(param, maximumText, text, "text_too_long");
  return !mayBeBlank && isBlank(text) ? emptyText(param, "empty_content") : null;
}

/** The images of items that have passed, those in results too. */
export function imagesOf(items: readonly Fields[]): SentImage[] {
  return items.flatMap((item, index) =>
    ["content", "output"].flatMap((name) =>
      listOf(item[name]).flatMap((part, at) => {
        if (!isFields(part) || part.type !== "input_image" || typeof part.image_url !== "string") return [];
        return [{ url: part.image_url, param: `input[${index}].${name}[${at}].image_url` }];
      }),
    ),
  );
}
