import { SkeinError } from "../core/errors.ts";
import { isRecord } from "../core/is-record.ts";
import { parseAgentId, sessionIdProblem } from "../core/names.ts";
import type { SessionMeta } from "../store/contract.ts";
import type { ImportLoss } from "./imported-session.ts";
import { Losses } from "./imported-session.ts";
import type { JsonObject } from "./json-lines.ts";
import { objectField, parseObject, textField, timeField } from "./json-lines.ts";
import { mapOpenclawKey } from "./openclaw-keys.ts";

export interface PlannedSession {
  /** The key in `sessions.json`. */
  readonly sourceKey: string;
  /** A valid Skein key that no other row has. */
  readonly key: string;
  /** Explains why `key` differs from `sourceKey`. `null` if they are equal. */
  readonly keyNote: string | null;
  readonly sessionId: string;
  /** The transcript's name in the folder that contains `sessions.json`. The file might not exist. */
  readonly file: string;
  readonly updatedAt: number | null;
  readonly meta: SessionMeta;
  readonly notKept: readonly ImportLoss[];
}

export interface OpenclawPlan {
  readonly sessions: readonly PlannedSession[];
  readonly refused: readonly { readonly sourceKey: string; readonly problem: string }[];
}

/**
 * Plans the import of an OpenClaw folder from the content of its `sessions.json`. An invalid row does not affect the
 * others. Throws `unreadable_file` if the file is not a JSON object.
 */
export function planOpenclawFolder(
  content: string | Uint8Array,
  options: { readonly agentId?: string } = {},
): OpenclawPlan {
  const text = typeof content === "string" ? content : new TextDecoder().decode(content);
  const document = parseObject(text.replace(/^\ufeff/, ""));
  if (document === null)
    throw new SkeinError("unreadable_file", {
      file: "sessions.json",
      problem: "it is not a JSON object",
      advice: "Check that this is an OpenClaw folder, or import its transcripts one by one",
    });
  return new Planner(document, parseAgentId(options.agentId ?? "main")).plan();
}

interface Row {
  readonly sourceKey: string;
  readonly value: JsonObject;
  readonly sessionId: string;
  readonly file: string;
}

type KeyedRow = Row & Pick<PlannedSession, "key" | "keyNote"> & { readonly agentId: string };

class Planner {
  readonly #document: JsonObject;
  readonly #agentId: string;
  readonly #refused: { sourceKey: string; problem: string }[] = [];
  readonly #rows = new Map<string, Row>();
  readonly #keys = new Map<string, string>();
  /** Maps the key of a duplicate row to the key of the row that is imported. */
  readonly #duplicates = new Map<string, string>();
  readonly #takenKeys = new Set<string>();
  readonly #takenLabels = new Set<string>();

  constructor(document: JsonObject, agentId: string) {
    this.#document = document;
    this.#agentId = agentId;
  }

  plan(): OpenclawPlan {
    for (const [sourceKey, value] of Object.entries(this.#document)) {
      const row = readRow(sourceKey, value);
      if (typeof row === "string") this.#refuse(sourceKey.slice(0, 200), row);
      else this.#rows.set(sourceKey, row);
    }
    const keyed = this.#withoutDuplicates().flatMap((row) => this.#assignKey(row) ?? []);
    return { sessions: keyed.map((row) => this.#planSession(row)), refused: this.#refused };
  }

  #refuse(sourceKey: string, problem: string): null {
    this.#refused.push({ sourceKey, problem });
    return null;
  }

  /**
   * Keeps one row for each session. If a session has keys for both a cron job and a run of that job, the job's row is
   * kept. Otherwise, the first row is kept.
   */
  #withoutDuplicates(): Row[] {
    const isRun = ({ sourceKey }: Row) => /:cron:.*:run:/.test(sourceKey);
    const chosen = new Map<string, Row>();
    for (const row of this.#rows.values()) {
      const id = row.sessionId.toLowerCase();
      const known = chosen.get(id);
      if (known === undefined || (isRun(known) && !isRun(row))) chosen.set(id, row);
    }
    return [...this.#rows.values()].filter((row) => {
      const winner = chosen.get(row.sessionId.toLowerCase()) ?? row;
      if (winner === row) return true;
      this.#refuse(row.sourceKey, `its session is already imported under ${winner.sourceKey}`);
      this.#duplicates.set(row.sourceKey, winner.sourceKey);
      return false;
    });
  }

