import { protocolVersion, wireLimits } from "../protocol/wire.ts";
import type { Timing } from "./backoff.ts";
import { realTiming } from "./backoff.ts";
import { CallError } from "./call-error.ts";
import { Client } from "./client.ts";
import type { ConnectOptions, SkeinClient } from "./contract.ts";

const defaults = { minMs: 250, maxMs: 15_000, forMs: Number.POSITIVE_INFINITY };

/**
 * Connects to a gateway by its address, with a token. Rejects with a `CallError`: `unauthorized` for a token that does not
 * count, `unavailable` where nobody answers. Afterwards a connection that breaks is made anew by itself, unless the token ended.
 *
 * @example
 * ```ts
 * import { connect } from "skein/client";
 * const client = await connect("http://127.0.0.1:18790", { token: "skein_…" });
 * const { runId } = await client.call("chat.send", {
 *   sessionKey: "main",
 *   message: "Plan three days in Kyoto",
 *   idempotencyKey: crypto.randomUUID(),
 * });
 * console.log(await client.call("agent.wait", { runId }, { signal: AbortSignal.timeout(60_000) }));
 * await client.close();
 * ```
 */
export function connect(url: string, options: ConnectOptions): Promise<SkeinClient> {
  return connectWith(url, options, realTiming);
}

export async function connectWith(
  url: string,
  options: ConnectOptions,
  timing: Timing,
): Promise<SkeinClient> {
  const { token, client, reconnect, timeoutMs = wireLimits.connectMs, eventsHeld = 1000 } = options;
  return new Client({
    url: socketUrl(url),
    Socket: options.WebSocket ?? globalThis.WebSocket,
    params: {
      protocol: { min: protocolVersion, max: protocolVersion },
      auth: { token },
      client: { name: "skein-client", ...client },
    },
    timeoutMs,
    timing,
    reconnect: reconnect === false ? null : { ...defaults, ...reconnect },
    eventsHeld,
  }).opened();
}

/** Where its sockets are: `/ws` under the address that people know. */
export function socketUrl(url: string): string {
  const at = URL.canParse(url) ? new URL(url) : null;
  if (at === null || !/^(?:https?|wss?):$/.test(at.protocol)) {
    const message = `"${url}" is not the address of a gateway. One is http://127.0.0.1:18790.`;
    throw new CallError({ code: "invalid_request", message });
  }
  const path = at.pathname.replace(/\/+$/, "");
  return `${at.protocol.replace("http", "ws")}//${at.host}${path.endsWith("/ws") ? path : `${path}/ws`}`;
}
