import type { Block, Turn } from "./anthropic-messages.ts";
import { refuse } from "./anthropic-messages.ts";
import type { Fields } from "./shared.ts";
import { isFields } from "./shared.ts";

const letters = /^[a-zA-Z0-9_-]+$/;
const idPattern = "String should match pattern '^[a-zA-Z0-9_-]+$'";
const maxNameLength = 128;

/** Checks tools, calls and results: their structure, and which result belongs to which call. */
export function checkTools(tools: unknown, turns: readonly Turn[]): void {
  const defined = tools ?? [];
  if (!Array.isArray(defined)) refuse("tools_form", "tools: Input should be a valid list");
  const used = turns.flatMap(({ blocks }) => blocks).filter((block) => isCall(block) || isResult(block));
  for (const block of used) checkBlock(block);
  if (used.length > 0 && defined.length === 0) {
    // Published error for every history with calls that is sent without tools.
    const message = "Requests which include `tool_use` or `tool_result` blocks must define tools.";
    refuse("tools_missing", message);
  }
  checkDefinitions(defined);
  checkPairing(turns);
}

/** Published errors: "tool_use.id: String should match pattern", "tool_use.input: Input should be a valid dictionary". */
function checkBlock({ type, fields, place }: Block): void {
  const idField = type === "tool_use" ? "id" : "tool_use_id";
  const at = `${place}.${type}`;
  if (!letters.test(String(fields[idField]))) refuse("tool_use_id_form", `${at}.${idField}: ${idPattern}`);
  if (type === "tool_result") return;
  checkName("tool_use_name", `${at}.name`, fields.name);
  if (isFields(fields.input)) return;
  const problem = fields.input === undefined ? "Field required" : "Input should be a valid dictionary";
  refuse("tool_use_input", `${at}.input: ${problem}`);
}

function checkName(rule: string, place: string, name: unknown): void {
  if (typeof name !== "string") refuse(rule, `${place}: Field required`);
  if (name === "") refuse(rule, `${place}: String should have at least 1 character`);
  if (name.length > maxNameLength)
    refuse(rule, `${place}: String should have at most ${maxNameLength} characters`);
  if (!letters.test(name))
    refuse(rule, `${place}: String should match pattern '^[a-zA-Z0-9_-]{1,${maxNameLength}}$'`);
}

/** "Define tools": a name matches `^[a-zA-Z0-9_-]{1,128}$` (64 in older editions), and a schema describes an object. */
function checkDefinitions(tools: readonly unknown[]): void {
  const names = new Set<unknown>();
  for (const [index, tool] of tools.entries()) {
    if (!isFields(tool)) refuse("tools_form", `tools.${index}: Input should be a valid dictionary`);
    const place = `tools.${index}.custom`;
    checkName("tool_name", `${place}.name`, tool.name);
    if (names.has(tool.name)) refuse("tool_name_repeated", "tools: Tool names must be unique.");
    names.add(tool.name);
    checkSchema(tool, `${place}.input_schema`);
  }
}

/** A tool with its own type is one of the server's tools, which have no schema. */
function checkSchema({ type, input_schema: schema }: Fields, place: string): void {
  if (type !== undefined && type !== "custom") return;
  if (!isFields(schema)) refuse("tool_schema", `${place}: Field required`);
  if (schema.type === "object") return;
  const problem = schema.type === undefined ? "Field required" : "Input should be 'object'";
  refuse("tool_schema", `${place}.type: ${problem}`);
}

function checkPairing(turns: readonly Turn[]): void {
  const seen = new Set<unknown>();
  for (const [index, turn] of turns.entries()) {
    if (turn.role === "user") {
      checkResults(turn, turns[index - 1]);
      continue;
    }
    const calls = turn.blocks.filter(isCall);
    for (const { fields, place } of calls) {
      // Published error. IDs must be unique in the whole request.
      if (seen.has(fields.id)) refuse("tool_use_id_repeated", `${place}: \`tool_use\` ids must be unique`);
      seen.add(fields.id);
    }
    checkAnswered(turn, calls, turns[index + 1]);
  }
}

/**
 * "Handle tool calls": the results directly follow their calls and come first in the user's message. A result after a
 * text block is ignored.
 */
function checkAnswered(turn: Turn, calls: readonly Block[], next: Turn | undefined): void {
  const following = next?.role === "user" ? next.blocks : [];
  const end = following.findIndex((block) => !isResult(block));
  const leading = end === -1 ? following : following.slice(0, end);
  const answered = new Set(leading.map(({ fields }) => fields.tool_use_id));
  const open = calls.map(({ fields }) => fields.id).filter((id) => !answered.has(id));
  if (open.length === 0) return;
  const advice = "Each `tool_use` block must have a corresponding `tool_result` block in the next message.";
  const found = "`tool_use` ids were found without `tool_result` blocks immediately after";
  refuse("tool_use_unanswered", `messages.${turn.index}: ${found}: ${open.join(", ")}. ${advice}`);
}

/** Published errors: "unexpected `tool_use_id` found", and "each tool_use must have a single result". */
function checkResults(turn: Turn, before: Turn | undefined): void {
  const calls = new Set(before?.blocks.filter(isCall).map(({ fields }) => fields.id));
  const answered = new Set<unknown>();
  for (const { fields, place } of turn.blocks.filter(isResult)) {
    const { tool_use_id: id } = fields;
    if (!calls.has(id)) {
      const found = `unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}`;
      const advice =
        "Each `tool_result` block must have a corresponding `tool_use` block in the previous message.";
      refuse("tool_result_without_call", `${place}: ${found}. ${advice}`);
    }
    if (answered.has(id)) {
      const found = "each tool_use must have a single result. Found multiple `tool_result` blocks with id";
      refuse("tool_result_repeated", `${place}: ${found}: ${id}`);
    }
    answered.add(id);
  }
}

function isCall({ type }: Block): boolean {
  return type === "tool_use";
}

function isResult({ type }: Block): boolean {
  return type === "tool_result";
}
