import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { Mutex } from "../../core/concurrency.ts";
import type { Entry } from "../../core/entries.ts";
import { SkeinError } from "../../core/errors.ts";
import { hashedId } from "../../core/hashed-id.ts";
import { isRecord } from "../../core/is-record.ts";
import { canonicalJson } from "../../core/json.ts";
import type { RuntimeContext } from "../../sessions/runtime-context.ts";
import type { SessionHandle } from "../../sessions/session-handle.ts";
import type { Skein } from "../../sessions/skein.ts";
import type { AppendItem } from "../../store/contract.ts";
import { importPeer } from "../require-peer.ts";
import type { Item } from "./items.ts";
import { draftOfItem, itemsOfEntry, storable } from "./items.ts";

/** The changes of {@link AgentSession.applyHistoryTransaction}. */
export type HistoryTransaction =
  | { readonly type: "append_items"; readonly items: readonly object[] }
  | {
      readonly type: "replace_suffix";
      readonly expectedSuffix: readonly object[];
      readonly replacement: readonly object[];
    };

/** The arguments of {@link AgentSession.applyHistoryMutations}. */
export interface HistoryMutations {
  readonly mutations: readonly {
    readonly type: "replace_function_call";
    readonly callId: string;
    readonly replacement: object;
  }[];
}

/** An item and the entry that holds it. */
interface StoredItem {
  readonly item: Item;
  readonly entry: Entry;
}

interface StoredItems {
  /** Oldest first. */
  readonly stored: readonly StoredItem[];
  /** The leaf before the items were read. A write that replaces items fails if the leaf has changed since. */
  readonly leafId: string | null;
}

/**
 * The type of the entry that records an operation with a hash of its transaction. It is bookkeeping and not part of the
 * conversation. It must not contain the items, because redacting their entries would not erase it.
 */
const operationType = "skein.openai_agents_operation";
const pageSize = 200;

/**
 * A `Session` for the OpenAI Agents SDK. Create it with `openAgentSession`. Removed and replaced items stay in the
 * session, on another branch. To type the items, pass the SDK's `AgentInputItem` as the type argument. Without it, the
 * items that are read can be assigned to any type.
 *
 * @example
 * ```ts
 * import type { AgentSession } from "skein/openai-agents";
 * const lastItems = (session: AgentSession) => session.getItems(10);
 * ```
 */
export class AgentSession<AgentItem extends object = never> {
  readonly session: SessionHandle;
  readonly #mutex = new Mutex();

  constructor(session: SessionHandle) {
    this.session = session;
  }

  async getSessionId(): Promise<string> {
    return (await this.session.open()).sessionId;
  }

