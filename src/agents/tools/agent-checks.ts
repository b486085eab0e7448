import { fits as fitsSchema } from "../../core/check-schema.ts";
import { SkeinError } from "../../core/errors.ts";
import { isRecord } from "../../core/is-record.ts";
import { folderTemplateHelp, isFolderTemplate, readAgentId } from "../../core/names.ts";
import * as s from "../../core/schema.ts";
import { thinkingLevels } from "../../core/thinking-levels.ts";

/** A check for one field of an agent. */

export interface Check {
  readonly expected: string;
  fits(value: unknown): boolean;
}

/** The checks for a record's fields. Records can be nested. */
export interface Checks {
  readonly [field: string]: Check | { readonly fields: Checks; readonly or?: Check };
}

export const isText = (value: unknown): value is string => typeof value === "string";
const isFolder = (value: unknown): boolean =>
  isText(value) && /^(?:\/|[A-Za-z]:[\\/]|\\\\)/.test(value) && isFolderTemplate(value);
const isModule = (value: unknown): boolean =>
  isRecord(value) &&
  isText(value.key) &&
  typeof value.save === "function" &&
  typeof value.load === "function";
const isTool = (value: unknown): boolean =>
  isRecord(value) && isText(value.name) && typeof value.execute === "function" && "needsApproval" in value;

const like = (expected: string, schema: s.Schema): Check => ({
  expected,
  fits: (value) => fitsSchema(schema, value),
});
const oneOf = (...words: readonly string[]) => like(`one of ${words.join(", ")}`, s.choice(words));
const whole = (minimum: number, maximum = Number.MAX_SAFE_INTEGER, more = "") => {
  const end = maximum === Number.MAX_SAFE_INTEGER ? "" : ` to ${maximum}`;
  return like(`a whole number from ${minimum}${end}${more}`, s.integer({ minimum, maximum }));
};
const flag = like("true or false", s.boolean());
const toolEntries = like("a list of names, groups and patterns", s.array(s.string()));
const agentIds: Check = {
  expected: "a list of agent IDs, or * for any agent",
  fits: (value) =>
    Array.isArray(value) &&
    value.every((each) => isText(each) && (each === "*" || readAgentId(each) !== null)),
};
const seen = oneOf("self", "tree", "agent", "all");

export const agentChecks = {
  id: like("an agent ID", s.string()),
  model: like(
    'a model such as "anthropic/claude-sonnet-4-5"',
    s.string({ pattern: "^[A-Za-z0-9][A-Za-z0-9._-]*/\\S+$" }),
  ),
  system: like("a string", s.string()),
  thinking: oneOf(...thinkingLevels),
  tools: {
    expected: "a list of tools from defineTool",
    fits: (value) => Array.isArray(value) && value.every(isTool),
  },
  allow: toolEntries,
  deny: toolEntries,
  ask: toolEntries,
  state: {
    expected: "a list of state modules or functions that create one, or a function that creates the list",
    fits: (value) =>
      typeof value === "function" ||
      (Array.isArray(value) && value.every((each) => typeof each === "function" || isModule(each))),
  },
  onDemand: like("a list of group names", s.array(s.string())),
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

/** Throws for the first field that is unknown or invalid. */
export function checkFields(who: string, given: object, checks: Checks, inside = ""): void {
  for (const [name, value] of Object.entries(given)) {
    const field = `${inside}${name}`;
    const check = Object.hasOwn(checks, name) ? checks[name] : undefined;
    if (check === undefined)
      throw refusal(who, `has no field "${field}"`, `Use ${Object.keys(checks).join(", ")}`);
    if (value === undefined || fits(check, value)) continue;
    if ("fields" in check && isRecord(value)) checkFields(who, value, check.fields, `${field}.`);
    else throw refusal(who, `has an invalid ${field}`, `Expected ${expectedOf(check)}`);
  }
}

export function refusal(who: string, problem: string, advice: string): SkeinError {
  return new SkeinError("invalid_arguments", { problem: `${who} ${problem}`, advice });
}

function fits(check: Checks[string], value: unknown): boolean {
  return "fields" in check ? check.or?.fits(value) === true : check.fits(value);
}

function expectedOf(check: Checks[string]): string {
  if (!("fields" in check)) return check.expected;
  const keys = `keys (${Object.keys(check.fields).join(", ")})`;
  return check.or === undefined ? keys : `${check.or.expected}, or ${keys}`;
}
