import type { Refusal } from "../contract.ts";
import type { Content, GenerateRequest, Part } from "./contents.ts";
import { refuse } from "./refusal.ts";

/** Whose turn it is. What calls and responses ask of one another is in `check-functions.ts`. */
export function checkTurns({ contents }: GenerateRequest): Refusal | null {
  return (
    checkSides(contents) ?? checkCallTurns(contents) ?? checkAlternation(contents) ?? checkLast(contents)
  );
}

/** "Function calling" › Multi-turn: the model calls, the user's side responds. */
function checkSides(contents: readonly Content[]): Refusal | null {
  for (const { role, parts } of contents) {
    const stray = role === "user" ? "functionCall" : "functionResponse";
    if (!parts.some((part) => part.kind === stray)) continue;
    return stray === "functionCall"
      ? refuse("call_of_user", callTurn)
      : refuse("response_of_model", responseTurn);
  }
  return null;
}

const callTurn =
  "Please ensure that function call turn comes immediately after a user turn or after a function response turn.";
const responseTurn =
  "Please ensure that function response turn comes immediately after a function call turn.";

/** Published refusal, of a history that begins with a call, too. */
function checkCallTurns(contents: readonly Content[]): Refusal | null {
  for (const { index, role, parts } of contents) {
    const isCallTurn = role === "model" && parts.some(isCall);
    if (isCallTurn && contents[index - 1]?.role !== "user") return refuse("call_turn_misplaced", callTurn);
  }
  return null;
}

/**
 * "GenerateContent" › `contents`: the model answers a user. Two turns of the user's in a row are taken, as the server
 * takes them; two of the model's are not, nor one at the beginning.
 */
function checkAlternation(contents: readonly Content[]): Refusal | null {
  const isMisplaced = ({ index, role }: Content) => role === "model" && contents[index - 1]?.role !== "user";
  if (contents.length < 2 || !contents.some(isMisplaced)) return null;
  return refuse(
    "turns_not_alternating",
    "Please ensure that multiturn requests alternate between user and model.",
  );
}

/** Published refusals of requests that end in a turn of the model's. */
function checkLast(contents: readonly Content[]): Refusal | null {
  if (contents.at(-1)?.role !== "model") return null;
  const message =
    contents.length === 1
      ? "Please ensure that single turn requests end with a user role or the role field is empty."
      : "Please ensure that multiturn requests ends with a user role or a function response.";
  return refuse("last_turn_model", message);
}

function isCall(part: Part): boolean {
  return part.kind === "functionCall";
}
