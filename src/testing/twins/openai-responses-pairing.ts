import { refuse } from "./openai.ts";
import type { Fields } from "./shared.ts";
import { nameSet } from "./shared.ts";
import { openReasoning } from "./signatures.ts";

/** The request options that affect reasoning items. */
interface ReasoningOptions {
  readonly model: string;
  readonly isStored: boolean;
}

/** Reasoning must be sealed by the same model and come before the item that it led to. */
export function checkReasoning(items: readonly Fields[], options: ReasoningOptions): void {
  for (const [index, item] of items.entries()) {
    if (item.type === "item_reference") refuseUnknownItem(item, options);
    if (item.type !== "reasoning") continue;
    checkSeal(item, options);
    checkFollower(item, items[index + 1]);
  }
}

function checkSeal(item: Fields, options: ReasoningOptions): void {
  const { id, encrypted_content: encrypted } = item;
  if (typeof encrypted !== "string") refuseUnknownItem(item, options);
  const sealed = openReasoning(options.model, encrypted);
  if (sealed !== null && (typeof id !== "string" || sealed === id)) return;
  const name =
    typeof id === "string" ? `for item ${id}` : `${encrypted.slice(0, 4)}...${encrypted.slice(-4)}`;
  const reason =
    sealed === null
      ? "Encrypted content could not be decrypted or parsed."
      : "Encrypted content item_id did not match the target item id.";
  const message = `The encrypted content ${name} could not be verified. Reason: ${reason}`;
  refuse({ rule: "invalid_encrypted_content", message, code: "invalid_encrypted_content" });
}

/** The twin stores nothing, so it never finds a stored item. */
function refuseUnknownItem({ id }: Fields, { isStored }: ReasoningOptions): never {
  const why = isStored
    ? ""
    : " Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.";
  const message = `Item with id '${typeof id === "string" ? id : ""}' not found.${why}`;
  refuse({ rule: "item_not_found", message, param: "input", status: 404 });
}

/** Items that a model never produces. */
const inputOnly = nameSet("function_call_output custom_tool_call_output item_reference");

/**
 * "Item 'rs_…' of type 'reasoning' was provided without its required following item." Like the server, the twin checks
 * only items with an ID. The next item can also be a reasoning item, which is then checked in turn.
 */
function checkFollower({ id }: Fields, next: Fields | undefined): void {
  if (typeof id !== "string") return;
  const isMessage = next?.type === undefined || next.type === "message";
  if (isMessage ? next?.role === "assistant" : !inputOnly.has(String(next.type))) return;
  const message = `Item '${id}' of type 'reasoning' was provided without its required following item.`;
  refuse({ rule: "reasoning_without_item", message, param: "input" });
}

/** The call type for each output type. */
const callOfOutput: Readonly<Record<string, string>> = {
  function_call_output: "function_call",
  custom_tool_call_output: "custom_tool_call",
};
const callTypes = Object.values(callOfOutput);

/**
 * Every call must be followed by one output with the same `call_id`, and every output must be preceded by its call
 * (Function calling guide, "Handling function calls"; the server's own messages).
 */
export function checkPairing(items: readonly Fields[]): void {
  const open = new Map<string, string>();
  const seen = new Set<string>();
  for (const [index, { type, call_id: id }] of items.entries()) {
    if (typeof type !== "string" || typeof id !== "string") continue;
    const call = callOfOutput[type];
    if (call !== undefined && open.get(id) !== call) {
      const message = `No tool call found for ${call.replaceAll("_", " ")} output with call_id ${id}.`;
      refuse({ rule: "tool_result_without_call", message, param: "input" });
    }
    if (call !== undefined) open.delete(id);
    if (!callTypes.includes(type)) continue;
    if (seen.has(id)) {
      // Stricter than the server because Skein uses each ID for only one call in the whole request.
      const param = `input[${index}].call_id`;
      const message = `Invalid '${param}': duplicate call_id '${id}'.`;
      refuse({ rule: "duplicate_call_id", message, param, code: "invalid_value" });
    }
    seen.add(id);
    open.set(id, type);
  }
  for (const [id, call] of open) {
    const message = `No tool output found for ${call.replaceAll("_", " ")} ${id}.`;
    refuse({ rule: "tool_call_without_result", message, param: "input" });
  }
}
