import type { Refusal } from "../contract.ts";
import { fieldsOf, listOf } from "../fields.ts";
import type { GenerateRequest } from "./contents.ts";
import { refuse, refuseField } from "./refusal.ts";

/** "Function calling" › Function declarations. */
const pattern = /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$/;
const rule =
  "Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64.";

/** What functions are called, and what they are given and give. */
export function checkNames({ body, contents }: GenerateRequest): Refusal | null {
  for (const { index, parts } of contents) {
    for (const [at, { kind, fields }] of parts.entries()) {
      const place = `contents[${index}].parts[${at}]`;
      const refusal =
        kind === "functionCall"
          ? checkFunction(fields.functionCall, "args", `${place}.function_call`)
          : kind === "functionResponse"
            ? checkFunction(fields.functionResponse, "response", `${place}.function_response`)
            : null;
      if (refusal !== null) return refusal;
    }
  }
  return checkDeclarations(body.tools);
}

/** "GenerateContent" › FunctionCall, FunctionResponse: arguments and response are objects; only arguments may be absent. */
function checkFunction(value: unknown, field: "args" | "response", place: string): Refusal | null {
  const fields = fieldsOf(value);
  if (fields === null) return refuseField("function_form", place, `Invalid value at '${place}'`);
  const name = checkName(fields.name, `${place}.name`);
  if (name !== null) return name;
  const given = fields[field];
  if (fieldsOf(given) !== null || (given === undefined && field === "args")) return null;
  const struct = "type.googleapis.com/google.protobuf.Struct";
  const message = `Invalid value at '${place}.${field}' (${struct}), ${(JSON.stringify(given) ?? "null").slice(0, 80)}`;
  return refuseField(`function_${field}`, `${place}.${field}`, message);
}

function checkDeclarations(tools: unknown): Refusal | null {
  const names = new Set<unknown>();
  for (const [index, tool] of (listOf(tools) ?? []).entries()) {
    for (const [at, each] of (listOf(fieldsOf(tool)?.functionDeclarations) ?? []).entries()) {
      const name = fieldsOf(each)?.name;
      const refusal = checkName(name, `tools[${index}].function_declarations[${at}].name`);
      if (refusal !== null) return refusal;
      if (names.has(name))
        return refuse("declaration_repeated", `Duplicate function declaration found: ${name}`);
      names.add(name);
    }
  }
  return null;
}

function checkName(name: unknown, place: string): Refusal | null {
  const problem =
    typeof name !== "string" || name === "" ? "Name cannot be empty." : pattern.test(name) ? null : rule;
  return problem === null ? null : refuse("function_name", `* GenerateContentRequest.${place}: ${problem}\n`);
}
