import type {
  BranchSummary,
  Compaction,
  ContextEdit,
  CustomEntry,
  CustomMessage,
  Entry,
  Label,
  ModelChange,
  SessionInfo,
  ThinkingLevelChange,
  UsageEntry,
} from "./entries.ts";
import { entryProblem } from "./entries.ts";
import { SkeinError } from "./errors.ts";
import { isRecord } from "./is-record.ts";
import type {
  AssistantMessage,
  BashExecutionMessage,
  CustomRoleMessage,
  SystemMessage,
  ToolResultMessage,
  Usage,
  UserMessage,
} from "./messages.ts";

type Unsealed<E> = Omit<E, "id" | "parentId" | "timestamp">;
/** Requires fields that a file can lack, but that Skein always writes. */
type Complete<T, Field extends keyof T> = Omit<T, Field> & { [F in Field]-?: Exclude<T[F], undefined> };

type CompleteUsage = Complete<
  Usage,
  "input" | "output" | "cacheRead" | "cacheWrite" | "totalTokens" | "cost"
>;
type StopReason = "stop" | "length" | "toolUse" | "error" | "aborted" | "deferred";

/** The result of a tool call before it is written. */
export type ResultDraft = Complete<ToolResultMessage, "toolName" | "isError">;

/** A message to write. If it has no time, it gets the entry's time. */
export type MessageDraft =
  | UserMessage
  | (Omit<Complete<AssistantMessage, "api" | "provider" | "model">, "usage" | "stopReason"> & {
      usage: CompleteUsage;
      stopReason: StopReason;
    })
  | ResultDraft
  | Complete<BashExecutionMessage, "cancelled" | "truncated">
  | CustomRoleMessage
  | SystemMessage;

/** An entry before it has an ID, a parent and a time. */
export type EntryDraft =
  | { type: "message"; message: MessageDraft }
  | Unsealed<ModelChange>
  | Unsealed<ThinkingLevelChange>
  | (Omit<Unsealed<Complete<Compaction, "tokensBefore">>, "firstKeptEntryId"> & {
      /** If `null`, nothing before the compaction is kept. */
      firstKeptEntryId: string | null;
    })
  | Unsealed<Complete<BranchSummary, "fromId">>
  | Unsealed<CustomEntry>
  | Unsealed<CustomMessage>
  | Unsealed<Complete<UsageEntry, "provider" | "model" | "usage">>
  | Unsealed<ContextEdit>
  | Unsealed<Label>
  | Unsealed<SessionInfo>;

/** The ID, parent and time of an entry. */
interface EntryPlace {
  readonly id: string;
  readonly parentId: string | null;
  /** In milliseconds since 1970. */
  readonly time: number;
}

/** An entry and its line in the file, without the line break. */
interface SealedEntry {
  readonly entry: Entry;
  readonly line: string;
}

/**
 * The keys of the entry types that Skein writes, in pi's order. Base fields come first, except in custom types, where
 * they come last.
 */
const fieldOrder: Readonly<Record<string, readonly string[]>> = {
  message: ["id", "parentId", "timestamp", "message"],
  model_change: ["id", "parentId", "timestamp", "provider", "modelId"],
  thinking_level_change: ["id", "parentId", "timestamp", "thinkingLevel"],
  compaction: [
    "id",
    "parentId",
    "timestamp",
    "summary",
    "firstKeptEntryId",
    "tokensBefore",
    "details",
    "fromHook",
  ],
  branch_summary: ["id", "parentId", "timestamp", "fromId", "summary", "details", "fromHook"],
  custom: ["customType", "data", "id", "parentId", "timestamp"],
  custom_message: ["customType", "content", "display", "details", "id", "parentId", "timestamp"],
  label: ["id", "parentId", "timestamp", "targetId", "label"],
  session_info: ["id", "parentId", "timestamp", "name"],
  usage: ["id", "parentId", "timestamp", "provider", "model", "usage"],
  context_edit: ["id", "parentId", "timestamp", "targetId", "replacement"],
};

/** Fields that other readers of the format require. */
const neededFields: Readonly<Record<string, readonly string[]>> = {
  compaction: ["tokensBefore"],
  branch_summary: ["fromId"],
  custom_message: ["display"],
  usage: ["provider", "model", "usage"],
  assistant: ["api", "provider", "model", "usage", "stopReason"],
  toolResult: ["toolName", "isError"],
  bashExecution: ["cancelled", "truncated"],
};
const usageFields = ["input", "output", "cacheRead", "cacheWrite", "totalTokens", "cost"];
const stopReasons = ["stop", "length", "toolUse", "error", "aborted", "deferred"];
const writableRoles = ["user", "assistant", "toolResult", "bashExecution", "custom", "system"];

