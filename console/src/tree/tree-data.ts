import { useEffect, useMemo, useRef, useState } from "react";
import type { Params, Result, SkeinClient } from "skein/client";
import { CallError } from "skein/client";
import { useEvents, useGateway } from "../connect/gateway.tsx";
import { SingleFlight } from "../connect/single-flight.ts";
import type { SessionPlace } from "../paths.ts";
import type { Tree } from "./tree-model.ts";
import { buildTree } from "./tree-model.ts";

export type TreeEntry = Result<"sessions.tree">["entries"][number];

interface TreeState {
  readonly status: "loading" | "ready" | "failed";
  readonly error: Error | null;
  readonly sessionKey: string | null;
  readonly leafId: string | null;
  /** All branches, in log order. */
  readonly entries: readonly TreeEntry[];
}

const loading: TreeState = {
  status: "loading",
  error: null,
  sessionKey: null,
  leafId: null,
  entries: [],
};
const pageSize = 5000;

export interface SessionTree extends Pick<TreeState, "status" | "error" | "leafId"> {
  readonly tree: Tree;
  readonly refresh: () => Promise<void>;
}

/**
 * Returns every entry in a session. After an event, only appended entries are read, because a tree can have thousands.
 */
export function useTree(place: SessionPlace): SessionTree {
  const { client } = useGateway();
  const [state, setState] = useState(loading);
  const reader = useRef<TreeReader | null>(null);
  useEffect(() => {
    const opened = new TreeReader(client, place, setState);
    reader.current = opened;
    setState(loading);
    void opened.read();
    return () => opened.close();
  }, [client, place]);
  useEvents(({ event, payload }) => {
    if (event === "gap") return void reader.current?.read();
    if (!("sessionKey" in payload) || payload.sessionKey !== (state.sessionKey ?? place.key)) return;
    // Entries that were read earlier have changed, or belong to the conversation before the reset.
    const isOther = event === "session.reset" || (event === "session.updated" && payload.isRedacted === true);
    if (isOther) return void reader.current?.read();
    if (event === "entry.appended" || event.startsWith("session.")) reader.current?.readNewSoon();
  });
  const { status, error, entries, leafId } = state;
  const tree = useMemo(() => buildTree(entries, leafId), [entries, leafId]);
  return { status, error, leafId, tree, refresh: async () => reader.current?.readNew() };
}

class TreeReader {
  readonly #client: SkeinClient;
  readonly #params: Params<"sessions.tree">;
  readonly #publish: (state: TreeState) => void;
  readonly #reads = new SingleFlight(() => this.#read());
  #state = loading;
  /** Entries that were read earlier might have changed or no longer exist. */
  #isStale = true;
  #isClosed = false;

  constructor(client: SkeinClient, place: SessionPlace, publish: (state: TreeState) => void) {
    this.#client = client;
    this.#params = { ...place, limit: pageSize };
    this.#publish = publish;
  }

  close(): void {
    this.#isClosed = true;
    this.#reads.close();
  }

  read(): Promise<void> {
    this.#isStale = true;
    return this.#reads.request();
  }

  readNew(): Promise<void> {
    return this.#reads.request();
  }

  readNewSoon(): void {
    this.#reads.requestSoon();
  }

  async #read(): Promise<void> {
    const isWhole = this.#isStale;
    this.#isStale = false;
    try {
      await this.#readAfter(isWhole ? null : (this.#state.entries.at(-1)?.id ?? null));
    } catch (error) {
      this.#isStale = true;
      const isFinal = error instanceof CallError && !error.retryable;
      // The last entry no longer exists, for example after a reset.
      if (isFinal && !isWhole) return void this.#reads.request();
      const status = this.#state.status === "ready" ? "ready" : "failed";
      this.#set({ ...this.#state, status, error: error instanceof Error ? error : new Error(String(error)) });
      if (!isFinal) throw error;
    }
  }

  async #readAfter(from: string | null): Promise<void> {
    let entries = from === null ? [] : this.#state.entries;
    let after = from;
    for (;;) {
      const page = await this.#client.call("sessions.tree", {
        ...this.#params,
        ...(after === null ? {} : { after }),
      });
      if (this.#isClosed) return;
      // A label changes an entry that was read earlier.
      if (from !== null && page.entries.some(({ type }) => type === "label")) return this.#readAfter(null);
      entries = [...entries, ...page.entries];
      const { sessionKey = this.#params.key, leafId, nextAfter } = page;
      if (nextAfter === undefined)
        return this.#set({ status: "ready", error: null, sessionKey, leafId, entries });
      after = nextAfter;
    }
  }

  #set(state: TreeState): void {
    this.#state = state;
    if (!this.#isClosed) this.#publish(state);
  }
}
