import { spaceOf } from "../../core/space.ts";
import { thrownText } from "../../core/text.ts";
import type { Tool, ToolCallContext, ToolOutput } from "../contract.ts";
import { checkArguments } from "./check-arguments.ts";
import type { ToolContext, ToolDefinition, ToolState } from "./define-tool.ts";
import { jsonSchemaOf } from "./json-schema.ts";
import { groupName } from "./select-tools.ts";

/** A tool as a turn calls it. What its schema's library needs is loaded here, not when it is defined. */
export async function prepareTool(definition: ToolDefinition): Promise<Tool> {
  const { name, description, parameters, replay } = definition;
  return {
    name,
    description,
    inputSchema: await jsonSchemaOf(`What the tool "${name}" takes`, parameters),
    replay,
    groups: definition.groups.map(groupName),
    needsApproval: (args) => needsApproval(definition, args),
    check: (args) => checkArguments(parameters, args),
    execute: async (args, call) => toolOutput(await definition.execute(args, contextOf(call))),
  };
}

/** In doubt a person is asked: when the arguments do not fit, and when the question itself fails. */
async function needsApproval(definition: ToolDefinition, args: unknown): Promise<boolean> {
  if (definition.approval !== "asked") return definition.approval === "always";
  const checked = await checkArguments(definition.parameters, args);
  if ("problem" in checked) return true;
  try {
    return (await definition.needsApproval(checked.args)) !== false;
  } catch {
    return true;
  }
}

function contextOf({ about, signal, toolCallId, state }: ToolCallContext): ToolContext {
  const { runId, sessionKey, sessionId, agentId, cwd, attachments = null } = about;
  return {
    ...spaceOf(about.userId),
    signal,
    toolCallId,
    runId,
    sessionKey,
    sessionId,
    agentId,
    cwd,
    attachments,
    state: state as ToolState,
  };
}

type Block = ToolOutput["content"][number];

/** What a tool of the user's returned, as blocks for the model. What cannot be told to a model is a failed result. */
export function toolOutput(returned: unknown): ToolOutput {
  if (returned === undefined || returned === null || returned === "") return text("(no output)");
  if (typeof returned === "string") return text(returned);
  if (typeof returned === "object" && Symbol.asyncIterator in returned)
    return failure("it returned a stream, which is not supported; return the whole at the end");
  return blocksIn(returned) ?? asJson(returned);
}

function text(value: string): ToolOutput {
  return { content: [{ type: "text", text: value }] };
}

function failure(problem: string): ToolOutput {
  return { ...text(`The tool was called, but its result cannot be used: ${problem}.`), isError: true };
}

function blocksIn(returned: unknown): ToolOutput | null {
  if (typeof returned !== "object" || returned === null || !("content" in returned)) return null;
  const { content, isError, details } = returned as Readonly<Record<string, unknown>>;
  if (!Array.isArray(content) || !content.every(isBlock)) return null;
  const problem = details === undefined ? null : jsonProblem(details);
  if (problem !== null) return failure(`its details are no JSON: ${problem}`);
  const blocks: readonly Block[] = content.length === 0 ? text("(no output)").content : content;
  return {
    content: blocks,
    ...(isError === true && { isError: true }),
    ...(details !== undefined && { details }),
  };
}

function isBlock(value: unknown): value is Block {
  if (typeof value !== "object" || value === null) return false;
  const block = value as Readonly<Record<string, unknown>>;
  if (block.type === "text") return typeof block.text === "string";
  return block.type === "image" && typeof block.data === "string" && typeof block.mimeType === "string";
}

function asJson(returned: unknown): ToolOutput {
  const problem = jsonProblem(returned);
  return problem === null ? text(JSON.stringify(returned)) : failure(problem);
}

/** What keeps a value from being written as JSON; `null`: nothing. */
function jsonProblem(value: unknown): string | null {
  try {
    JSON.stringify(value, (key, each: unknown) => checked(key, each));
    return null;
  } catch (error) {
    const circular = error instanceof TypeError && /circular|cyclic/i.test(error.message);
    return circular ? "it contains itself, which is no JSON" : thrownText(error);
  }
}

/** JSON would leave these out, or make `{}` of them, without a word. */
function checked(key: string, value: unknown): unknown {
  const kind = typeof value;
  const isIterable =
    typeof value === "object" && value !== null && !Array.isArray(value) && Symbol.iterator in value;
  if (kind !== "bigint" && kind !== "function" && kind !== "symbol" && !isIterable) return value;
  const what = isIterable ? (value.constructor?.name ?? "iterator") : kind;
  throw new Error(`${key === "" ? "it" : `"${key}" in it`} is of type ${what}, which is no JSON`);
}