  /** Assigns the mapped key or, if it is taken, a key derived from the session ID. Returns `null` if both are taken. */
  #assignKey(row: Row): KeyedRow | null {
    const { sourceKey, value, sessionId } = row;
    const { agentId, ...mapped } = mapOpenclawKey(sourceKey, {
      agentId: this.#agentId,
      channel: textField(value, "channel") ?? textField(value, "lastChannel"),
      parentSessionId: this.#rows.get(textField(value, "spawnedBy") ?? "")?.sessionId ?? null,
    });
    const free = mapped.key === null || this.#takenKeys.has(mapped.key) ? null : mapped.key;
    const key = free ?? `agent:${agentId}:session:${sessionId}`;
    if (this.#takenKeys.has(key)) return this.#refuse(sourceKey, `another row has the key ${key}`);
    this.#takenKeys.add(key);
    this.#keys.set(sourceKey, key);
    const why = mapped.key === null ? mapped.problem : "another row has the same key";
    const note = free === null ? `Imported as ${key}: ${why}.` : `Imported as ${key}.`;
    return { ...row, agentId, key, keyNote: key === sourceKey ? null : note };
  }

  #planSession({ sourceKey, key, keyNote, sessionId, file, value, agentId }: KeyedRow): PlannedSession {
    const losses = new Losses();
    const { label, ...rest } = toMeta(value, losses);
    const spawner = textField(value, "spawnedBy");
    const spawnedBy = this.#keys.get(this.#duplicates.get(spawner ?? "") ?? spawner ?? "");
    if (spawner !== null && spawnedBy === undefined)
      losses.add("The session that spawned this one is not in the file.", spawner.slice(0, 200));
    const labelOfAgent = JSON.stringify([agentId, label]);
    const isFree = label !== undefined && !this.#takenLabels.has(labelOfAgent);
    if (label !== undefined && !isFree)
      losses.add("A label that another session already uses was left out.", label);
    this.#takenLabels.add(labelOfAgent);
    const meta: SessionMeta = {
      ...(isFree ? { label } : {}),
      ...rest,
      ...(spawnedBy === undefined ? {} : { spawnedBy }),
    };
    const updatedAt = timeField(value, "updatedAt");
    return { sourceKey, key, keyNote, sessionId, file, updatedAt, meta, notKept: losses.list() };
  }
}

const maxKeyLength = 4096;
/** Keys that would reach an object's prototype. */
const unsafeKeys = new Set(["__proto__", "constructor", "prototype"]);

/** Returns a row, or the reason why it cannot be used. */
function readRow(sourceKey: string, value: unknown): Row | string {
  if (sourceKey.length > maxKeyLength) return `its key is longer than ${maxKeyLength} characters`;
  if (unsafeKeys.has(sourceKey) || sourceKey.trim() === "") return "its key is not valid";
  if (!isRecord(value)) return "it is not an object";
  const sessionId = textField(value, "sessionId");
  if (sessionId === null) return "it has no session ID";
  const problem = sessionIdProblem(sessionId);
  if (problem !== null) return `its session ID is not valid: ${problem}`;
  const file = readFileName(value.sessionFile, sessionId);
  return file === null ? "its file is not in the folder" : { sourceKey, value, sessionId, file };
}

