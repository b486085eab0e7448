import { setTimeout as sleep } from "node:timers/promises";
import { present } from "../../core/present.ts";
import type { AcpParts } from "./contract.ts";

/** A gateway that has too much of us says when to come again. */
export async function letIn<T>(act: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  for (;;) {
    signal?.throwIfAborted();
    try {
      return await act();
    } catch (error) {
      const { code, retryAfterMs } = error as { readonly code?: unknown; readonly retryAfterMs?: unknown };
      if (code !== "rate_limited" || typeof retryAfterMs !== "number") throw error;
      await sleep(retryAfterMs, undefined, present({ signal }));
    }
  }
}

/** The same parts, whose calls wait where a gateway lets no more in: it did nothing of what it refused so. */
export function unhurried(parts: AcpParts): AcpParts {
  const { calls } = parts;
  const call: AcpParts["calls"]["call"] = (method, params, options) =>
    letIn(() => calls.call(method, params, options), options?.signal);
  return { ...parts, calls: { call, events: (filter) => calls.events(filter) } };
}
