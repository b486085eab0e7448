import { entryCases } from "./entry-cases.ts";
import type { Case, StoreHarness } from "./harness.ts";
import { bindCases } from "./harness.ts";
import { listCases } from "./list-cases.ts";
import { portCases } from "./port-cases.ts";
import { reachCases } from "./reach-cases.ts";
import { removalCases } from "./removal-cases.ts";
import { sessionCases } from "./session-cases.ts";

/**
 * The requirements for a store, as plain functions for any test runner.
 *
 * @example
 * ```ts
 * import { test } from "node:test";
 * import { storeConformance } from "skein/conformance";
 * import { createStore } from "skein/store";
 * const create = async () => ({ store: await createStore({ memory: true }) });
 * for (const { id, title, run } of storeConformance({ create, capabilities: { reopen: false, powerCut: false } })) {
 *   test(`[${id}] ${title}`, run);
 * }
 * ```
 */
export function storeConformance(harness: StoreHarness): Case[] {
  const ofSessions = [...sessionCases, ...listCases, ...reachCases];
  return bindCases([...ofSessions, ...entryCases, ...removalCases, ...portCases], harness);
}
