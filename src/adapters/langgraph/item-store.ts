import type {
  GetOperation,
  Item,
  ListNamespacesOperation,
  MatchCondition,
  Operation,
  OperationResults,
  PutOperation,
  SearchItem,
  SearchOperation,
} from "@langchain/langgraph-checkpoint";
import { mapConcurrently } from "../../core/concurrency.ts";
import { SkeinError } from "../../core/errors.ts";
import { hashedId } from "../../core/hashed-id.ts";
import { formatKey } from "../../core/keys.ts";
import { shortHash } from "../../core/short-hash.ts";
import type { Json, Scope, Store } from "../../store/contract.ts";
import { findOrCreateSession, findSession } from "../session-log.ts";
import type { LangGraphOptions } from "./peer.ts";
import { checkpoints, scopeOf } from "./peer.ts";

interface StoredItem {
  readonly namespace: string[];
  readonly key: string;
  readonly value: Record<string, unknown>;
  readonly createdAt: number;
  readonly updatedAt: number;
}

const maxReads = 16;
/** Only the first labels of a namespace are visible in a state key, whose length is limited. */
const maxLabels = 5;

/**
 * LangGraph's long-term memory in a Skein store. Each user has one archived session, whose state values are the items.
 * A deleted item is also removed from disk. Items found with a `query` are ranked by how many of its words they
 * contain. Requires the package `@langchain/langgraph-checkpoint`.
 *
 * @example
 * ```ts
 * import { SkeinStore } from "skein/langgraph";
 * import { createStore } from "skein/store";
 * const memory = new SkeinStore({ store: await createStore({ dir: ".skein" }), userId: "ann" });
 * await memory.put(["trips", "kyoto"], "hotel", { text: "Ann likes quiet hotels" });
 * const found = await memory.search(["trips"], { query: "hotels" });
 * ```
 */
export class SkeinStore extends checkpoints.BaseStore {
  readonly #store: Pick<Store, "sessions" | "state">;
  readonly #scope: Scope & { readonly agentId: string };

  constructor(options: LangGraphOptions) {
    super();
    this.#store = options.store;
    this.#scope = scopeOf(options);
  }

  /** Reads do not see the writes of the same batch. If an item is written twice, the last write wins. */
  override async batch<Op extends Operation[]>(operations: Op): Promise<OperationResults<Op>> {
    const results: unknown[] = [];
    const writes = new Map<string, PutOperation>();
    for (const operation of operations) {
      if ("namespacePrefix" in operation) results.push(await this.#search(operation));
      else if ("value" in operation) {
        writes.set(stateKeyOf(operation), operation);
        results.push(undefined);
      } else if ("key" in operation) results.push(await this.#get(operation));
      else results.push(await this.#listNamespaces(operation));
    }
    for (const [stateKey, operation] of writes) await this.#put(stateKey, operation);
    return results as OperationResults<Op>;
  }

  async #get(operation: GetOperation): Promise<Item | null> {
    const sessionId = await this.#findSession();
    const item = sessionId === null ? null : await this.#read(sessionId, stateKeyOf(operation));
    return item === null ? null : toItem(item);
  }

  async #put(stateKey: string, { namespace, key, value }: PutOperation): Promise<void> {
    const sessionId = await this.#openSession();
    if (value === null) {
      await this.#store.state.delete(this.#scope, sessionId, stateKey);
      return;
    }
    const before = await this.#read(sessionId, stateKey);
    const now = Date.now();
    const item: StoredItem = { namespace, key, value, createdAt: before?.createdAt ?? now, updatedAt: now };
    await this.#store.state.set(this.#scope, sessionId, stateKey, item as unknown as Json);
  }

  async #search({ namespacePrefix, filter, limit = 10, offset = 0, query }: SearchOperation) {
    const candidates = (await this.#readAll(namespacePrefix)).filter(({ value }) =>
      Object.entries(filter ?? {}).every(([name, wanted]) => isMatch(value[name], wanted)),
    );
    const found = query === undefined ? candidates.map(toItem) : rankByWords(candidates, query);
    return found.slice(offset, offset + limit);
  }

