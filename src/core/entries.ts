import { findProblems } from "./check-schema.ts";
import { stringifyJson, withExactNumbers } from "./json.ts";
import { ContentSchema, MessageSchema, UsageSchema } from "./messages.ts";
import * as s from "./schema.ts";

const HeaderSchema = s.object({
  type: s.literal("session"),
  /** Absent in version 1. */
  version: s.optional(s.number()),
  id: s.string({ minLength: 1 }),
  timestamp: s.optional(s.string()),
  cwd: s.optional(s.string()),
  parentSession: s.optional(s.string()),
  skein: s.optional(s.record(s.unknown())),
});
/** The first line of a session file. */
export interface SessionHeader extends s.Static<typeof HeaderSchema> {}

const base = { id: s.string({ minLength: 1 }), parentId: s.nullable(s.string()), timestamp: s.string() };
const BaseEntrySchema = s.object(base);

const entry = <const N extends string, F extends s.Fields>(type: N, fields: F) =>
  s.object({ type: s.literal(type), ...base, ...fields });

const MessageEntrySchema = entry("message", { message: MessageSchema });
export interface MessageEntry extends s.Static<typeof MessageEntrySchema> {}
const ModelChangeSchema = entry("model_change", { provider: s.string(), modelId: s.string() });
export interface ModelChange extends s.Static<typeof ModelChangeSchema> {}
const ThinkingLevelChangeSchema = entry("thinking_level_change", { thinkingLevel: s.string() });
export interface ThinkingLevelChange extends s.Static<typeof ThinkingLevelChangeSchema> {}
const CompactionSchema = entry("compaction", {
  summary: s.string(),
  /** If this is the entry's own ID, nothing before it is kept. */
  firstKeptEntryId: s.optional(s.string()),
  tokensBefore: s.optional(s.number()),
  details: s.optional(s.unknown()),
  fromHook: s.optional(s.boolean()),
});
export interface Compaction extends s.Static<typeof CompactionSchema> {}
const BranchSummarySchema = entry("branch_summary", {
  /** The leaf of the abandoned branch, or "root". Older files have the branch point here. */
  fromId: s.optional(s.string()),
  summary: s.string(),
  details: s.optional(s.unknown()),
  fromHook: s.optional(s.boolean()),
});
export interface BranchSummary extends s.Static<typeof BranchSummarySchema> {}
const CustomEntrySchema = entry("custom", {
  customType: s.string(),
  data: s.optional(s.unknown()),
});
export interface CustomEntry extends s.Static<typeof CustomEntrySchema> {}
const CustomMessageSchema = entry("custom_message", {
  customType: s.string(),
  content: ContentSchema,
  display: s.optional(s.boolean()),
  details: s.optional(s.unknown()),
});
export interface CustomMessage extends s.Static<typeof CustomMessageSchema> {}
const LabelSchema = entry("label", {
  targetId: s.string(),
  /** If absent or empty, the label is removed. */
  label: s.optional(s.string()),
});
export interface Label extends s.Static<typeof LabelSchema> {}
const SessionInfoSchema = entry("session_info", {
  /** If absent or empty, the name is removed. */
  name: s.optional(s.string()),
});
export interface SessionInfo extends s.Static<typeof SessionInfoSchema> {}

// Added by later versions of pi and its harness. Skein never writes `leaf` and `active_tools_change`.
const UsageEntrySchema = entry("usage", {
  provider: s.optional(s.string()),
  model: s.optional(s.string()),
  usage: s.optional(UsageSchema),
});
export interface UsageEntry extends s.Static<typeof UsageEntrySchema> {}
const ContextEditSchema = entry("context_edit", {
  targetId: s.string(),
  replacement: s.nullable(s.object({ content: ContentSchema })),
});
export interface ContextEdit extends s.Static<typeof ContextEditSchema> {}
const LeafSchema = entry("leaf", { targetId: s.nullable(s.string()) });
export interface LeafEntry extends s.Static<typeof LeafSchema> {}
const ActiveToolsChangeSchema = entry("active_tools_change", {
  activeToolNames: s.array(s.string()),
});
export interface ActiveToolsChange extends s.Static<typeof ActiveToolsChangeSchema> {}

/**
 * An entry with an unknown type, or one that does not match its type's schema. It keeps its position in the tree,
 * contributes nothing to the context, and is written back unchanged. Exists only in memory.
 */
export interface OpaqueEntry {
  readonly type: "opaque";
  readonly id: string;
  readonly parentId: string | null;
  readonly timestamp: string;
  /** The parsed object from the line. */
  readonly original: Readonly<Record<string, unknown>>;
  /** Why it does not match its type's schema, or `null` if the type is unknown. */
  readonly problem: string | null;
}

/** One line in a session, with its position in the tree. */
export type Entry =
  | MessageEntry
  | ModelChange
  | ThinkingLevelChange
  | Compaction
  | BranchSummary
  | CustomEntry
  | CustomMessage
  | Label
  | SessionInfo
  | UsageEntry
  | ContextEdit
  | LeafEntry
  | ActiveToolsChange
  | OpaqueEntry;

export const entrySchemas: ReadonlyMap<string, s.Schema> = new Map(
  Object.entries({
    message: MessageEntrySchema,
    model_change: ModelChangeSchema,
    thinking_level_change: ThinkingLevelChangeSchema,
    compaction: CompactionSchema,
    branch_summary: BranchSummarySchema,
    custom: CustomEntrySchema,
    custom_message: CustomMessageSchema,
    label: LabelSchema,
    session_info: SessionInfoSchema,
    usage: UsageEntrySchema,
    context_edit: ContextEditSchema,
    leaf: LeafSchema,
    active_tools_change: ActiveToolsChangeSchema,
  }),
);

