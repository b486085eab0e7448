import type { Refusal } from "../contract.ts";
import { checkName, emptyList, missing, refuse, unsupported, wrongType } from "../openai-shared-errors.ts";
import type { Fields } from "../openai-shared-values.ts";
import { isFields } from "../openai-shared-values.ts";

const toolTypes = ["function", "custom"];
/** "A max of 128 functions are supported." (API reference, Chat, tools) */
const maximumTools = 128;

export function checkTools({ tools, tool_choice: choice }: Fields): Refusal | null {
  if (tools === undefined || tools === null) return checkChoice(choice);
  if (!Array.isArray(tools)) return wrongType("tools", "an array of objects", tools, "bad_tools");
  if (tools.length === 0) return emptyList("tools", "bad_tools");
  if (tools.length > maximumTools) {
    const message = `Invalid 'tools': array too long. Expected an array with maximum length ${maximumTools}, but got an array with length ${tools.length} instead.`;
    return refuse({ rule: "bad_tools", message, param: "tools", code: "array_above_max_length" });
  }
  for (const [index, tool] of tools.entries()) {
    const wrong = checkTool(tool, `tools[${index}]`);
    if (wrong !== null) return wrong;
  }
  return null;
}

function checkTool(tool: unknown, param: string): Refusal | null {
  if (!isFields(tool)) return wrongType(param, "an object", tool, "bad_tools");
  const { type } = tool;
  if (type === undefined) return missing(`${param}.type`, "bad_tools");
  if (typeof type !== "string" || !toolTypes.includes(type))
    return unsupported(`${param}.type`, type, toolTypes, "bad_tools");
  const inner = tool[type];
  if (inner === undefined) return missing(`${param}.${type}`, "bad_tools");
  if (!isFields(inner)) return wrongType(`${param}.${type}`, "an object", inner, "bad_tools");
  return checkName(`${param}.${type}.name`, inner.name);
}

/** "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified." */
function checkChoice(choice: unknown): Refusal | null {
  if (choice === undefined || choice === null || choice === "none") return null;
  const message =
    "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.";
  return refuse({ rule: "tool_choice_without_tools", message, param: "tool_choice" });
}
