import { SkeinError } from "../../core/errors.ts";
import { spaceOf } from "../../core/space.ts";
import { inLine, thrownText } from "../../core/text.ts";
import type { Tool, ToolCallContext, ToolOutput } from "../contract.ts";
import type { Mistake } from "./check-json-schema.ts";
import type {
  StandardIssue,
  StandardSchema,
  ToolContext,
  ToolDefinition,
  ToolParameters,
  ToolState,
} from "./define-tool.ts";
import { isStandardSchema } from "./define-tool.ts";
import { groupName } from "./select-tools.ts";

/** Makes a defined tool callable in a turn. Unlike `defineTool`, loads the schema's library. */
export async function prepareTool(definition: ToolDefinition): Promise<Tool> {
  const { name, description, parameters, replay } = definition;
  return {
    name,
    description,
    inputSchema: await jsonSchemaOf(`The parameters of the tool "${name}"`, parameters),
    replay,
    groups: definition.groups.map(groupName),
    needsApproval: (args) => needsApproval(definition, args),
    check: (args) => checkArguments(parameters, args),
    execute: async (args, call) => toolOutput(await definition.execute(args, contextOf(call))),
  };
}

/** Also requires approval if the arguments are invalid or the decision itself fails. */
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

/** Converts a tool's return value to blocks. A value that cannot be written as JSON becomes a failed result. */
export function toolOutput(returned: unknown): ToolOutput {
  if (returned === undefined || returned === null || returned === "") return text("(no output)");
  if (typeof returned === "string") return text(returned);
  if (typeof returned === "object" && Symbol.asyncIterator in returned)
    return failure("it returned a stream, which is not supported; return the complete result instead");
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
  if (problem !== null) return failure(`its details cannot be stored as JSON (${problem})`);
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

/** Returns the reason why a value cannot be written as JSON, or `null` if it can. */
function jsonProblem(value: unknown): string | null {
  try {
    JSON.stringify(value, (key, each: unknown) => checked(key, each));
    return null;
  } catch (error) {
    const circular = error instanceof TypeError && /circular|cyclic/i.test(error.message);
    return circular ? "it contains itself, which JSON cannot represent" : thrownText(error);
  }
}

/** Throws for values that JSON cannot represent, most of which `JSON.stringify` would drop or write as `{}`. */
function checked(key: string, value: unknown): unknown {
  const kind = typeof value;
  const isIterable =
    typeof value === "object" && value !== null && !Array.isArray(value) && Symbol.iterator in value;
  if (kind !== "bigint" && kind !== "function" && kind !== "symbol" && !isIterable) return value;
  const what = isIterable ? (value.constructor?.name ?? "iterator") : kind;
  throw new Error(`${key === "" ? "it" : `"${key}" in it`} is of type ${what}, which JSON cannot represent`);
}

export type Checked = { readonly args: unknown } | { readonly problem: string };

/** Loaded on the first call and cached, because repeated imports have a cost. */
let loading: Promise<typeof import("./check-json-schema.ts")> | null = null;

const maxMistakes = 5;
const maxShownLength = 60;

/** Parses a call's arguments with the schema's library. */
export async function checkArguments(parameters: ToolParameters | null, args: unknown): Promise<Checked> {
  if (parameters === null) {
    const mistakes = Object.keys(args ?? {}).map((name) => ({ path: [name], expected: "is not known" }));
    return mistakes.length === 0 ? { args: {} } : { problem: problemText(mistakes, args) };
  }
  if (isStandardSchema(parameters)) return await checkStandard(parameters, args);
  loading ??= import("./check-json-schema.ts");
  const { checkValue } = await loading;
  const checked = checkValue(parameters, args);
  return "value" in checked ? { args: checked.value } : { problem: problemText(checked.mistakes, args) };
}

async function checkStandard(schema: StandardSchema, args: unknown): Promise<Checked> {
  try {
    const result = await schema["~standard"].validate(args);
    if (result.issues === undefined) return { args: result.value };
    return { problem: problemText(result.issues.map(mistakeOf), args) };
  } catch (error) {
    return { problem: `The arguments could not be checked: ${thrownText(error)}` };
  }
}

function mistakeOf({ message, path = [] }: StandardIssue): Mistake {
  return { path: path.map((part) => (typeof part === "object" ? part.key : part)), expected: message };
}

/** Returns one line per error, with the path, the expected value and the actual value. */
function problemText(mistakes: readonly Mistake[], args: unknown): string {
  const lines = mistakes
    .slice(0, maxMistakes)
    .map(({ path, expected }) => `${pathText(path)}: ${expected}, got ${shown(valueAt(args, path))}`);
  const more = mistakes.length - lines.length;
  return [...lines, ...(more > 0 ? [`and ${more} more`] : [])].join("\n");
}

function pathText(path: readonly PropertyKey[]): string {
  return path.length === 0 ? "arguments" : path.map(String).join(".");
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (inner, key) =>
      typeof inner === "object" && inner !== null && Object.hasOwn(inner, key)
        ? (inner as Readonly<Record<PropertyKey, unknown>>)[key]
        : undefined,
    value,
  );
}

function shown(value: unknown): string {
  if (value === undefined) return "nothing";
  const text = JSON.stringify(value) ?? typeof value;
  return inLine(text, maxShownLength);
}

type JsonSchema = Readonly<Record<string, unknown>>;

const noArguments: JsonSchema = { type: "object", properties: {}, additionalProperties: false };

/** Returns the JSON Schema for the model. `what` is the name of the schema in errors. */
export async function jsonSchemaOf(what: string, parameters: ToolParameters | null): Promise<JsonSchema> {
  if (parameters === null) return noArguments;
  const made = isStandardSchema(parameters) ? await converted(what, parameters) : parameters;
  // Serialized to JSON and back to remove properties that libraries hide in their schemas.
  const { $schema: _, "~standard": __, ...schema } = JSON.parse(JSON.stringify(made));
  if (schema.type === "object") return { ...schema, properties: schema.properties ?? {} };
  throw unusable(what, "it is not a schema for an object");
}

async function converted(what: string, schema: StandardSchema): Promise<unknown> {
  try {
    const own: unknown = Reflect.get(schema["~standard"], "jsonSchema");
    if (hasInput(own)) return own.input({ target: "draft-07" });
    const { asSchema } = await import("@ai-sdk/provider-utils");
    return await asSchema(schema as Parameters<typeof asSchema>[0]).jsonSchema;
  } catch (error) {
    throw unusable(what, thrownText(error), error);
  }
}

function hasInput(value: unknown): value is { input(options: { readonly target: string }): unknown } {
  return typeof value === "object" && value !== null && "input" in value && typeof value.input === "function";
}

function unusable(what: string, why: string, cause?: unknown): SkeinError {
  const problem = `${what} cannot be described to a model: ${why}`;
  const advice = "Use an object schema without transforms, from a library that can convert it to JSON Schema";
  return new SkeinError("invalid_arguments", { problem, advice }, { cause });
}
