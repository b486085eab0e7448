import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";

/**
 * A serialized value in a log. JSON is stored as JSON, so that the log is readable and not much larger than the text.
 */
export type StoredValue = { readonly json: unknown } | { readonly format: string; readonly base64: string };

export async function storeValue(serde: SerializerProtocol, value: unknown): Promise<StoredValue> {
  const [format, bytes] = await serde.dumpsTyped(value);
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return format === "json"
    ? { json: JSON.parse(buffer.toString()) as unknown }
    : { format, base64: buffer.toString("base64") };
}

export async function loadValue<T>(serde: SerializerProtocol, stored: StoredValue): Promise<T> {
  if ("json" in stored) return (await serde.loadsTyped("json", JSON.stringify(stored.json))) as T;
  return (await serde.loadsTyped(stored.format, Buffer.from(stored.base64, "base64"))) as T;
}

/**
 * One version of a channel's value. An array is stored as its difference from an earlier version: how many of its first
 * elements are kept, and the elements that follow them. A list of messages is therefore stored once rather than once
 * per step.
 */
export type ChannelValue = ListVersion | { readonly whole: StoredValue };

export interface ListVersion {
  readonly base: ListVersion | null;
  readonly keep: number;
  readonly items: readonly unknown[];
  /** The entries that show the items in the session, or `null` for those that are not shown. */
  readonly shown: readonly (string | null)[];
}

/** Returns all elements of a list, including those kept from the versions that it is based on. */
export function gatherItems(version: ListVersion | null): unknown[] {
  return gather(version, (each) => each.items);
}

export function gatherShown(version: ListVersion | null): (string | null)[] {
  return gather(version, (each) => each.shown);
}

function gather<T>(version: ListVersion | null, partOf: (version: ListVersion) => readonly T[]): T[] {
  const parts: (readonly T[])[] = [];
  let limit = Number.POSITIVE_INFINITY;
  for (let at = version; at !== null && limit > 0; at = at.base) {
    parts.push(partOf(at).slice(0, Math.max(0, limit - at.keep)));
    limit = Math.min(limit, at.keep);
  }
  return parts.toReversed().flat();
}

/** Returns the number of equal elements at the beginning of both lists. */
export function countEqual(a: readonly unknown[], b: readonly unknown[]): number {
  const shorter = Math.min(a.length, b.length);
  for (let index = 0; index < shorter; index++)
    if (JSON.stringify(a[index]) !== JSON.stringify(b[index])) return index;
  return shorter;
}