export const entryTypes: readonly string[] = [...entrySchemas.keys()];

/**
 * Explains why this is not a valid entry, or returns `null` if it is. For an unknown type, only the ID, parent and time
 * are checked.
 */
export function entryProblem(value: Readonly<Record<string, unknown>>): string | null {
  const schema = typeof value.type === "string" ? entrySchemas.get(value.type) : undefined;
  return firstProblem(schema ?? BaseEntrySchema, value);
}

/** Explains why this is not a valid first line of a session file, or returns `null` if it is. */
export function headerProblem(value: Readonly<Record<string, unknown>>): string | null {
  return firstProblem(HeaderSchema, value);
}

/** For example `message.content[0].text must be a string`. */
function firstProblem(schema: s.Schema, value: unknown): string | null {
  const [problem] = findProblems(schema, value, 1);
  if (problem === undefined) return null;
  const path = problem.path.map((at) => (typeof at === "number" ? `[${at}]` : `.${at}`)).join("");
  return `${path.replace(/^\./, "")} must be ${expected(problem.schema)}`;
}

const expectedByType = {
  object: "an object",
  array: "an array",
  string: "a string",
  integer: "a number",
  number: "a number",
  boolean: "true or false",
  null: "null",
};

function expected({ type, minLength = 0, anyOf, discriminator }: s.JsonSchema): string {
  if (discriminator !== undefined) return "an object";
  if (type !== undefined) return `${expectedByType[type]}${minLength > 0 ? " that is not empty" : ""}`;
  const other = anyOf?.findLast((each) => each.type !== "null") ?? {};
  return other.type === "string" ? "a string or null" : expected(other);
}

/** A line that is not an entry. */
export interface CorruptLine {
  /** The beginning of the line, for display. */
  readonly corrupt: string;
  /** Counted from 1. */
  readonly line: number;
  readonly reason: CorruptReason;
}

/** `torn`: the last line was truncated during a write. */
export type CorruptReason = "not_utf8" | "not_json" | "torn" | "not_object" | "not_entry";

export const currentVersion = 3;

/** Bookkeeping entries are ignored when `expectedLeafId` is compared with the leaf. */
export function isBookkeeping(entry: Entry): boolean {
  return (
    entry.type === "label" ||
    entry.type === "session_info" ||
    (entry.type === "custom" && entry.customType.startsWith("skein."))
  );
}

/** Returns the entry in the same session that this one copies from another branch, or `null` if it is not a copy. */
export function copiedFrom(line: Readonly<Record<string, unknown>>): string | null {
  const { skein } = line;
  if (typeof skein !== "object" || skein === null || !("copyOf" in skein)) return null;
  return typeof skein.copyOf === "string" ? skein.copyOf : null;
}

/**
 * Whether a line is damaged rather than an entry.
 *
 * @example
 * ```ts
 * import { isCorrupt, parseSession } from "skein";
 * const entries = parseSession("").lines.filter((line) => !isCorrupt(line));
 * ```
 */
export function isCorrupt(line: Entry | CorruptLine): line is CorruptLine {
  return !("type" in line);
}

/** Returns the object to write for an entry. */
export function lineOf(entry: Entry): Readonly<Record<string, unknown>> {
  return entry.type === "opaque" ? entry.original : (entry as unknown as Record<string, unknown>);
}

/** The exact text of numbers that a double cannot represent. */
const exactLines = new WeakMap<object, unknown>();

/** Keeps the exact numbers for an entry, either from its line or from the entry it was derived from. */
export function keepExact(entry: Entry, from: { readonly exact: unknown } | Entry): void {
  const exact = "exact" in from ? from.exact : exactLines.get(from);
  if (exact !== null && exact !== undefined) exactLines.set(entry, exact);
}

/** Returns the same entry with a different parent. */
export function withParentId(entry: Entry, parentId: string | null): Entry {
  const moved: Entry =
    entry.type === "opaque"
      ? { ...entry, parentId, original: { ...entry.original, parentId } }
      : { ...entry, parentId };
  keepExact(moved, entry);
  return moved;
}

/** Encodes one entry without a line break. The keys keep the object's order. */
export function encodeEntry(entry: Entry): string {
  const exact = exactLines.get(entry);
  if (exact === undefined) return stringifyJson(lineOf(entry));
  return stringifyJson(withExactNumbers(lineOf(entry), exact));
}

/** Creates the header for a new session, with its keys in pi's order. */
export function newHeader(fields: {
  id: string;
  time: number;
  cwd: string;
  parentSession?: string | undefined;
}): SessionHeader {
  const { id, time, cwd, parentSession } = fields;
  const timestamp = new Date(time).toISOString();
  const header: SessionHeader = { type: "session", version: currentVersion, id, timestamp, cwd };
  if (parentSession !== undefined) header.parentSession = parentSession;
  return header;
}

/** Entries are migrated to version 3 when they are read, so the header must state that version. */
export function currentHeader(header: SessionHeader): SessionHeader {
  const { type, version = 1, ...rest } = header;
  return version >= currentVersion ? header : { type, version: currentVersion, ...rest };
}

/** Rebuilds a lost header from the first entry and the caller's fields. */
export function rebuiltHeader(
  first: Entry | undefined,
  known: { id: string; cwd?: string } | undefined,
): SessionHeader {
  const time = Date.parse(first?.timestamp ?? "");
  const { id = "recovered", cwd = "" } = known ?? {};
  return newHeader({ id, time: Number.isNaN(time) ? 0 : time, cwd });
}
