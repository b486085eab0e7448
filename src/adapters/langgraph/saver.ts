import type { RunnableConfig } from "@langchain/core/runnables";
import type {
  ChannelVersions,
  Checkpoint,
  CheckpointListOptions,
  CheckpointMetadata,
  CheckpointTuple,
  PendingWrite,
  SerializerProtocol,
} from "@langchain/langgraph-checkpoint";
import { SkeinError } from "../../core/errors.ts";
import { hashedId } from "../../core/hashed-id.ts";
import { formatKey, parseKey } from "../../core/keys.ts";
import type { AppendItem, Scope, SessionRecord, Store } from "../../store/contract.ts";
import { SessionLog } from "../session-log.ts";
import type { LangGraphOptions } from "./peer.ts";
import { checkpoints, scopeOf } from "./peer.ts";
import { toShownMessage } from "./shown-messages.ts";
import { countEqual, gatherItems, gatherShown, loadValue, storeValue } from "./stored-value.ts";
import type { CheckpointRecord, IndexedCheckpoint, ValueRecord, WritesRecord } from "./thread-index.ts";
import { checkpointType, ThreadIndex, writesType } from "./thread-index.ts";

const { BaseCheckpointSaver, TASKS, WRITES_IDX_MAP, copyCheckpoint, getCheckpointId, maxChannelVersion } =
  checkpoints;

/** Options for a {@link SkeinSaver}. */
export interface SaverOptions extends LangGraphOptions {
  /** The channel whose messages are shown in the session. Defaults to `messages`. */
  readonly messagesChannel?: string;
  /** The folder to record for new sessions. Defaults to the current folder. */
  readonly cwd?: string;
}

interface Place {
  readonly threadId: string;
  readonly namespace: string;
}

/**
 * A checkpointer for LangGraph. Each thread is a session of one user, and the messages in its state are the session's
 * messages. Each version of a list is stored as its difference from the previous one, so a thread's size is
 * proportional to its content. Requires the package `@langchain/langgraph-checkpoint`.
 *
 * @example
 * ```ts
 * import { SkeinSaver } from "skein/langgraph";
 * import { createStore } from "skein/store";
 * const store = await createStore({ dir: ".skein" });
 * const checkpointer = new SkeinSaver({ store, userId: "ann" });
 * // const graph = new StateGraph(MessagesAnnotation)….compile({ checkpointer });
 * for await (const { config } of checkpointer.list({ configurable: { thread_id: "trip" } })) console.log(config);
 * ```
 */
export class SkeinSaver extends BaseCheckpointSaver {
  readonly #store: Pick<Store, "sessions">;
  readonly #scope: Scope & { readonly agentId: string };
  readonly #log: SessionLog<ThreadIndex>;
  readonly #messagesChannel: string;
  readonly #cwd: string;

