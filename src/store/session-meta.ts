import type { Entry, SessionHeader } from "../core/entries.ts";
import { SkeinError } from "../core/errors.ts";
import { formatKey, parseKey, readKey } from "../core/keys.ts";
import { parseSessionId } from "../core/names.ts";
import type { EntryDraft } from "../core/seal.ts";
import { isRecord } from "../core/shape.ts";
import type { Json, MetaPatch, SessionInit, SessionMeta, SessionRecord } from "./contract.ts";

/**
 * A session's metadata in its log: first values in the header, each change an entry `skein.meta` with the changed
 * fields. A cut working set's header has them as they were at the cut. `of` is the uid of the session it is about: a fork
 * or an import copies entries, but not what they say of their old session. A changed key stands among the fields.
 */

export interface VersionedMeta {
  readonly meta: SessionMeta;
  /** From 1 up, one more with each change. */
  readonly version: number;
  /** As the log says; `null`: it does not. */
  readonly key: string | null;
}

export function metaDraft(uid: string, changes: MetaPatch): EntryDraft {
  return { type: "custom", customType: "skein.meta", data: { of: uid, ...changes } };
}

/** The fields that an entry of `metaDraft` changes. */
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
  for (const entry of entries) found = metaAfter(found, header, entry);
  return found;
}

/** The metadata with one entry more. */
export function metaAfter(before: VersionedMeta, header: SessionHeader | null, entry: Entry): VersionedMeta {
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

/** The fields that differ, as they are afterwards; `null` for those that are gone. */
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

/** The rules for a session's metadata, the same in every store. */

/** Written once: who somebody's parent is does not change, nor as what and with which tools it was spawned. */
const writtenOnce = [
  "spawnedBy",
  "spawnDepth",
  "spawnLimit",
  "spawnMode",
  "ownThread",
  "role",
  "rootId",
  "toolLayers",
];
const longestLabel = 512;

/** First values of a new session. */
export function firstMeta(meta: SessionMeta = {}): SessionMeta {
  return applyPatch({}, meta);
}

/** The metadata after a patch. The same object when nothing changes. */
export function applyPatch(meta: SessionMeta, patch: MetaPatch): SessionMeta {
  const changed = Object.entries(patch).filter(
    ([field, value]) => value !== undefined && JSON.stringify(meta[field] ?? null) !== JSON.stringify(value),
  );
  if (changed.length === 0) return meta;
  for (const [field, value] of changed) {
    if (writtenOnce.includes(field) && meta[field] !== undefined) {
      throw new SkeinError("conflict", {
        problem: `"${field}" of a session is written once`,
        advice: "Leave it out; it stays as it is",
      });
    }
    if (field === "label" && value !== null) checkLabel(value);
  }
  const next = { ...meta, ...Object.fromEntries(changed) };
  return Object.fromEntries(Object.entries(next).filter(([, value]) => value !== null)) as SessionMeta;
}

function checkLabel(label: unknown): void {
  const fits =
    typeof label === "string" && label.trim() === label && label !== "" && label.length <= longestLabel;
  if (!fits) {
    throw new SkeinError("invalid_arguments", {
      problem: "A session's label must be text without blanks around it",
      advice: `Use 1 to ${longestLabel} characters`,
    });
  }
}

/** What a reset comes to, the same in every store. */
interface ResetPlan {
  /** Of the old session: it gives up its key, which `resetFrom` remembers, and its label. */
  readonly changes: MetaPatch & { readonly key: string };
  /** The new one has both, and all other metadata except `archived` and where the entries came from. */
  readonly fresh: SessionInit;
}

/** Refuses a session that was reset before, and a new id that is none: both while nothing has changed. */
export function planReset(
  { key, agentId, sessionId, cwd, meta }: SessionRecord,
  options: { readonly sessionId?: string },
): ResetPlan {
  if (parseKey(key).form === "reset") {
    throw new SkeinError("conflict", {
      problem: `Session ${sessionId} was reset before`,
      advice: "Reset the session that has its key now",
    });
  }
  if (options.sessionId !== undefined) parseSessionId(options.sessionId);
  const { archived: _archived, importedFrom: _importedFrom, ...kept } = meta;
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
 * Metadata that a session file claims and Skein cannot vouch for. Anybody may have written the file, so these claims decide
 * neither where answers go, nor which model is asked, nor where the session works.
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
  // Each layer only narrows the tools, and one that cannot be read allows none.
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
 * The part of the claims that takes effect by itself: `sandboxed` restricts the session, and the title is only shown. With
 * `lineage`, the session also stays a child of the one that spawned it, which gives it fewer rights than it has without.
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

/** The claims with every known field of a wrong type left out. Where a session came from is not for its file to say. */
export function readMeta(claimed: SessionMeta): SessionMeta {
  const read = Object.entries(claimed).flatMap(([field, value]) => {
    const known = Object.hasOwn(knownFields, field) ? knownFields[field] : undefined;
    const usable = known === undefined ? value : known(value);
    return usable === undefined || field === "importedFrom" ? [] : [[field, usable] as const];
  });
  return Object.fromEntries(read);
}

/** The claims as they are, for `importedFrom.claimed`, which no code acts on. Large values are left out. */
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
