import { mcpToolPrefix } from "../../agents/mcp/open-servers.ts";
import type { MethodName } from "../../protocol/methods/method-table.ts";

/** Queues of heavy calls. A call that writes may wait for the locks of others; one of an MCP server, for that server. */
export type HeavyQueue = "reading" | "writing" | "calling";

const heavyMethods: ReadonlyMap<string, HeavyQueue> = new Map<MethodName, HeavyQueue>([
  ["sessions.preview", "reading"],
  ["sessions.tree", "reading"],
  ["sessions.entries", "reading"],
  ["sessions.usage", "reading"],
  ["sessions.search", "reading"],
  ["sessions.context", "reading"],
  ["sessions.export", "reading"],
  ["blobs.get", "reading"],
  ["users.list", "reading"],
  ["sessions.fork", "writing"],
  ["sessions.import", "writing"],
  ["sessions.redact", "writing"],
]);

const heavyTools: ReadonlyMap<string, HeavyQueue> = new Map([
  ["sessions_list", "reading"],
  ["sessions_history", "reading"],
  ["session_search", "reading"],
  ["session_list", "reading"],
]);

/** The queue of a call; `null`: it is not heavy. */
export function heavyQueueOf(
  method: string,
  params: Readonly<Record<string, unknown>>,
  mcpServers: readonly string[] = [],
): HeavyQueue | null {
  if (method === "tools.invoke") return heavyToolQueueOf(String(params.name), mcpServers);
  return heavyMethods.get(method) ?? null;
}

/** The same for a tool: session tools that read much, and every tool of an MCP server. */
export function heavyToolQueueOf(name: string, mcpServers: readonly string[]): HeavyQueue | null {
  const isOfServer = mcpServers.some((server) => name.startsWith(mcpToolPrefix(server)));
  return heavyTools.get(name) ?? (isOfServer ? "calling" : null);
}

/** What a token has in memory at once is so many sessions, however many it asks for. */
const mostRunning = 2;

interface Queue {
  running: number;
  readonly waiting: (() => void)[];
}

/** The heavy calls of each token: so many of a line at a time, the others behind them in the order in which they came. */
export class HeavyCalls {
  readonly #most: number;
  readonly #queues = new Map<string, Queue>();

  constructor(most = mostRunning) {
    this.#most = most;
  }

  /** How many lines have any. */
  get size(): number {
    return this.#queues.size;
  }

  /** A call without a queue begins at once. One whose `signal` is aborted while it waits never begins. */
  async run<T>(
    tokenId: string,
    queued: HeavyQueue | null,
    signal: AbortSignal,
    act: () => Promise<T>,
  ): Promise<T> {
    if (queued === null) return act();
    const line = `${queued} ${tokenId}`;
    const queue = this.#queues.get(line) ?? { running: 0, waiting: [] };
    this.#queues.set(line, queue);
    if (queue.running < this.#most) queue.running += 1;
    else await this.#wait(queue, signal);
    try {
      signal.throwIfAborted();
      return await act();
    } finally {
      this.#next(line, queue);
    }
  }

  /** Resolves with the place of one that has ended. */
  #wait({ waiting }: Queue, signal: AbortSignal): Promise<void> {
    return new Promise((go, leave) => {
      const begin = () => {
        signal.removeEventListener("abort", end);
        go();
      };
      const end = () => {
        const place = waiting.indexOf(begin);
        if (place !== -1) waiting.splice(place, 1);
        leave(signal.reason as Error);
      };
      waiting.push(begin);
      if (signal.aborted) end();
      else signal.addEventListener("abort", end, { once: true });
    });
  }

  #next(line: string, queue: Queue): void {
    const begin = queue.waiting.shift();
    if (begin !== undefined) {
      begin();
      return;
    }
    queue.running -= 1;
    if (queue.running === 0) this.#queues.delete(line);
  }
}
