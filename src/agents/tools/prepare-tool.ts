import { spaceOf } from "../../core/space.ts";
import type { Tool, ToolCallContext } from "../contract.ts";
import { checkArguments } from "./check-arguments.ts";
import type { ToolContext, ToolDefinition, ToolState } from "./define-tool.ts";
import { jsonSchemaOf } from "./json-schema.ts";
import { groupName } from "./select-tools.ts";
import { toolOutput } from "./tool-output.ts";

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
