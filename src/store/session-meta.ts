import type { Entry, SessionHeader } from "../core/entries.ts";
import { SkeinError } from "../core/errors.ts";
import { isRecord } from "../core/is-record.ts";
import { formatKey, parseKey, readKey } from "../core/keys.ts";
import { parseSessionId } from "../core/names.ts";
import type { EntryDraft } from "../core/seal.ts";
import type { Json, MetaPatch, SessionInit, SessionMeta, SessionRecord } from "./contract.ts";

/**
 * Metadata in a log. The header contains the initial values, and each change is a `skein.meta` entry with the changed
 * fields. The header of a truncated working set has the values at the point of truncation. `of` is the session's uid,
 * which ensures that entries copied by a fork or import do not apply to the new session. A change of the key is
 * recorded as the field `key`.
 */

export interface VersionedMeta {
  readonly meta: SessionMeta;
  /** Starts at 1 and increases with each change. */
  readonly version: number;
  /** `null` if the log does not contain it. */
  readonly key: string | null;
}

export function metaDraft(uid: string, changes: MetaPatch): EntryDraft {
  return { type: "custom", customType: "skein.meta", data: { of: uid, ...changes } };
}

/** Returns the fields that a `skein.meta` entry changes. */
export function changedIn(entry: Entry): string[] {
  if (entry.type !== "custom" || !isRecord(entry.data)) return [];
  return Object.keys(entry.data).filter((field) => field !== "of");
}

export function metaOf(header: SessionHeader, entries: Iterable<Entry>): VersionedMeta {
  const { meta, version, key } = header.skein ?? {};
  let found: VersionedMeta = {
    meta: isRecord(meta) ? (meta as SessionMeta) : {},
    version: typeof version === "number" ? version : 1,
    key: typeof key === "string" ? key : null,
  };
  for (const entry of entries) if (entry.type === "custom") found = applyMetaEntry(found, header, entry);
  return found;
}

export function applyMetaEntry(
  before: VersionedMeta,
  header: SessionHeader | null,
  entry: Entry,
): VersionedMeta {
  const { meta, version, key } = before;
  if (entry.type !== "custom" || entry.customType !== "skein.meta" || !isRecord(entry.data))
    return { meta, version, key };
  const { of, key: changed, ...changes } = entry.data;
  if (of === undefined || of !== header?.skein?.uid) return { meta, version, key };
  return {
    meta: withoutNulls({ ...meta, ...changes }),
    version: version + 1,
    key: typeof changed === "string" ? changed : key,
  };
}

function withoutNulls(meta: Record<string, unknown>): SessionMeta {
  return Object.fromEntries(Object.entries(meta).filter(([, value]) => value !== null)) as SessionMeta;
}

/** Returns the fields that differ, with their new values. The value of a removed field is `null`. */
export function metaChanges(before: object, after: object): MetaPatch {
  const fields = new Set([...Object.keys(before), ...Object.keys(after)]);
  return Object.fromEntries(
    [...fields]
      .filter(
        (field) => JSON.stringify(Reflect.get(before, field)) !== JSON.stringify(Reflect.get(after, field)),
      )
      .map((field) => [field, Reflect.get(after, field) ?? null]),
  );
}

/** Immutable fields: lineage, and the limits that a session was spawned with. */
const writtenOnce = [
  "spawnedBy",
  "forkedFrom",
  "spawnDepth",
  "spawnLimit",
  "spawnMode",
  "ownThread",
  "role",
  "rootId",
  "toolLayers",
];
const longestLabel = 512;

export function firstMeta(meta: SessionMeta = {}): SessionMeta {
  return applyPatch({}, meta);
}

/** Applies a patch. Returns the same object if nothing changes. */
export function applyPatch(meta: SessionMeta, patch: MetaPatch): SessionMeta {
  const changed = Object.entries(patch).filter(
    ([field, value]) => value !== undefined && JSON.stringify(meta[field] ?? null) !== JSON.stringify(value),
  );
  if (changed.length === 0) return meta;
  for (const [field, value] of changed) {
    if (writtenOnce.includes(field) && meta[field] !== undefined) {
      throw new SkeinError("conflict", {
        problem: `"${field}" cannot be changed on an existing session`,
        advice: "Omit it to keep the value",
      });
    }
    if (field === "label" && value !== null) checkLabel(value);
  }
  return withoutNulls({ ...meta, ...Object.fromEntries(changed) });
}

function checkLabel(label: unknown): void {
  const fits =
    typeof label === "string" && label.trim() === label && label !== "" && label.length <= longestLabel;
  if (!fits) {
    throw new SkeinError("invalid_arguments", {
      problem: "A session's label must be a string without leading or trailing spaces",
      advice: `Use 1 to ${longestLabel} characters`,
    });
  }
}

/** The changes made by a reset. Used by every store. */
interface ResetPlan {
  /** The old session loses its label and its key, which `resetFrom` records. */
  readonly changes: MetaPatch & { readonly key: string };
  /**
   * The new session gets the label, the key and all other metadata except `archived`, `importedFrom` and `forkedFrom`.
   */
  readonly fresh: SessionInit;
}

