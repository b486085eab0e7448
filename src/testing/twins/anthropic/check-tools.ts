import type { Refusal } from "../contract.ts";
import { refuse } from "./refusal.ts";
import type { Block, MessagesRequest, Turn } from "./turns.ts";
import { placeOf } from "./turns.ts";

/** Which call has which result. */
export function checkToolPairing({ turns }: MessagesRequest): Refusal | null {
  const seen = new Set<unknown>();
  for (const [index, turn] of turns.entries()) {
    const refusal =
      turn.role === "user"
        ? checkResults(turn, turns[index - 1])
        : (checkUnique(turn, seen) ?? checkAnswered(turn, turns[index + 1]));
    if (refusal !== null) return refusal;
  }
  return null;
}

/** Published refusal: "`tool_use` ids must be unique", over the whole request. */
function checkUnique(turn: Turn, seen: Set<unknown>): Refusal | null {
  for (const [index, block] of turn.blocks.entries()) {
    if (block.type !== "tool_use") continue;
    if (seen.has(block.fields.id)) {
      return refuse("tool_use_id_repeated", `${placeOf(turn, index)}: \`tool_use\` ids must be unique`);
    }
    seen.add(block.fields.id);
  }
  return null;
}

/**
 * "Handle tool calls": the results follow their calls at once, and stand before anything else in the user's message.
 * A result behind a text counts as none.
 */
function checkAnswered(turn: Turn, next: Turn | undefined): Refusal | null {
  const calls = turn.blocks.filter((block) => block.type === "tool_use").map((block) => block.fields.id);
  if (calls.length === 0) return null;
  const answered = new Set(leadingResults(next).map((block) => block.fields.tool_use_id));
  const open = calls.filter((id) => !answered.has(id));
  if (open.length === 0) return null;
  const advice = "Each `tool_use` block must have a corresponding `tool_result` block in the next message.";
  const found = "`tool_use` ids were found without `tool_result` blocks immediately after";
  return refuse("tool_use_unanswered", `messages.${turn.index}: ${found}: ${open.join(", ")}. ${advice}`);
}

function leadingResults(turn: Turn | undefined): readonly Block[] {
  if (turn?.role !== "user") return [];
  const end = turn.blocks.findIndex((block) => block.type !== "tool_result");
  return end === -1 ? turn.blocks : turn.blocks.slice(0, end);
}

/** Published refusals: "unexpected `tool_use_id` found", and "each tool_use must have a single result". */
function checkResults(turn: Turn, before: Turn | undefined): Refusal | null {
  if (!turn.blocks.some((block) => block.type === "tool_result")) return null;
  const calls = new Set<unknown>();
  for (const block of before?.blocks ?? []) if (block.type === "tool_use") calls.add(block.fields.id);
  const answered = new Set<unknown>();
  for (const [index, block] of turn.blocks.entries()) {
    if (block.type !== "tool_result") continue;
    const { tool_use_id: id } = block.fields;
    if (!calls.has(id)) {
      const found = `unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}`;
      const advice =
        "Each `tool_result` block must have a corresponding `tool_use` block in the previous message.";
      return refuse("tool_result_without_call", `${placeOf(turn, index)}: ${found}. ${advice}`);
    }
    if (answered.has(id)) {
      const found = "each tool_use must have a single result. Found multiple `tool_result` blocks with id";
      return refuse("tool_result_repeated", `${placeOf(turn, index)}: ${found}: ${id}`);
    }
    answered.add(id);
  }
  return null;
}