  constructor(options: SaverOptions, serde?: SerializerProtocol) {
    super(serde);
    this.#store = options.store;
    this.#scope = scopeOf(options);
    this.#messagesChannel = options.messagesChannel ?? "messages";
    this.#cwd = options.cwd ?? process.cwd();
    this.#log = new SessionLog(options.store, this.#scope, {
      createIndex: () => new ThreadIndex(),
      addEntry: (index, entry) => index.addEntry(entry),
    });
  }

  /** Returns the session that shows a thread, or `null` if nothing has been saved for it. */
  findSession(threadId: string): Promise<SessionRecord | null> {
    return this.#log.find(this.#keyOf(threadId));
  }

  override async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const place = placeOf(config);
    if (place === null) return undefined;
    const index = await this.#indexOf(place.threadId);
    const checkpointId = getCheckpointId(config);
    const { namespace } = place;
    const found = checkpointId === "" ? index?.latest(namespace) : index?.get(namespace, checkpointId);
    if (index === null || found === null || found === undefined) return undefined;
    return this.#toTuple(place.threadId, index, found);
  }

  override async *list(
    config: RunnableConfig,
    options: CheckpointListOptions = {},
  ): AsyncGenerator<CheckpointTuple> {
    const { checkpoint_ns: wantedNamespace } = config.configurable ?? {};
    const wantedId = getCheckpointId(config);
    const before = options.before === undefined ? "" : getCheckpointId(options.before);
    let left = options.limit ?? Number.POSITIVE_INFINITY;
    for await (const threadId of this.#threadIds(config)) {
      const index = await this.#indexOf(threadId);
      for (const namespace of index?.namespaces() ?? []) {
        if (wantedNamespace !== undefined && namespace !== wantedNamespace) continue;
        for (const found of index?.newestFirst(namespace) ?? []) {
          const { checkpointId, metadata } = found.record;
          if (wantedId !== "" && checkpointId !== wantedId) continue;
          if (before !== "" && checkpointId >= before) continue;
          if (!isMatch(await loadValue(this.serde, metadata), options.filter)) continue;
          if (left <= 0) return;
          left -= 1;
          yield await this.#toTuple(threadId, index as ThreadIndex, found);
        }
      }
    }
  }

  override async put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions,
  ): Promise<RunnableConfig> {
    const { threadId, namespace } = requirePlace(config);
    const parentId = getCheckpointId(config) || null;
    const { sessionId } = await this.#openSession(threadId);
    const index = await this.#log.read(sessionId);
    const { channel_values, ...rest } = copyCheckpoint(checkpoint);
    const values: Record<string, ValueRecord> = {};
    for (const channel of Object.keys(newVersions)) {
      const base = { index, namespace, parentId, channel };
      values[channel] = Object.hasOwn(channel_values, channel)
        ? await this.#toValueRecord(channel_values[channel], base)
        : { empty: true };
    }
    const record = {
      namespace,
      checkpointId: checkpoint.id,
      parentId,
      checkpoint: await storeValue(this.serde, rest),
      metadata: await storeValue(this.serde, metadata),
      versions: checkpoint.channel_versions,
      values,
    };
    await this.#append(sessionId, index, record);
    return toConfig(threadId, record);
  }

  override async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string): Promise<void> {
    const { threadId, namespace } = requirePlace(config);
    const checkpointId = getCheckpointId(config);
    if (checkpointId === "") throw missingField("checkpoint_id", config);
    const { sessionId } = await this.#openSession(threadId);
    const pending = writes.map(async ([channel, value], position) => ({
      ...{ index: WRITES_IDX_MAP[channel] ?? position, channel, value: await storeValue(this.serde, value) },
    }));
    const data: WritesRecord = { namespace, checkpointId, taskId, writes: await Promise.all(pending) };
    await this.#store.sessions.append(this.#scope, sessionId, [
      { draft: { type: "custom", customType: writesType, data } },
    ]);
  }

  /** Permanently deletes the thread's session. */
  override async deleteThread(threadId: string): Promise<void> {
    const key = this.#keyOf(threadId);
    await this.#log.erase([key], (each) => each === key);
  }

  #keyOf(threadId: string): string {
    return formatKey({ form: "other", agentId: this.#scope.agentId, segments: ["langgraph", threadId] });
  }

  async #indexOf(threadId: string): Promise<ThreadIndex | null> {
    const session = await this.findSession(threadId);
    return session === null ? null : this.#log.read(session.sessionId);
  }

  #openSession(threadId: string): Promise<SessionRecord> {
    const meta = { displayName: threadId, channel: "langgraph" };
    return this.#log.findOrCreate({ key: this.#keyOf(threadId), cwd: this.#cwd, meta });
  }

  async *#threadIds(config: RunnableConfig): AsyncGenerator<string> {
    const place = placeOf(config);
    if (place !== null) return yield place.threadId;
    for await (const { key } of this.#log.list({})) {
      const parsed = parseKey(key);
      if (parsed.form === "other" && parsed.segments[0] === "langgraph") yield parsed.segments[1] ?? "";
    }
  }

  async #toValueRecord(
    value: unknown,
    base: { index: ThreadIndex; namespace: string; parentId: string | null; channel: string },
  ): Promise<ValueRecord> {
    const whole = await storeValue(this.serde, value);
    if (!Array.isArray(value) || !("json" in whole) || !Array.isArray(whole.json)) return { whole };
    const before = gatherItems(base.index.baseOf(base.namespace, base.parentId, base.channel));
    const keep = countEqual(before, whole.json);
    return { keep, items: whole.json.slice(keep) };
  }

  /**
   * Appends the checkpoint together with its new messages. The new messages follow the messages kept from the parent
   * checkpoint, so a thread that continues from an earlier checkpoint becomes a branch.
   */
  async #append(sessionId: string, index: ThreadIndex, record: CheckpointRecord): Promise<void> {
    const { namespace, parentId, values } = record;
    const channel = this.#messagesChannel;
    const isRoot = namespace === "";
    const own = isRoot ? values[channel] : undefined;
    const list = own !== undefined && "items" in own ? own : null;
    const base = isRoot ? gatherShown(index.baseOf(namespace, parentId, channel)) : [];
    const kept = list === null ? base : base.slice(0, list.keep);
    const items: AppendItem[] = [];
    const shown = list?.items.map((item, position) => {
      const message = toShownMessage(item);
      if (message === null) return null;
      const id = hashedId("langgraph", record.checkpointId, String(position), JSON.stringify(item));
      items.push({ id, draft: { type: "message", message } });
      return id;
    });
    const data = list === null ? record : { ...record, values: { ...values, [channel]: { ...list, shown } } };
    items.push({ draft: { type: "custom", customType: checkpointType, data } });
    const at = kept.findLast((id) => id !== null) ?? null;
    if (!isRoot || (list === null && at === null))
      await this.#store.sessions.append(this.#scope, sessionId, items);
    else await this.#log.appendAfter(sessionId, at, items);
  }

  async #toTuple(threadId: string, index: ThreadIndex, found: IndexedCheckpoint): Promise<CheckpointTuple> {
    const { record } = found;
    const { namespace, checkpointId, parentId } = record;
    const checkpoint = await loadValue<Checkpoint>(this.serde, record.checkpoint);
    checkpoint.channel_values = {};
    for (const [channel, value] of found.values) {
      const stored = "whole" in value ? value.whole : { json: gatherItems(value) };
      checkpoint.channel_values[channel] = await loadValue(this.serde, stored);
    }
    if (checkpoint.v < 4 && parentId !== null)
      await this.#addPendingSends(checkpoint, index, namespace, parentId);
    const writes = index.writesOf(namespace, checkpointId).map(async ({ taskId, channel, value }) => {
      return [taskId, channel, await loadValue(this.serde, value)] as [string, string, unknown];
    });
    return {
      config: toConfig(threadId, record),
      checkpoint,
      metadata: await loadValue<CheckpointMetadata>(this.serde, record.metadata),
      pendingWrites: await Promise.all(writes),
      ...(parentId === null
        ? {}
        : { parentConfig: toConfig(threadId, { namespace, checkpointId: parentId }) }),
    };
  }

  /** In checkpoints before version 4, the tasks that the parent sent are not part of the state. */
  async #addPendingSends(
    checkpoint: Checkpoint,
    index: ThreadIndex,
    namespace: string,
    parentId: string,
  ): Promise<void> {
    const sent = index.writesOf(namespace, parentId).filter(({ channel }) => channel === TASKS);
    const versions = Object.values(checkpoint.channel_versions);
    checkpoint.channel_values[TASKS] = await Promise.all(
      sent.map(({ value }) => loadValue(this.serde, value)),
    );
    checkpoint.channel_versions[TASKS] =
      versions.length > 0 ? maxChannelVersion(...versions) : this.getNextVersion(undefined);
  }
}

