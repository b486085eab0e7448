import { useEffect, useRef, useState } from "react";
import type { Params, Result, SkeinClient } from "skein/client";
import { errorText, useEvents, useGateway } from "../connect/gateway.tsx";
import type { SessionPlace } from "../session/session-place.ts";

export type TreeEntry = Result<"sessions.tree">["entries"][number];

export interface TreeState {
  readonly status: "loading" | "ready" | "failed";
  readonly error: string | null;
  readonly sessionKey: string | null;
  readonly leafId: string | null;
  readonly tipId: string | null;
  /** In the order of the log, on all branches. */
  readonly entries: readonly TreeEntry[];
}

const loading: TreeState = {
  status: "loading",
  error: null,
  sessionKey: null,
  leafId: null,
  tipId: null,
  entries: [],
};
const pageSize = 5000;
const rereadMs = 200;

/** Every entry of a session. After an event only what was appended is read, because a tree may have thousands. */
export function useTree(place: SessionPlace): TreeState & { readonly refresh: () => Promise<void> } {
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
    if (payload.sessionKey !== state.sessionKey) return;
    if (event === "session.updated" && payload.isRedacted === true) return void reader.current?.read();
    if (event === "entry.appended" || event.startsWith("session.")) reader.current?.readNewSoon();
  });
  return { ...state, refresh: async () => reader.current?.readNew() };
}

class TreeReader {
  readonly #client: SkeinClient;
  readonly #params: Params<"sessions.tree">;
  readonly #publish: (state: TreeState) => void;
  #entries: readonly TreeEntry[] = [];
  #state = loading;
  #isClosed = false;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #turn: Promise<void> = Promise.resolve();

  constructor(client: SkeinClient, { key, userId }: SessionPlace, publish: (state: TreeState) => void) {
    this.#client = client;
    this.#params = { key, limit: pageSize, ...(userId === undefined ? {} : { userId }) };
    this.#publish = publish;
  }

  close(): void {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  read(): Promise<void> {
    return this.#enqueue(() => this.#readAfter(null));
  }

  readNew(): Promise<void> {
    return this.#enqueue(() => this.#readAfter(this.#entries.at(-1)?.id ?? null));
  }

  readNewSoon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      void this.readNew();
    }, rereadMs);
  }

  #enqueue(read: () => Promise<void>): Promise<void> {
    this.#turn = this.#turn.then(read).catch((error: unknown) => {
      const status = this.#state.status === "ready" ? "ready" : "failed";
      this.#set({ ...this.#state, status, error: errorText(error) });
    });
    return this.#turn;
  }

  async #readAfter(from: string | null): Promise<void> {
    let entries = from === null ? [] : this.#entries;
    let after = from;
    for (;;) {
      const page = await this.#client.call("sessions.tree", {
        ...this.#params,
        ...(after === null ? {} : { after }),
      });
      if (this.#isClosed) return;
      // A label changes an entry that was read before.
      if (from !== null && page.entries.some(({ type }) => type === "label")) return this.#readAfter(null);
      entries = [...entries, ...page.entries];
      const { sessionKey = this.#params.key, leafId, tipId, nextAfter } = page;
      if (nextAfter === undefined) {
        this.#entries = entries;
        return this.#set({ status: "ready", error: null, sessionKey, leafId, tipId, entries });
      }
      after = nextAfter;
    }
  }

  #set(state: TreeState): void {
    this.#state = state;
    if (!this.#isClosed) this.#publish(state);
  }
}
