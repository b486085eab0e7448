import type { ChannelVersions } from "@langchain/langgraph-checkpoint";
import type { Entry } from "../../core/entries.ts";
import { isRecord } from "../../core/is-record.ts";
import type { ChannelValue, ListVersion, StoredValue } from "./stored-value.ts";

/** Entries of this type contribute nothing to a context, and do not count as the session's leaf. */
export const checkpointType = "skein.langgraph.checkpoint";
export const writesType = "skein.langgraph.writes";

/**
 * A value in a record, or the mark of a channel that was cleared. The items of a list follow the first `keep` items that
 * the list had in the parent checkpoint.
 */
export type ValueRecord =
  | { readonly whole: StoredValue }
  | { readonly empty: true }
  | {
      readonly keep: number;
      readonly items: readonly unknown[];
      readonly shown?: readonly (string | null)[];
    };

/** The record that one call to `put` writes. */
export interface CheckpointRecord {
  readonly namespace: string;
  readonly checkpointId: string;
  readonly parentId: string | null;
  /** The checkpoint without the values of its channels. */
  readonly checkpoint: StoredValue;
  readonly metadata: StoredValue;
  readonly versions: ChannelVersions;
  readonly values: Readonly<Record<string, ValueRecord>>;
}

/** The record that one call to `putWrites` writes. */
export interface WritesRecord {
  readonly namespace: string;
  readonly checkpointId: string;
  readonly taskId: string;
  readonly writes: readonly PendingRecord[];
}

interface PendingRecord {
  readonly index: number;
  readonly channel: string;
  readonly value: StoredValue;
}

export interface IndexedCheckpoint {
  readonly record: CheckpointRecord;
  readonly values: ReadonlyMap<string, ChannelValue>;
}

interface PendingWrite extends PendingRecord {
  readonly taskId: string;
}

/** The checkpoints and writes of one thread. */
export class ThreadIndex {
  readonly #checkpoints = new Map<string, Map<string, IndexedCheckpoint>>();
  readonly #writes = new Map<string, Map<string, PendingWrite>>();
  /** The last value of each version, for checkpoints without a parent. */
  readonly #lastValues = new Map<string, ChannelValue>();

  addEntry(entry: Entry): void {
    if (entry.type !== "custom" || !isRecord(entry.data)) return;
    if (entry.customType === checkpointType) this.#addCheckpoint(entry.data as unknown as CheckpointRecord);
    if (entry.customType === writesType) this.#addWrites(entry.data as unknown as WritesRecord);
  }

  namespaces(): string[] {
    return [...this.#checkpoints.keys()];
  }

  get(namespace: string, checkpointId: string): IndexedCheckpoint | null {
    return this.#checkpoints.get(namespace)?.get(checkpointId) ?? null;
  }

  /** Returns a namespace's checkpoints, newest first. Their IDs are in chronological order. */
  newestFirst(namespace: string): IndexedCheckpoint[] {
    const found = [...(this.#checkpoints.get(namespace)?.values() ?? [])];
    return found.toSorted((a, b) => (a.record.checkpointId < b.record.checkpointId ? 1 : -1));
  }

  latest(namespace: string): IndexedCheckpoint | null {
    let latest: IndexedCheckpoint | null = null;
    for (const each of this.#checkpoints.get(namespace)?.values() ?? [])
      if (latest === null || each.record.checkpointId > latest.record.checkpointId) latest = each;
    return latest;
  }

  writesOf(namespace: string, checkpointId: string): PendingWrite[] {
    return [...(this.#writes.get(toKey(namespace, checkpointId))?.values() ?? [])];
  }

  /** Returns the list that a new version of a channel can be based on. */
  baseOf(namespace: string, parentId: string | null, channel: string): ListVersion | null {
    const value = this.get(namespace, parentId ?? "")?.values.get(channel);
    return value === undefined || "whole" in value ? null : value;
  }

  #addCheckpoint(record: CheckpointRecord): void {
    const { namespace, checkpointId, parentId, versions } = record;
    const parent = parentId === null ? null : this.get(namespace, parentId);
    const values = new Map<string, ChannelValue>();
    for (const [channel, version] of Object.entries(versions)) {
      const own = Object.hasOwn(record.values, channel) ? record.values[channel] : undefined;
      const value =
        own === undefined
          ? this.#inherited(parent, namespace, channel, version)
          : this.#own(own, namespace, parentId, channel);
      if (value === null) continue;
      values.set(channel, value);
      this.#lastValues.set(toKey(namespace, channel, String(version)), value);
    }
    const known = this.#checkpoints.get(namespace) ?? new Map<string, IndexedCheckpoint>();
    this.#checkpoints.set(namespace, known.set(checkpointId, { record, values }));
  }

  #own(own: ValueRecord, namespace: string, parentId: string | null, channel: string): ChannelValue | null {
    if ("empty" in own) return null;
    if ("whole" in own) return own;
    const { keep, items, shown = items.map(() => null) } = own;
    return { base: keep === 0 ? null : this.baseOf(namespace, parentId, channel), keep, items, shown };
  }

  /** Two branches of a thread can use the same version for different values, so the parent's value comes first. */
  #inherited(
    parent: IndexedCheckpoint | null,
    namespace: string,
    channel: string,
    version: number | string,
  ): ChannelValue | null {
    if (parent?.record.versions[channel] === version) return parent.values.get(channel) ?? null;
    return this.#lastValues.get(toKey(namespace, channel, String(version))) ?? null;
  }

  /**
   * A repeated write of a task is ignored, unless its index is negative. Writes with a negative index, such as errors,
   * replace the earlier write.
   */
  #addWrites({ namespace, checkpointId, taskId, writes }: WritesRecord): void {
    const key = toKey(namespace, checkpointId);
    const known = this.#writes.get(key) ?? new Map<string, PendingWrite>();
    this.#writes.set(key, known);
    for (const write of writes) {
      const place = toKey(taskId, String(write.index));
      if (write.index < 0 || !known.has(place)) known.set(place, { ...write, taskId });
    }
  }
}

function toKey(...parts: readonly string[]): string {
  return JSON.stringify(parts);
}