  /** Returns the newest items, oldest first. Messages of other programs are converted to items. */
  async getItems(limit?: number): Promise<AgentItem[]> {
    if (limit !== undefined && limit <= 0) return [];
    const items = (await this.#read(limit)).stored.map(({ item }) => item);
    return (limit === undefined ? items : items.slice(-limit)) as AgentItem[];
  }

  async addItems(items: readonly object[]): Promise<void> {
    if (items.length > 0) await this.session.appendEntries(items.map(toAppend));
  }

  /** Removes the newest item from the branch and returns it. */
  popItem(): Promise<AgentItem | undefined> {
    return this.#mutex.run(async () => {
      const { stored, leafId } = await this.#read(1);
      const last = stored.at(-1);
      if (last !== undefined)
        await this.#replaceFrom(last.entry, leafId, itemsOfEntry(last.entry).slice(0, -1));
      return last?.item as AgentItem | undefined;
    });
  }

  /** Continues the session before its first item. To delete the items, delete the session. */
  clearSession(): Promise<void> {
    return this.#mutex.run(async () => {
      const first = (await this.#read()).stored.at(0);
      if (first !== undefined) await this.session.branch(first.entry.parentId);
    });
  }

  /** Replaces function calls, which continues the session on a new branch. */
  applyHistoryMutations({ mutations }: HistoryMutations): Promise<void> {
    return this.#mutex.run(async () => {
      const { stored, leafId } = await this.#read();
      const replacements = new Map(mutations.map(({ callId, replacement }) => [callId, replacement]));
      const replaced = (item: Item): object =>
        item.type === "function_call" ? (replacements.get(item.callId as string) ?? item) : item;
      const first = stored.findIndex(({ item }) => replaced(item) !== item);
      const entry = stored[first]?.entry;
      if (entry === undefined) return;
      const start = stored.findIndex((each) => each.entry.id === entry.id);
      await this.#replaceFrom(
        entry,
        leafId,
        stored.slice(start).map(({ item }) => replaced(item)),
      );
    });
  }

  /**
   * Appends items or replaces the newest ones, in one write and once per `operationId`. Throws `conflict` if the newest
   * items are not the expected ones, or if the ID was used for a different transaction.
   */
  applyHistoryTransaction({
    operationId,
    transaction,
  }: {
    readonly operationId: string;
    readonly transaction: HistoryTransaction;
  }): Promise<void> {
    return this.#mutex.run(async () => {
      const id = hashedId("openai-agents operation", operationId);
      const sha256 = createHash("sha256")
        .update(canonicalJson(storable(transaction)))
        .digest("hex");
      await this.session.open();
      const known = await this.session.entry(id);
      if (known !== null) return checkSame(known, sha256, operationId);
      const marker = { id, draft: { type: "custom" as const, customType: operationType, data: { sha256 } } };
      if (transaction.type === "append_items") {
        await this.session.appendEntries([...transaction.items.map(toAppend), marker]);
        return;
      }
      const { expectedSuffix, replacement } = transaction;
      const { stored, leafId } = await this.#read(expectedSuffix.length);
      const suffix = expectedSuffix.length === 0 ? [] : stored.slice(-expectedSuffix.length);
      if (!isDeepStrictEqual(storable(suffix.map(({ item }) => item)), storable(expectedSuffix)))
        throw suffixChanged(this.session.key);
      const entry = suffix[0]?.entry;
      if (entry === undefined) await this.session.appendEntries([...replacement.map(toAppend), marker]);
      else {
        // An entry of another program can contain several items. Those before the replaced ones are kept.
        const items = itemsOfEntry(entry);
        const removed = suffix.filter((each) => each.entry.id === entry.id).length;
        const kept = items.slice(0, items.length - removed);
        await this.#replaceFrom(entry, leafId, [...kept, ...replacement], [marker]);
      }
    });
  }

  /** Continues the session before an entry, with these items. */
  async #replaceFrom(
    { parentId }: Entry,
    expectedLeafId: string | null,
    items: readonly object[],
    more: readonly AppendItem[] = [],
  ): Promise<void> {
    if (items.length + more.length === 0) await this.session.branch(parentId);
    else await this.session.appendEntries([...items.map(toAppend), ...more], { parentId, expectedLeafId });
  }

  /** Reads back from the newest item until there are enough. Reads all items if there is no limit. */
  async #read(limit = Number.POSITIVE_INFINITY): Promise<StoredItems> {
    const record = await this.session.record();
    if (record === null) return { stored: [], leafId: null };
    let stored: StoredItem[] = [];
    for (let before: string | undefined; stored.length < limit; ) {
      const range = {
        along: "branch",
        limit: pageSize,
        ...(before === undefined ? {} : { before }),
      } as const;
      const { entries, hasEarlier } = await this.session.entries(range);
      const found = entries.flatMap((entry) => itemsOfEntry(entry).map((item) => ({ item, entry })));
      stored = [...found, ...stored];
      before = entries[0]?.id;
      if (!hasEarlier || before === undefined) break;
    }
    return { stored, leafId: record.leafId };
  }
}

/**
 * Opens a session for the OpenAI Agents SDK. It is created if it does not exist.
 *
 * @example
 * ```ts
 * import { createSkein } from "skein";
 * import { openAgentSession } from "skein/openai-agents";
 * const skein = await createSkein({ dir: ".skein" });
 * const session = await openAgentSession(skein, { userId: "ann", sessionId: "trip" });
 * ```
 */
export async function openAgentSession<AgentItem extends object = never>(
  skein: Skein,
  session: RuntimeContext,
): Promise<AgentSession<AgentItem>> {
  await importPeer("openai-agents", "@openai/agents", ">=0.20.0 <0.21.0");
  const handle = skein.session(session);
  await handle.open();
  return new AgentSession(handle);
}

function toAppend(item: object): AppendItem {
  if (!isRecord(item)) {
    const advice = "Pass items of the OpenAI Agents SDK (AgentInputItem)";
    throw new SkeinError("invalid_arguments", { problem: "An item is not an object", advice });
  }
  return { draft: draftOfItem(item) };
}

function checkSame(known: Entry, sha256: string, operationId: string): void {
  if (known.type === "custom" && isRecord(known.data) && known.data.sha256 === sha256) return;
  const problem = `The operation ${operationId} was applied with a different transaction`;
  throw new SkeinError("conflict", { problem, advice: "Use a new operation ID" });
}

function suffixChanged(key: string): SkeinError {
  const problem = `The newest items in the session ${key} are not the expected ones`;
  return new SkeinError("conflict", { problem, advice: "Read the items again" });
}
