import { isNotLetIn, patiently, realTiming } from "../../client/retry.ts";
import type { AcpParts } from "./contract.ts";

/** The same parts, whose calls wait where a gateway lets no more in: it did nothing of what it refused so. */
export function unhurried<P extends Pick<AcpParts, "calls">>(parts: P): P {
  const { calls } = parts;
  const call: AcpParts["calls"]["call"] = (method, params, options) =>
    patiently(realTiming, options?.signal ?? null, () => calls.call(method, params, options), isNotLetIn);
  return { ...parts, calls: { call, events: (filter) => calls.events(filter) } };
}
