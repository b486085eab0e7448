import type { Refusal } from "../contract.ts";
import { missing, refuse, unknownField, unsupported, wrongType } from "../openai-shared-errors.ts";
import type { Fields } from "../openai-shared-values.ts";
import { isFields } from "../openai-shared-values.ts";
import { sealedItem } from "./encrypted-content.ts";

const known = new Set(["type", "id", "summary", "content", "encrypted_content", "status"]);

/** A reasoning item by itself: `summary` is a list of summary texts (API reference, "Reasoning", required). */
export function checkReasoningItem(item: Fields, at: string): Refusal | null {
  const unknown = unknownField(at, item, known);
  if (unknown !== null) return unknown;
  const { id, summary, encrypted_content: encrypted } = item;
  if (summary === undefined) return missing(`${at}.summary`, "bad_reasoning");
  if (!Array.isArray(summary))
    return wrongType(`${at}.summary`, "an array of objects", summary, "bad_reasoning");
  for (const [index, part] of summary.entries()) {
    const param = `${at}.summary[${index}]`;
    if (!isFields(part)) return wrongType(param, "an object", part, "bad_reasoning");
    if (part.type !== "summary_text") return unsupported(param, part.type, ["summary_text"], "bad_reasoning");
    if (typeof part.text !== "string")
      return wrongType(`${param}.text`, "a string", part.text, "bad_reasoning");
  }
  if (encrypted !== undefined && encrypted !== null)
    return typeof encrypted === "string"
      ? null
      : wrongType(`${at}.encrypted_content`, "a string", encrypted, "bad_reasoning");
  return id === undefined || id === null ? missing(`${at}.id`, "bad_reasoning") : null;
}

/** Reasoning in its place: known to the server or sealed by it, and before the item that it led to. */
export function checkReasoning(items: readonly Fields[], model: string, isStored: boolean): Refusal | null {
  for (const [index, item] of items.entries()) {
    const wrong =
      item.type === "item_reference"
        ? notFound(item, isStored)
        : item.type === "reasoning"
          ? (checkSeal(item, model, isStored) ?? checkFollower(item, items, index))
          : null;
    if (wrong !== null) return wrong;
  }
  return null;
}

function checkSeal(item: Fields, model: string, isStored: boolean): Refusal | null {
  const { id, encrypted_content: encrypted } = item;
  if (typeof encrypted !== "string") return notFound(item, isStored);
  const sealed = sealedItem(model, encrypted);
  if (sealed !== null && (typeof id !== "string" || sealed === id)) return null;
  const name =
    typeof id === "string" ? `for item ${id}` : `${encrypted.slice(0, 4)}...${encrypted.slice(-4)}`;
  const reason =
    sealed === null
      ? "Encrypted content could not be decrypted or parsed."
      : "Encrypted content item_id did not match the target item id.";
  const message = `The encrypted content ${name} could not be verified. Reason: ${reason}`;
  return refuse({ rule: "invalid_encrypted_content", message, code: "invalid_encrypted_content" });
}

/** The twin stores nothing, so that whatever stands for a stored item is not found. */
function notFound({ id }: Fields, isStored: boolean): Refusal {
  const why = isStored
    ? ""
    : " Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.";
  const message = `Item with id '${typeof id === "string" ? id : ""}' not found.${why}`;
  return refuse({ rule: "item_not_found", message, param: "input", status: 404 });
}

/** Items that a model never makes. */
const notOutput = new Set(["reasoning", "function_call_output", "custom_tool_call_output", "item_reference"]);

/**
 * "Item 'rs_…' of type 'reasoning' was provided without its required following item." Asked of items with an id only,
 * as the server does.
 */
function checkFollower({ id }: Fields, items: readonly Fields[], index: number): Refusal | null {
  if (typeof id !== "string") return null;
  const next = items[index + 1];
  // A reasoning item may be followed by another, which is asked in its turn.
  if (next?.type === "reasoning" || (next !== undefined && isOutput(next))) return null;
  const message = `Item '${id}' of type 'reasoning' was provided without its required following item.`;
  return refuse({ rule: "reasoning_without_item", message, param: "input" });
}

function isOutput({ type, role }: Fields): boolean {
  if (type === undefined || type === "message") return role === "assistant";
  return !notOutput.has(String(type));
}
