import type { SharedV4ProviderOptions } from "@ai-sdk/provider";
import { isRecord } from "../../core/is-record.ts";
import type { Change } from "../../transcript/contract.ts";

/** A part's metadata, keyed by provider name. The AI SDK calls it options in requests. */
export type Metadata = SharedV4ProviderOptions;

/** Receives each part that a conversion omitted or changed. */
export type Report = (change: Change) => void;

/** The key for our own metadata on a part. No provider reads it. */
export const ownName = "skein";

/** Returns the value if it has the shape of metadata, otherwise `undefined`. */
export function metadataOf(value: unknown): Metadata | undefined {
  if (!isRecord(value)) return undefined;
  return Object.values(value).every(isRecord) ? (value as Metadata) : undefined;
}

export function fieldOf(metadata: Metadata | undefined, name: string, field: string): unknown {
  const fields = metadata !== undefined && Object.hasOwn(metadata, name) ? metadata[name] : undefined;
  return fields !== undefined && Object.hasOwn(fields, field) ? fields[field] : undefined;
}

export function textFieldOf(metadata: Metadata | undefined, name: string, field: string): string | undefined {
  const value = fieldOf(metadata, name, field);
  return typeof value === "string" ? value : undefined;
}

/** Removes the given fields from a provider's metadata. Removes the provider as well if no fields remain. */
export function without(
  metadata: Metadata | undefined,
  name: string,
  fields: readonly string[],
): Metadata | undefined {
  const held = metadata !== undefined && Object.hasOwn(metadata, name) ? metadata[name] : undefined;
  if (metadata === undefined || held === undefined) return metadata;
  const left = Object.entries(held).filter(([field]) => !fields.includes(field));
  if (left.length === Object.keys(held).length) return metadata;
  const rest = Object.entries(metadata).flatMap(([each, value]): [string, object][] =>
    each !== name ? [[each, value]] : left.length === 0 ? [] : [[each, Object.fromEntries(left)]],
  );
  return rest.length === 0 ? undefined : (Object.fromEntries(rest) as Metadata);
}

/** Merges field by field. The second argument takes precedence. */
export function mergeMetadata(
  first: Metadata | undefined,
  second: Metadata | undefined,
): Metadata | undefined {
  if (first === undefined || second === undefined) return first ?? second;
  const names = [...new Set([...Object.keys(first), ...Object.keys(second)])];
  const fields = names.map((name) => {
    const parts = [first, second].map((each) => (Object.hasOwn(each, name) ? each[name] : undefined));
    return [name, Object.fromEntries(parts.flatMap((part) => Object.entries(part ?? {})))] as const;
  });
  return Object.fromEntries(fields) as Metadata;
}

/** Returns one provider's metadata without undefined fields. */
export function ofProvider(
  name: string,
  fields: Readonly<Record<string, unknown>> | undefined,
): Metadata | undefined {
  if (fields === undefined) return undefined;
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  return given.length === 0 ? undefined : ({ [name]: Object.fromEntries(given) } as Metadata);
}

/** Returns the metadata field for an AI SDK part. */
export function optionsField(metadata: Metadata | undefined): { providerOptions?: Metadata } {
  return metadata === undefined ? {} : { providerOptions: metadata };
}

/** Returns the metadata field for our blocks and messages. */
export function ownField(metadata: Metadata | undefined): { skein?: { providerMetadata: Metadata } } {
  return metadata === undefined ? {} : { skein: { providerMetadata: metadata } };
}