/**
 * Checks a draft and creates its line. The returned entry is parsed from that line so that memory and disk agree and
 * the caller's object is not shared. Throws `invalid_entry`.
 */
export function sealEntry(draft: EntryDraft, place: EntryPlace): SealedEntry {
  const type = isRecord(draft) ? String(draft.type) : typeof draft;
  const line = encodeDraft(draft, type, place);
  const entry = JSON.parse(line) as Entry & Record<string, unknown>;
  const isItself = isRecord(entry) && entry.type === type && entry.id === place.id;
  const problem = isItself
    ? (entryProblem(entry) ?? writeProblem(entry))
    : "its toJSON returns a different entry";
  if (problem !== null) throw new SkeinError("invalid_entry", { type, problem });
  return { entry, line };
}

function encodeDraft(draft: EntryDraft, type: string, place: EntryPlace): string {
  const order = Object.hasOwn(fieldOrder, type) ? fieldOrder[type] : undefined;
  if (order === undefined) {
    const problem = `Skein does not write this type, only ${Object.keys(fieldOrder).join(", ")}`;
    throw new SkeinError("invalid_entry", { type, problem });
  }
  try {
    const fields: Record<string, unknown> = { ...draft, ...derived(draft, place) };
    const line: Record<string, unknown> = { type };
    for (const field of order) line[field] = fields[field];
    return JSON.stringify(Object.assign(line, fields)) ?? "null";
  } catch (error) {
    const problem = `it cannot be written as JSON (${error instanceof Error ? error.message.split("\n")[0] : error})`;
    throw new SkeinError("invalid_entry", { type, problem }, { cause: error });
  }
}

/** Returns the fields that depend on the entry's position or are normalized. */
function derived(draft: EntryDraft, place: EntryPlace): object {
  const base = { id: place.id, parentId: place.parentId, timestamp: new Date(place.time).toISOString() };
  switch (draft.type) {
    case "message":
      return { ...base, message: timed(draft.message, place.time) };
    case "custom_message":
      return { ...base, display: draft.display ?? true };
    case "compaction":
      return { ...base, firstKeptEntryId: draft.firstKeptEntryId ?? place.id };
    case "session_info":
      return { ...base, name: tidyName(draft.name) };
    default:
      return base;
  }
}

function timed(message: unknown, time: number): unknown {
  return isRecord(message) && message.timestamp === undefined ? { ...message, timestamp: time } : message;
}

/** Reduces a name to one trimmed line, or returns `undefined` if nothing remains. */
function tidyName(name: unknown): unknown {
  if (typeof name !== "string") return name;
  const lines = name.split(/[\r\n\u2028\u2029]+/).map((line) => line.trim());
  return lines.filter((line) => line !== "").join(" ") || undefined;
}

function writeProblem(entry: Readonly<Record<string, unknown>>): string | null {
  const missing = missingField(entry, neededFields[String(entry.type)]);
  if (missing !== null) return missing;
  const { message } = entry;
  if (entry.type !== "message" || !isRecord(message)) return null;
  const role = String(message.role);
  if (!writableRoles.includes(role)) return `message.role must be one of ${writableRoles.join(", ")}`;
  const missingInMessage = missingField(message, neededFields[role]);
  if (missingInMessage !== null) return `message.${missingInMessage}`;
  return role === "assistant" ? assistantProblem(message) : null;
}

function assistantProblem(message: Readonly<Record<string, unknown>>): string | null {
  const { usage } = message;
  const missing = isRecord(usage) ? missingField(usage, usageFields) : null;
  if (missing !== null) return `message.usage.${missing}`;
  if (isRecord(usage) && isRecord(usage.cost) && usage.cost.total === undefined) {
    return "message.usage.cost.total is missing";
  }
  const known = stopReasons.includes(String(message.stopReason));
  return known ? null : `message.stopReason must be one of ${stopReasons.join(", ")}`;
}

function missingField(
  value: Readonly<Record<string, unknown>>,
  fields: readonly string[] = [],
): string | null {
  const field = fields.find((each) => value[each] === undefined);
  return field === undefined ? null : `${field} is missing`;
}
