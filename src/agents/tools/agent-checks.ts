import { SkeinError } from "../../core/errors.ts";
import { folderTemplateHelp, isFolderTemplate, readAgentId } from "../../core/names.ts";

/** What the fields of an agent must be. */

export interface Check {
  readonly expected: string;
  fits(value: unknown): boolean;
}

/** Fields of a record, each checked, some of them records again. */
export interface Checks {
  readonly [field: string]: Check | { readonly fields: Checks; readonly or?: Check };
}

export const isText = (value: unknown): value is string => typeof value === "string";
const isTextList = (value: unknown): boolean => Array.isArray(value) && value.every(isText);
const isWhole = (value: unknown, least: number, most: number): boolean =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= least && value <= most;
const isFolder = (value: unknown): boolean =>
  isText(value) && /^(?:\/|[A-Za-z]:[\\/]|\\\\)/.test(value) && isFolderTemplate(value);
const isModule = (value: unknown): boolean =>
  isRecord(value) &&
  isText(value.key) &&
  typeof value.save === "function" &&
  typeof value.load === "function";
const isTool = (value: unknown): boolean =>
  isRecord(value) && isText(value.name) && typeof value.execute === "function" && "needsApproval" in value;

const oneOf = (...words: readonly string[]): Check => ({
  expected: `one of ${words.join(", ")}`,
  fits: (value) => isText(value) && words.includes(value),
});
const whole = (least: number, most: number = Number.MAX_SAFE_INTEGER, more = ""): Check => ({
  expected: `a whole number from ${least}${most === Number.MAX_SAFE_INTEGER ? "" : ` to ${most}`}${more}`,
  fits: (value) => isWhole(value, least, most),
});
const flag: Check = { expected: "true or false", fits: (value) => typeof value === "boolean" };
const toolEntries: Check = { expected: "a list of names, groups and patterns", fits: isTextList };
const agentIds: Check = {
  expected: "a list of agent ids, * for any",
  fits: (value) =>
    Array.isArray(value) &&
    value.every((each) => isText(each) && (each === "*" || readAgentId(each) !== null)),
};
const seen = oneOf("self", "tree", "agent", "all");

export const agentChecks = {
  id: { expected: "an agent id", fits: isText },
  model: {
    expected: 'a model such as "anthropic/claude-sonnet-4-5"',
    fits: (value) => isText(value) && /^[A-Za-z0-9][A-Za-z0-9._-]*\/\S+$/.test(value),
  },
  system: { expected: "a text", fits: isText },
  thinking: oneOf("off", "minimal", "low", "medium", "high", "xhigh"),
  tools: {
    expected: "a list of what defineTool made",
    fits: (value) => Array.isArray(value) && value.every(isTool),
  },
  allow: toolEntries,
  deny: toolEntries,
  ask: toolEntries,
  state: {
    expected: "a list of state modules and functions that make one, or a function that makes the list",
    fits: (value) =>
      typeof value === "function" ||
      (Array.isArray(value) && value.every((each) => typeof each === "function" || isModule(each))),
  },
  onDemand: { expected: "a list of names of groups", fits: isTextList },
  cwd: { expected: `an absolute path; ${folderTemplateHelp}`, fits: isFolder },
  maxSteps: whole(1),
  runTimeoutSeconds: whole(0, undefined, " (no limit)"),
  maxOutputTokens: whole(1),
  sandboxed: flag,
  visibility: { or: seen, fields: { list: seen, history: seen, send: seen, status: seen } },
  roots: {
    expected: `a list of absolute paths; ${folderTemplateHelp}`,
    fits: (value) => Array.isArray(value) && value.every(isFolder),
  },
  subagents: {
    fields: {
      allowAgents: agentIds,
      maxSpawnDepth: whole(1, 5),
      maxChildren: whole(1, 20),
      archiveAfterMinutes: whole(0, undefined, " (0: never)"),
      tools: { fields: { allow: toolEntries, deny: toolEntries } },
      attachments: { fields: { maxFileBytes: whole(1), maxTotalBytes: whole(1), keep: flag } },
    },
  },
} satisfies Checks;

/** Throws for the first field that is unknown or does not fit. */
export function checkFields(who: string, given: object, checks: Checks, inside = ""): void {
  for (const [name, value] of Object.entries(given)) {
    const field = `${inside}${name}`;
    const check = Object.hasOwn(checks, name) ? checks[name] : undefined;
    if (check === undefined)
      throw refusal(who, `has no field "${field}"`, `Use ${Object.keys(checks).join(", ")}`);
    if (value === undefined || fits(check, value)) continue;
    if ("fields" in check && isRecord(value) && !Array.isArray(value))
      checkFields(who, value, check.fields, `${field}.`);
    else throw refusal(who, `has a wrong ${field}`, `Expected ${expectedOf(check)}`);
  }
}

export function refusal(who: string, problem: string, advice: string): SkeinError {
  return new SkeinError("invalid_arguments", { problem: `${who} ${problem}`, advice });
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

function fits(check: Checks[string], value: unknown): boolean {
  return "fields" in check ? check.or?.fits(value) === true : check.fits(value);
}

function expectedOf(check: Checks[string]): string {
  if (!("fields" in check)) return check.expected;
  const keys = `keys (${Object.keys(check.fields).join(", ")})`;
  return check.or === undefined ? keys : `${check.or.expected}, or ${keys}`;
}
