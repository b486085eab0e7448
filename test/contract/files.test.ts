import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "vitest";
import { storeConformance } from "../../src/entry-conformance.ts";
import { openFilesStore } from "../../src/store/files/store.ts";

for (const durability of ["full", "os"] as const) {
  const cases = storeConformance({
    create: async () => {
      const root = mkdtempSync(join(tmpdir(), "skein-files-"));
      let store = await openFilesStore({ root, durability });
      return {
        store,
        reopen: async () => {
          await store.close();
          store = await openFilesStore({ root, durability });
          return store;
        },
        dispose: async () => {
          await store.close();
          rmSync(root, { recursive: true, force: true });
        },
      };
    },
    capabilities: { reopen: true, powerCut: false },
  });

  describe(`the files store, durability ${durability}`, () => {
    for (const { id, title, run } of cases) test(`[${id}] ${title}`, run);
  });
}
