import type { Refusal } from "../contract.ts";
import type { Fields } from "../fields.ts";
import { fieldsOf } from "../fields.ts";
import type { Content, GenerateRequest } from "./contents.ts";
import { refuse } from "./refusal.ts";

/** Which call has which response. */
export function checkFunctionPairing({ contents }: GenerateRequest): Refusal | null {
  for (const [index, content] of contents.entries()) {
    if (content.role === "model") continue;
    const refusal = checkResponses(of(content, "functionResponse"), of(contents[index - 1], "functionCall"));
    if (refusal !== null) return refusal;
  }
  return null;
}

/** "Function calling" › Parallel function calling. Published refusals, of turns and of numbers. */
function checkResponses(responses: readonly Fields[], calls: readonly Fields[]): Refusal | null {
  if (responses.length > 0 && calls.length === 0) {
    const message = "Please ensure that function response turn comes immediately after a function call turn.";
    return refuse("response_without_call", message);
  }
  if (responses.length !== calls.length) {
    const message =
      "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.";
    return refuse("response_count", message);
  }
  return checkIds(responses, calls) ?? checkNames(responses, calls);
}

/** "Function calling" › `id`: where calls have one, the response repeats it. */
function checkIds(responses: readonly Fields[], calls: readonly Fields[]): Refusal | null {
  if (!calls.every(hasId) || !responses.every(hasId)) return null;
  const names = new Map(calls.map(({ id, name }) => [id, name]));
  if (names.size !== calls.length)
    return refuse("call_id_repeated", "functionCall.id must be unique in a turn.");
  for (const { id, name } of responses) {
    if (names.get(id) !== name)
      return refuse("response_id", "functionResponse.id does not match functionCall.id.");
    names.delete(id);
  }
  return null;
}

/** "Function calling" › FunctionResponse: the name is that of the call. */
function checkNames(responses: readonly Fields[], calls: readonly Fields[]): Refusal | null {
  const open = new Map<unknown, number>();
  for (const { name } of calls) open.set(name, (open.get(name) ?? 0) + 1);
  for (const { name } of responses) {
    const left = open.get(name) ?? 0;
    if (left === 0) return refuse("response_name", "functionResponse.name does not match functionCall.name.");
    open.set(name, left - 1);
  }
  return null;
}

function of(content: Content | undefined, kind: string): readonly Fields[] {
  const parts = content?.parts.filter((part) => part.kind === kind) ?? [];
  return parts.map((part) => fieldsOf(part.fields[kind]) ?? {});
}

function hasId({ id }: Fields): boolean {
  return typeof id === "string" && id !== "";
}
