import type { Entry, SessionHeader } from "../core/entries.ts";
import type { EntryDraft } from "../core/seal.ts";
import { isRecord } from "../core/shape.ts";
import type { MetaPatch, SessionMeta } from "./contract.ts";

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
