import { cutText, escapeToLine, thrownText } from "../../core/text.ts";
import type { Mistake } from "./check-json-schema.ts";
import type { StandardIssue, StandardSchema, ToolParameters } from "./define-tool.ts";
import { isStandardSchema } from "./define-tool.ts";

export type Checked = { readonly args: unknown } | { readonly problem: string };

/** Loaded with the first call; to ask for a module again is not free either. */
let loading: Promise<typeof import("./check-json-schema.ts")> | null = null;

const mostMistakes = 5;
const longestShown = 60;

/** The arguments of a call as its tool takes them, by the schema's own library, or what is wrong with them. */
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

/** One line for each: where, what was expected, what came. */
function problemText(mistakes: readonly Mistake[], args: unknown): string {
  const lines = mistakes
    .slice(0, mostMistakes)
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
  return escapeToLine(text.length > longestShown ? `${cutText(text, longestShown)}…` : text);
}
