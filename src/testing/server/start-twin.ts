import { once } from "node:events";
import type { Server } from "node:http";
import { createServer } from "node:http";
import type { Scripted, TwinApi, TwinRequest } from "../twins/contract.ts";
import { Desk } from "./desk.ts";
import { basePaths, formatOf, limitsOf } from "./formats.ts";
import type { ReceivedRequest } from "./request-log.ts";

const mostConnections = 256;

/**
 * A server on loopback that speaks a provider's wire format: it says what it was told to say, and refuses what the
 * provider refuses.
 */
export interface Twin {
  readonly api: TwinApi;
  /** What the AI SDK wants as its `baseURL`. */
  readonly url: string;
  /** All that came in, refused or not, oldest first; of more than 1,000 the newest. */
  readonly requests: readonly ReceivedRequest[];
  /** What to say next, one for each request that is taken. A refused request takes none. */
  enqueue(...scripted: readonly Scripted[]): void;
  /** Cuts every connection, and is done when nothing listens any more. */
  close(): Promise<void>;
}

/** What a twin is of, and what it says. */
export interface TwinOptions {
  readonly api: TwinApi;
  /** What to say first; more can be queued later. Then it says what `otherwise` does. */
  readonly replies?: readonly Scripted[];
  /** When nothing is queued: what to say to this request. By default a fixed short text. */
  readonly otherwise?: (request: TwinRequest) => Scripted;
  /** In tokens, counted roughly. By default that of the provider's usual models. */
  readonly contextWindow?: number;
}

/**
 * Starts a twin of a provider, on a free port of this machine.
 *
 * @example
 * ```ts
 * import { createAnthropic } from "@ai-sdk/anthropic";
 * import { generateText } from "ai";
 * import { startTwin } from "skein/testing";
 * const twin = await startTwin({
 *   api: "anthropic-messages",
 *   replies: [{ content: [{ type: "text", text: "Kyoto, in November." }] }],
 * });
 * const model = createAnthropic({ baseURL: twin.url, apiKey: "any" })("claude-sonnet-4-5");
 * const { text } = await generateText({ model, prompt: "Where, and when?" });
 * await twin.close();
 * ```
 */
export async function startTwin(options: TwinOptions): Promise<Twin> {
  const { api, replies = [], contextWindow, otherwise } = options;
  const limits = limitsOf(api, contextWindow === undefined ? {} : { contextWindow });
  const desk = new Desk(formatOf(api), limits, otherwise);
  desk.enqueue(replies);
  const server = createServer((incoming, response) => {
    desk.take(incoming, response).catch(() => response.destroy());
  });
  server.maxConnections = mostConnections;
  // A connection that is closed for being idle, just as a busy client uses it again, would be a failure of no provider.
  Object.assign(server, { keepAliveTimeout: 0, requestTimeout: 0, headersTimeout: 0 });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { requests } = desk.log;
  let closing: Promise<void> | null = null;
  return {
    api,
    url: `http://127.0.0.1:${portOf(server)}${basePaths[api]}`,
    requests,
    enqueue: (...scripted) => desk.enqueue(scripted),
    close: () => {
      closing ??= close(server);
      return closing;
    },
  };
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

async function close(server: Server): Promise<void> {
  const closed = once(server, "close");
  server.close();
  server.closeAllConnections();
  await closed;
}
