import { describe, test } from "vitest";
import { storeConformance } from "../../src/entry-conformance.ts";
import { createMemoryStore } from "../../src/store/memory/store.ts";

const cases = storeConformance({
  create: async () => ({ store: createMemoryStore() }),
  capabilities: { reopen: false, powerCut: false },
});

describe("the memory store", () => {
  for (const { id, title, run } of cases) test(`[${id}] ${title}`, run);
});