/** Rejects a session that has already been reset, and an invalid new ID. */
export function planReset(
  { key, agentId, sessionId, cwd, meta }: SessionRecord,
  options: { readonly sessionId?: string },
): ResetPlan {
  if (parseKey(key).form === "reset") {
    throw new SkeinError("conflict", {
      problem: `Session ${sessionId} has already been reset`,
      advice: "Reset the session that now has its key",
    });
  }
  if (options.sessionId !== undefined) parseSessionId(options.sessionId);
  const { archived: _archived, importedFrom: _importedFrom, forkedFrom: _forkedFrom, ...kept } = meta;
  return {
    changes: {
      key: formatKey({ form: "reset", agentId, sessionId }),
      resetFrom: key,
      ...(meta.label === undefined ? {} : { label: null }),
    },
    fresh: { key, cwd, meta: kept as SessionMeta, ...options },
  };
}

/**
 * Metadata claimed by a session file. Anyone could have written the file, so the claims do not determine where answers
 * are sent, which model is used or which working directory the session has.
 */

const maxTextLength = 512;
const maxDisplayLength = 16 * 1024;

type FieldReader = (value: unknown) => Json | undefined;

const lineageFields: Readonly<Record<string, FieldReader>> = {
  spawnedBy: readSpawner,
  spawnDepth: readCount,
  spawnLimit: readCount,
  spawnMode: oneOf("run", "session"),
  role: oneOf("orchestrator", "leaf"),
  rootId: readText,
  // Each layer can only restrict the tools. An unreadable layer allows none.
  toolLayers: (value) => value as Json,
};

const knownFields: Readonly<Record<string, FieldReader>> = {
  ...lineageFields,
  label: readText,
  displayName: readText,
  channel: readText,
  model: readText,
  thinkingLevel: readText,
  delivery: readDelivery,
  sendPolicy: oneOf("allow", "deny"),
  verboseLevel: oneOf("off", "on", "full"),
  sandboxed: readTrue,
  archived: readTrue,
};

/**
 * Returns the claims that take effect. `sandboxed` restricts the session, and the title is only displayed. With
 * `lineage`, the session also remains a child of its parent, which restricts it further.
 */
export function harmlessMeta(
  claimed: SessionMeta,
  { lineage = false }: { readonly lineage?: boolean } = {},
): SessionMeta {
  const { sandboxed, displayName, label, ...rest } = readMeta(claimed);
  const title = displayName ?? label;
  const kin = lineage && rest.spawnedBy !== undefined ? pick(rest, Object.keys(lineageFields)) : {};
  return {
    ...kin,
    ...(title === undefined ? {} : { displayName: title }),
    ...(sandboxed === undefined ? {} : { sandboxed }),
  };
}

/** Drops known fields with a wrong type, and `importedFrom`. */
export function readMeta(claimed: SessionMeta): SessionMeta {
  const read = Object.entries(claimed).flatMap(([field, value]) => {
    const known = Object.hasOwn(knownFields, field) ? knownFields[field] : undefined;
    const usable = known === undefined ? value : known(value);
    return usable === undefined || field === "importedFrom" ? [] : [[field, usable] as const];
  });
  return Object.fromEntries(read);
}

/** Returns the claims for `importedFrom.claimed`, which is only displayed. Large values are dropped. */
export function claimsForDisplay(claimed: Readonly<Record<string, Json | undefined>>): Json {
  let length = 0;
  const shown = Object.entries(claimed).filter(([field, value]) => {
    if (value === undefined || value === "" || field === "importedFrom") return false;
    const own = field.length + JSON.stringify(value).length;
    if (length + own > maxDisplayLength) return false;
    length += own;
    return true;
  });
  return Object.fromEntries(shown) as Json;
}

function pick(meta: SessionMeta, fields: readonly string[]): SessionMeta {
  return Object.fromEntries(Object.entries(meta).filter(([field]) => fields.includes(field)));
}

function readText(value: unknown): string | undefined {
  if (typeof value !== "string" || value.trim() !== value || !value.isWellFormed()) return undefined;
  return value !== "" && value.length <= maxTextLength ? value : undefined;
}

function readTrue(value: unknown): true | undefined {
  return value === true ? true : undefined;
}

function readCount(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

function oneOf(...allowed: readonly string[]): FieldReader {
  return (value) => allowed.find((each) => each === value);
}

function readSpawner(value: unknown): string | undefined {
  const key = typeof value === "string" ? readKey(value) : null;
  return key === null || "problem" in key ? undefined : formatKey(key);
}

function readDelivery(value: unknown): Json | undefined {
  if (!isRecord(value) || readText(value.channel) === undefined) return undefined;
  const fields = ["channel", "to", "accountId", "threadId"].flatMap((field) => {
    const text = readText(value[field]);
    return text === undefined ? [] : [[field, text] as const];
  });
  return Object.fromEntries(fields);
}