/** The folder might have been moved, so only the last segment of an absolute path is used. */
function readFileName(sessionFile: unknown, sessionId: string): string | null {
  if (sessionFile === undefined || sessionFile === null) return `${sessionId}.jsonl`;
  if (typeof sessionFile !== "string" || sessionFile.length > maxKeyLength) return null;
  const parts = sessionFile.split(/[\\/]/);
  const isAbsolute = sessionFile.startsWith("/") || /^[A-Za-z]:[\\/]/.test(sessionFile);
  if (parts.includes("..") || (parts.length > 1 && !isAbsolute)) return null;
  const name = parts.at(-1) ?? "";
  return /^[A-Za-z0-9][\w.%+-]{0,240}\.jsonl$/.test(name) ? name : null;
}

const maxTextLength = 512;
const usedFields = new Set(
  (
    "sessionId sessionFile updatedAt label displayName subject channel lastChannel deliveryContext lastTo " +
    "lastAccountId lastThreadId providerOverride modelOverride thinkingLevel verboseLevel sendPolicy spawnedBy " +
    "spawnDepth subagentRole"
  ).split(" "),
);

/** Returns a row's metadata, except `spawnedBy`, which depends on the other rows. */
function toMeta(row: JsonObject, losses: Losses): SessionMeta {
  const unused = Object.keys(row).filter((field) => !usedFields.has(field));
  if (unused.length > 0)
    losses.add(
      "Fields that session metadata cannot represent were left out.",
      joinNames(unused),
      unused.length,
    );
  const unusable: string[] = [];
  const text = (field: string): string | null => {
    const value = row[field];
    if (value === undefined || value === null) return null;
    const trimmed = typeof value === "string" ? value.trim() : "";
    if (trimmed !== "" && trimmed.length <= maxTextLength && trimmed.isWellFormed()) return trimmed;
    unusable.push(field);
    return null;
  };
  const oneOf = <T extends string>(field: string, values: readonly T[]): T | null => {
    const value = text(field);
    const known = values.find((each) => each === value) ?? null;
    if (value !== null && known === null) unusable.push(field);
    return known;
  };
  const provider = text("providerOverride");
  const model = text("modelOverride");
  const depth = row.spawnDepth;
  const meta = {
    label: text("label"),
    displayName: text("displayName") ?? text("subject"),
    channel: text("channel") ?? text("lastChannel"),
    delivery: toDelivery(row),
    model: model !== null && provider !== null ? `${provider}/${model}` : model,
    thinkingLevel: text("thinkingLevel"),
    verboseLevel: oneOf("verboseLevel", ["off", "on", "full"]),
    sendPolicy: oneOf("sendPolicy", ["allow", "deny"]),
    spawnDepth: typeof depth === "number" && Number.isSafeInteger(depth) && depth >= 0 ? depth : null,
    role: oneOf("subagentRole", ["orchestrator", "leaf"]),
  };
  if (unusable.length > 0)
    losses.add("Fields with invalid values were left out.", joinNames(unusable), unusable.length);
  return Object.fromEntries(Object.entries(meta).filter(([, value]) => value !== null)) as SessionMeta;
}

/** Older rows have the delivery target in four fields instead of one object. */
function toDelivery(row: JsonObject): SessionMeta["delivery"] | null {
  const { lastChannel, lastTo, lastAccountId, lastThreadId } = row;
  const target: JsonObject = objectField(row, "deliveryContext") ?? {
    channel: lastChannel,
    to: lastTo,
    accountId: lastAccountId,
    threadId: lastThreadId,
  };
  const channel = textField(target, "channel");
  if (channel === null || channel === "") return null;
  const fields = ["to", "accountId", "threadId"].flatMap((field) => {
    const value = typeof target[field] === "number" ? String(target[field]) : textField(target, field);
    return value !== null && value !== "" && value.length <= maxTextLength ? [[field, value]] : [];
  });
  return { channel, ...Object.fromEntries(fields) };
}

function joinNames(fields: readonly string[]): string {
  const names = fields.slice(0, 12).map((field) => field.slice(0, 40));
  return fields.length > names.length ? `${names.join(", ")}, …` : names.join(", ");
}
