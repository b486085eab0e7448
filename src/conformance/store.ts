import { entryCases } from "./entry-cases.ts";
import type { Case, StoreHarness } from "./harness.ts";
import { bindCases } from "./harness.ts";
import { lastingCases } from "./lasting-cases.ts";
import { otherCases } from "./other-cases.ts";
import { sessionCases } from "./session-cases.ts";

/** Everything that a store must do, as plain functions for any test runner. */
export function storeConformance(harness: StoreHarness): Case[] {
  return bindCases([...sessionCases, ...entryCases, ...lastingCases, ...otherCases], harness);
}
