import type { Refusal } from "../contract.ts";
import type { Fields } from "../fields.ts";
import { fieldsOf, listOf } from "../fields.ts";
import { refuse } from "./refusal.ts";
import type { Block, MessagesRequest } from "./turns.ts";
import { placeOf } from "./turns.ts";

const letters = /^[a-zA-Z0-9_-]+$/;
const longestName = 128;

/** What tools and calls are called, and what they are given. */
export function checkToolNames({ body, turns }: MessagesRequest): Refusal | null {
  const tools = body.tools === undefined ? [] : listOf(body.tools);
  if (tools === null) return refuse("tools_form", "tools: Input should be a valid list");
  let usesTools = false;
  for (const turn of turns) {
    for (const [index, block] of turn.blocks.entries()) {
      if (block.type !== "tool_use" && block.type !== "tool_result") continue;
      usesTools = true;
      const refusal = checkBlock(block, placeOf(turn, index));
      if (refusal !== null) return refusal;
    }
  }
  if (usesTools && tools.length === 0) {
    // Published refusal, of every history with calls that goes out without tools.
    const message = "Requests which include `tool_use` or `tool_result` blocks must define tools.";
    return refuse("tools_missing", message);
  }
  return checkDefinitions(tools);
}

/** Published refusals: "tool_use.id: String should match pattern", "tool_use.input: Input should be a valid dictionary". */
function checkBlock({ type, fields }: Block, place: string): Refusal | null {
  const pattern = "String should match pattern '^[a-zA-Z0-9_-]+$'";
  if (type === "tool_result") {
    if (letters.test(String(fields.tool_use_id))) return null;
    return refuse("tool_use_id_form", `${place}.tool_result.tool_use_id: ${pattern}`);
  }
  const { id, name, input } = fields;
  if (typeof id !== "string") return refuse("tool_use_id_form", `${place}.tool_use.id: Field required`);
  if (!letters.test(id)) return refuse("tool_use_id_form", `${place}.tool_use.id: ${pattern}`);
  const problem = problemOfName(name);
  if (problem !== null) return refuse("tool_use_name", `${place}.tool_use.name: ${problem}`);
  if (fieldsOf(input) !== null) return null;
  const message = input === undefined ? "Field required" : "Input should be a valid dictionary";
  return refuse("tool_use_input", `${place}.tool_use.input: ${message}`);
}

/** "Define tools": a name matches `^[a-zA-Z0-9_-]{1,128}$` (64 in older editions), a schema is that of an object. */
function checkDefinitions(tools: readonly unknown[]): Refusal | null {
  const names = new Set<unknown>();
  for (const [index, each] of tools.entries()) {
    const tool = fieldsOf(each);
    if (tool === null) return refuse("tools_form", `tools.${index}: Input should be a valid dictionary`);
    const place = `tools.${index}.custom`;
    const problem = problemOfName(tool.name);
    if (problem !== null) return refuse("tool_name", `${place}.name: ${problem}`);
    if (names.has(tool.name)) return refuse("tool_name_repeated", "tools: Tool names must be unique.");
    names.add(tool.name);
    const schema = checkSchema(tool, place);
    if (schema !== null) return schema;
  }
  return null;
}

/** A tool with a type of its own is one of the server's, which has no schema. */
function checkSchema(tool: Fields, place: string): Refusal | null {
  if (tool.type !== undefined && tool.type !== "custom") return null;
  const schema = fieldsOf(tool.input_schema);
  if (schema === null) return refuse("tool_schema", `${place}.input_schema: Field required`);
  if (schema.type === "object") return null;
  const problem = schema.type === undefined ? "Field required" : "Input should be 'object'";
  return refuse("tool_schema", `${place}.input_schema.type: ${problem}`);
}

function problemOfName(name: unknown): string | null {
  if (typeof name !== "string") return "Field required";
  if (name === "") return "String should have at least 1 character";
  if (name.length > longestName) return `String should have at most ${longestName} characters`;
  return letters.test(name) ? null : `String should match pattern '^[a-zA-Z0-9_-]{1,${longestName}}$'`;
}
