/**
 * The reading contract of `entries.schema.ts` again, without TypeBox: that takes longer to load than everything else
 * together. A property test holds the two equal. A check returns `null`, or what is wrong, led by its path.
 */

type Check = (value: unknown) => string | null;

const string: Check = (value) => (typeof value === "string" ? null : " must be a string");
const name: Check = (value) =>
  typeof value === "string" && value !== "" ? null : " must be a string that is not empty";
const number: Check = (value) => (Number.isFinite(value) ? null : " must be a number");
const boolean: Check = (value) => (typeof value === "boolean" ? null : " must be true or false");
const record: Check = (value) => (isRecord(value) ? null : " must be an object");
const stringOrNull: Check = (value) =>
  value === null || typeof value === "string" ? null : " must be a string or null";

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

interface Fields {
  readonly [field: string]: Check | { readonly optional: Check };
}

function object(fields: Fields): Check {
  const rows = Object.entries(fields).map(([field, rule]) =>
    typeof rule === "function"
      ? { field, check: rule, optional: false }
      : { field, check: rule.optional, optional: true },
  );
  return (value) => {
    if (!isRecord(value)) return " must be an object";
    for (const { field, check, optional } of rows) {
      const found = value[field];
      if (found === undefined && optional) continue;
      const problem = check(found);
      if (problem !== null) return `.${field}${problem}`;
    }
    return null;
  };
}

function arrayOf(check: Check): Check {
  return (value) => {
    if (!Array.isArray(value)) return " must be an array";
    for (let index = 0; index < value.length; index++) {
      const problem = check(value[index]);
      if (problem !== null) return `[${index}]${problem}`;
    }
    return null;
  };
}

function stringOr(check: Check): Check {
  return (value) => (typeof value === "string" ? null : check(value));
}

/** Picks the check by a tag. Another tag than these is let through: kept, and passed by. */
function tagged(tag: string, checks: Readonly<Record<string, Check>>): Check {
  const table = new Map(Object.entries(checks));
  return (value) => {
    if (!isRecord(value)) return " must be an object";
    const found = value[tag];
    if (typeof found !== "string") return `.${tag} must be a string`;
    return table.get(found)?.(value) ?? null;
  };
}

const opt = (optional: Check) => ({ optional });
const anything: Check = () => null;

const numbers = (...fields: string[]): Fields =>
  Object.fromEntries(fields.map((field) => [field, opt(number)]));

const blob = object({ sha256: string, bytes: number, mimeType: string, was: string });
/** What we keep of a block or message beside what the format has fields for. */
const ours = (fields: Fields = {}) => opt(object({ providerMetadata: opt(record), ...fields }));
const text = object({
  text: string,
  textSignature: opt(string),
  skein: ours({ blob: opt(blob), part: opt(record) }),
});
const thinking = object({
  thinking: string,
  thinkingSignature: opt(string),
  redacted: opt(boolean),
  skein: ours(),
});
const image = object({ data: string, mimeType: string, skein: ours({ filename: opt(string) }) });
const toolCall = object({
  id: string,
  name: string,
  arguments: record,
  thoughtSignature: opt(string),
  skein: ours({ invalidInput: opt(boolean) }),
});

const block = tagged("type", { text, image });
const assistantBlock = tagged("type", { text, thinking, toolCall });
const blocks = arrayOf(block);
const assistantBlocks = arrayOf(assistantBlock);
const content: Check = stringOr(blocks);

const cost = object(numbers("input", "output", "cacheRead", "cacheWrite", "total"));
const usage = object({
  ...numbers("input", "output", "cacheRead", "cacheWrite", "totalTokens"),
  cost: opt(cost),
});
const provenance = object({
  kind: string,
  sourceSessionKey: opt(string),
  sourceChannel: opt(string),
  sourceTool: opt(string),
  sourcePeer: opt(string),
  sourcePeerName: opt(string),
  rootId: opt(string),
  hops: opt(number),
  deliveryId: opt(string),
  verbatim: opt(boolean),
});

const message = tagged("role", {
  user: object({ content, timestamp: opt(number), provenance: opt(provenance), skein: ours() }),
  assistant: object({
    content: assistantBlocks,
    api: opt(string),
    provider: opt(string),
    model: opt(string),
    usage: opt(usage),
    stopReason: opt(string),
    errorMessage: opt(string),
    timestamp: opt(number),
    provenance: opt(provenance),
    skein: ours({ response: opt(record), usage: opt(record), finishReason: opt(record) }),
  }),
  toolResult: object({
    toolCallId: string,
    toolName: opt(string),
    content: blocks,
    isError: opt(boolean),
    timestamp: opt(number),
    skein: ours({ groupMetadata: opt(record), output: opt(string) }),
  }),
  bashExecution: object({
    command: string,
    output: string,
    exitCode: opt(number),
    cancelled: opt(boolean),
    truncated: opt(boolean),
    fullOutputPath: opt(string),
    excludeFromContext: opt(boolean),
    timestamp: opt(number),
  }),
  custom: object({ customType: string, content, display: opt(boolean), timestamp: opt(number) }),
  system: object({ content, timestamp: opt(number) }),
});

const base = { id: name, parentId: stringOrNull, timestamp: string };

const entryChecks: ReadonlyMap<string, Check> = new Map(
  Object.entries({
    message: object({ ...base, message }),
    model_change: object({ ...base, provider: string, modelId: string }),
    thinking_level_change: object({ ...base, thinkingLevel: string }),
    compaction: object({
      ...base,
      summary: string,
      firstKeptEntryId: opt(string),
      tokensBefore: opt(number),
      fromHook: opt(boolean),
    }),
    branch_summary: object({ ...base, fromId: opt(string), summary: string, fromHook: opt(boolean) }),
    custom: object({ ...base, customType: string, data: opt(anything) }),
    custom_message: object({ ...base, customType: string, content, display: opt(boolean) }),
    label: object({ ...base, targetId: string, label: opt(string) }),
    session_info: object({ ...base, name: opt(string) }),
    usage: object({ ...base, provider: opt(string), model: opt(string), usage: opt(usage) }),
    context_edit: object({
      ...base,
      targetId: string,
      replacement: (value) => (value === null ? null : object({ content })(value)),
    }),
    leaf: object({ ...base, targetId: stringOrNull }),
    active_tools_change: object({ ...base, activeToolNames: arrayOf(string) }),
  }),
);

export const entryTypes: readonly string[] = [...entryChecks.keys()];
const baseCheck = object(base);

/** What keeps this from being an entry of its type; for an unknown type only id, parent and time are looked at. */
export function entryProblem(value: Readonly<Record<string, unknown>>): string | null {
  const check = typeof value.type === "string" ? entryChecks.get(value.type) : undefined;
  return (check ?? baseCheck)(value)?.replace(/^\./, "") ?? null;
}

export const headerProblem: Check = object({
  id: name,
  version: opt(number),
  timestamp: opt(string),
  cwd: opt(string),
  parentSession: opt(string),
  skein: opt(record),
});

/** Whether a block can stand in the content of a message of this role. */
export function isUsableBlock(role: unknown, value: unknown): boolean {
  return (role === "assistant" ? assistantBlock : block)(value) === null;
}
