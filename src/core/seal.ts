import type {
  BranchSummary,
  Compaction,
  CustomEntry,
  CustomMessage,
  Entry,
  Label,
  MessageEntry,
  ModelChange,
  SessionInfo,
  ThinkingLevelChange,
} from "./entries.ts";
import { SkeinError } from "./errors.ts";
import { entryProblem, isRecord } from "./shape.ts";

type Unsealed<E> = Omit<E, "id" | "parentId" | "timestamp">;

/**
 * An entry before it has its place: what the caller decides. A message's own time may be left out.
 *
 * @example
 * ```ts
 * import type { EntryDraft } from "skein";
 * const draft: EntryDraft = { type: "model_change", provider: "anthropic", modelId: "claude-sonnet-4-5" };
 * ```
 */
export type EntryDraft =
  | Unsealed<MessageEntry>
  | Unsealed<ModelChange>
  | Unsealed<ThinkingLevelChange>
  | (Omit<Unsealed<Compaction>, "firstKeptEntryId"> & {
      /** `null`: nothing before the compaction is kept. */
      firstKeptEntryId: string | null;
    })
  | Unsealed<BranchSummary>
  | Unsealed<CustomEntry>
  | Unsealed<CustomMessage>
  | Unsealed<Label>
  | Unsealed<SessionInfo>;

/** Where and when an entry stands. */
export interface EntryPlace {
  readonly id: string;
  readonly parentId: string | null;
  /** In milliseconds since 1970. */
  readonly time: number;
}

/** An entry with the very line that a file gets, without its line break. */
export interface SealedEntry {
  readonly entry: Entry;
  readonly line: string;
}

const writable = new Set([
  "message",
  "model_change",
  "thinking_level_change",
  "compaction",
  "branch_summary",
  "custom",
  "custom_message",
  "label",
  "session_info",
]);

/** What other readers of the format take for granted, and we therefore always write. */
const neededFields: Readonly<Record<string, readonly string[]>> = {
  compaction: ["tokensBefore"],
  branch_summary: ["fromId"],
  custom_message: ["display"],
  assistant: ["api", "provider", "model", "usage", "stopReason"],
  toolResult: ["toolName", "isError"],
  bashExecution: ["cancelled", "truncated"],
};
const usageFields = ["input", "output", "cacheRead", "cacheWrite", "totalTokens", "cost"];
const stopReasons = ["stop", "length", "toolUse", "error", "aborted"];
const writableRoles = ["user", "assistant", "toolResult", "bashExecution", "custom"];

/**
 * Checks a draft and fixes its line. The entry returned is read back from that line: memory and disk hold the same,
 * and the caller's object stays the caller's. Throws `invalid_entry` and changes nothing.
 */
export function sealEntry(draft: EntryDraft, place: EntryPlace): SealedEntry {
  const type = isRecord(draft) ? String(draft.type) : typeof draft;
  const line = encodeDraft(draft, type, place);
  const entry = JSON.parse(line) as Entry & Record<string, unknown>;
  const problem = entryProblem(entry) ?? writeProblem(entry);
  if (problem !== null) throw new SkeinError("invalid_entry", { type, problem });
  return { entry, line };
}

function encodeDraft(draft: EntryDraft, type: string, place: EntryPlace): string {
  if (!writable.has(type)) {
    const problem = `this type is not written, only ${[...writable].join(", ")}`;
    throw new SkeinError("invalid_entry", { type, problem });
  }
  const base = { id: place.id, parentId: place.parentId, timestamp: new Date(place.time).toISOString() };
  try {
    return JSON.stringify(arrange(draft, base));
  } catch (error) {
    const problem = `it cannot be written as JSON (${error instanceof Error ? error.message.split("\n")[0] : error})`;
    throw new SkeinError("invalid_entry", { type, problem }, { cause: error });
  }
}

/** The key order that pi writes: its base fields first, but last in the two custom types. */
function arrange(
  draft: EntryDraft,
  base: { id: string; parentId: string | null; timestamp: string },
): object {
  const { type, ...rest } = withoutBase(draft);
  switch (draft.type) {
    case "custom": {
      const { customType, data, ...others } = rest;
      return { type, customType, data, ...base, ...others };
    }
    case "custom_message": {
      const { customType, content, display = true, details, ...others } = rest;
      return { type, customType, content, display, details, ...base, ...others };
    }
    case "message":
      return { type, ...base, ...rest, message: timed(draft.message, Date.parse(base.timestamp)) };
    case "compaction":
      return { type, ...base, ...rest, firstKeptEntryId: draft.firstKeptEntryId ?? base.id };
    case "session_info":
      return { type, ...base, ...rest, name: tidyName(draft.name) };
    default:
      return { type, ...base, ...rest };
  }
}

function withoutBase(draft: EntryDraft): Record<string, unknown> & { type: string } {
  const {
    id: _id,
    parentId: _parentId,
    timestamp: _timestamp,
    ...rest
  } = draft as EntryDraft & {
    id?: unknown;
    parentId?: unknown;
    timestamp?: unknown;
  };
  return rest;
}

function timed(message: unknown, time: number): unknown {
  return isRecord(message) && message.timestamp === undefined ? { ...message, timestamp: time } : message;
}

/** One line, no blanks around it; nothing left of it means no name. */
function tidyName(name: unknown): unknown {
  return typeof name === "string"
    ? name.replace(/\s*[\r\n\u2028\u2029]+\s*/g, " ").trim() || undefined
    : name;
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
  const missing = isRecord(message.usage) ? missingField(message.usage, usageFields) : null;
  if (missing !== null) return `message.usage.${missing}`;
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