function placeOf(config: RunnableConfig): Place | null {
  const { thread_id: threadId, checkpoint_ns: namespace = "" } = config.configurable ?? {};
  return threadId === undefined ? null : { threadId: String(threadId), namespace };
}

function requirePlace(config: RunnableConfig): Place {
  const place = placeOf(config);
  if (place === null || place.threadId === "") throw missingField("thread_id", config);
  return place;
}

function missingField(field: string, config: RunnableConfig): SkeinError {
  const named = Object.keys(config.configurable ?? {}).join(", ") || "nothing";
  return new SkeinError("invalid_arguments", {
    problem: `A checkpoint needs ${field} in "configurable", which contains ${named}`,
    advice: 'Pass it to the graph: graph.invoke(input, { configurable: { thread_id: "trip" } })',
  });
}

function toConfig(threadId: string, record: Pick<CheckpointRecord, "namespace" | "checkpointId">) {
  const { namespace, checkpointId } = record;
  return {
    configurable: { thread_id: threadId, checkpoint_ns: namespace, checkpoint_id: checkpointId },
  };
}

function isMatch(metadata: unknown, filter: CheckpointListOptions["filter"]): boolean {
  const fields = (metadata ?? {}) as Readonly<Record<string, unknown>>;
  return Object.entries(filter ?? {}).every(
    ([name, value]) => JSON.stringify(fields[name]) === JSON.stringify(value),
  );
}