  async #listNamespaces(operation: ListNamespacesOperation): Promise<string[][]> {
    const { matchConditions = [], maxDepth, limit, offset } = operation;
    const namespaces = new Map<string, string[]>();
    for (const { namespace } of await this.#readAll([])) {
      if (!matchConditions.every((condition) => isNamespaceMatch(namespace, condition))) continue;
      const cut = namespace.slice(0, maxDepth);
      namespaces.set(JSON.stringify(cut), cut);
    }
    const sorted = [...namespaces].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, namespace]) => namespace);
    return sorted.slice(offset, offset + limit);
  }

  /** Returns the items under a namespace, in the order in which they were created. */
  async #readAll(prefix: readonly string[]): Promise<StoredItem[]> {
    const sessionId = await this.#findSession();
    if (sessionId === null) return [];
    const keys = await this.#store.state.keys(this.#scope, sessionId);
    const start = labelsKey(prefix);
    const candidates = keys.filter((key) => key.startsWith(start));
    const items = await mapConcurrently(candidates, maxReads, (key) => this.#read(sessionId, key));
    return items
      .filter(
        (item) =>
          item !== null && isNamespaceMatch(item.namespace, { matchType: "prefix", path: [...prefix] }),
      )
      .map((item) => item as StoredItem)
      .toSorted((a, b) => a.createdAt - b.createdAt);
  }

  async #read(sessionId: string, stateKey: string): Promise<StoredItem | null> {
    const found = await this.#store.state.get(this.#scope, sessionId, stateKey);
    return found === null ? null : (found.value as unknown as StoredItem);
  }

  /** Not cached, because the session can be deleted and created again at any time. */
  async #findSession(): Promise<string | null> {
    const found = await findSession(this.#store, this.#scope, this.#key());
    return found?.sessionId ?? null;
  }

  async #openSession(): Promise<string> {
    const meta = { displayName: "LangGraph memory", archived: true };
    const init = { key: this.#key(), cwd: process.cwd(), meta };
    return (await findOrCreateSession(this.#store, this.#scope, init)).sessionId;
  }

  #key(): string {
    return formatKey({ form: "other", agentId: this.#scope.agentId, segments: ["langgraph-store"] });
  }
}

/** A state key starts with a hash of each label, so that the items under a namespace are found by their keys. */
function stateKeyOf({ namespace, key }: GetOperation | PutOperation): string {
  if (namespace.length === 0) {
    const advice = 'Name at least one label, for example ["memories"]';
    throw new SkeinError("invalid_arguments", { problem: "The item's namespace is empty", advice });
  }
  return `${labelsKey(namespace)}${hashedId(key, ...namespace)}`;
}

function labelsKey(labels: readonly string[]): string {
  return labels
    .slice(0, maxLabels)
    .map((label) => `${shortHash(label)}-`)
    .join("");
}

function toItem({ namespace, key, value, createdAt, updatedAt }: StoredItem): SearchItem {
  return { namespace, key, value, createdAt: new Date(createdAt), updatedAt: new Date(updatedAt) };
}

function rankByWords(items: readonly StoredItem[], query: string): SearchItem[] {
  const wanted = wordsOf(query);
  const scored = items.map((item) => {
    const found = wordsOf(JSON.stringify(item.value));
    const shared = [...wanted].filter((word) => found.has(word)).length;
    return { ...toItem(item), score: wanted.size === 0 ? 0 : shared / wanted.size };
  });
  return scored.toSorted((a, b) => b.score - a.score);
}

function wordsOf(text: string): Set<string> {
  return new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu));
}

function isNamespaceMatch(namespace: readonly string[], { matchType, path }: MatchCondition): boolean {
  if (path.length > namespace.length) return false;
  const start = matchType === "prefix" ? 0 : namespace.length - path.length;
  return path.every((label, index) => label === "*" || label === namespace[start + index]);
}

const comparisons: Readonly<Record<string, (value: unknown, wanted: unknown) => boolean>> = {
  $eq: (value, wanted) => isEqual(value, wanted),
  $ne: (value, wanted) => !isEqual(value, wanted),
  $gt: (value, wanted) => Number(value) > Number(wanted),
  $gte: (value, wanted) => Number(value) >= Number(wanted),
  $lt: (value, wanted) => Number(value) < Number(wanted),
  $lte: (value, wanted) => Number(value) <= Number(wanted),
  $in: (value, wanted) => Array.isArray(wanted) && wanted.includes(value),
  $nin: (value, wanted) => Array.isArray(wanted) && !wanted.includes(value),
};

function isMatch(value: unknown, wanted: unknown): boolean {
  const operators = typeof wanted === "object" && wanted !== null ? Object.entries(wanted) : [];
  if (operators.length === 0 || operators.some(([name]) => !Object.hasOwn(comparisons, name)))
    return isEqual(value, wanted);
  return operators.every(([name, operand]) => comparisons[name]?.(value, operand));
}

function isEqual(a: unknown, b: unknown): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}
