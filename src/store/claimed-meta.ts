import { formatKey, readKey } from "../core/keys.ts";
import { isRecord } from "../core/shape.ts";
import type { Json, SessionMeta } from "./contract.ts";

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
