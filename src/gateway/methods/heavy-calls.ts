import { mcpToolPrefix } from "../../agents/mcp/open-servers.ts";
import type { MethodName } from "../../protocol/method-table.ts";

/**
 * The queues for heavy calls. A write might have to wait for locks, and a call to an MCP tool might have to wait for
 * its server.
 */
export type HeavyQueue = "reading" | "writing" | "calling";

const heavyMethods: ReadonlyMap<string, HeavyQueue> = new Map<MethodName, HeavyQueue>([
  ["sessions.preview", "reading"],
  ["sessions.tree", "reading"],
  ["sessions.entries", "reading"],
  ["sessions.usage", "reading"],
  ["sessions.search", "reading"],
  ["sessions.context", "reading"],
  ["sessions.family", "reading"],
  ["sessions.export", "reading"],
  ["runs.steps", "reading"],
  ["access.matrix", "reading"],
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

/** Returns the queue for a call, or `null` if the call is not heavy. */
export function heavyQueueOf(
  method: string,
  params: Readonly<Record<string, unknown>>,
  mcpServers: readonly string[] = [],
): HeavyQueue | null {
  if (method === "tools.invoke") return heavyToolQueueOf(String(params.name), mcpServers);
  return heavyMethods.get(method) ?? null;
}

/** Returns the queue for an MCP tool or for a session tool that reads a lot of data, and `null` for any other tool. */
export function heavyToolQueueOf(name: string, mcpServers: readonly string[]): HeavyQueue | null {
  const isOfServer = mcpServers.some((server) => name.startsWith(mcpToolPrefix(server)));
  return heavyTools.get(name) ?? (isOfServer ? "calling" : null);
}

/** The maximum number of concurrent calls per token and queue. It limits how many sessions a token holds in memory. */
const mostRunning = 2;

interface Queue {
  running: number;
  readonly waiting: (() => void)[];
}

/** Runs each token's heavy calls in order of arrival, with a limit per queue. */
export class HeavyCalls {
  readonly #most: number;
  readonly #queues = new Map<string, Queue>();

  constructor(most = mostRunning) {
    this.#most = most;
  }

  /** The number of queues in use. */
  get size(): number {
    return this.#queues.size;
  }

  /** A call without a queue starts immediately. A call whose `signal` is aborted before it starts never starts. */
  async run<T>(
    tokenId: string,
    queued: HeavyQueue | null,
    signal: AbortSignal,
    act: () => Promise<T>,
  ): Promise<T> {
    signal.throwIfAborted();
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

  /** Resolves when a slot is free. */
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
