import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "vitest";
import { describe, test } from "vitest";
import type { StoreHarness } from "../../src/entry-conformance.ts";
import { storeConformance } from "../../src/entry-conformance.ts";
import { openFilesStore } from "../../src/store/files/store.ts";
import { createMemoryStore } from "../../src/store/memory/store.ts";
import type { TestServer } from "../support/postgres.ts";
import { openPostgresStore, postgresFor } from "../support/postgres.ts";

/** A store with the kit's requirements. `prepare` runs before each case and can skip it. */
interface BackEnd {
  readonly harness: StoreHarness;
  prepare?(context: TestContext): Promise<void>;
}

function filesBackEnd(durability: "full" | "os"): BackEnd {
  const create = async () => {
    const root = mkdtempSync(join(tmpdir(), "skein-files-"));
    const open = () => openFilesStore({ root, durability });
    return reopening(await open(), open, async () => rmSync(root, { recursive: true, force: true }));
  };
  return { harness: { create, capabilities: { reopen: true, powerCut: false } } };
}

function postgresBackEnd(): BackEnd {
  let server: TestServer;
  const create = async () => {
    const database = await server.createDatabase();
    const open = () => openPostgresStore({ url: database.url() });
    return reopening(await open(), open, database.drop);
  };
  return {
    harness: { create, capabilities: { reopen: true, powerCut: false } },
    prepare: async (context) => {
      server = await postgresFor(context);
    },
  };
}

type Opened = Awaited<ReturnType<StoreHarness["create"]>>["store"];

function reopening(first: Opened, open: () => Promise<Opened>, remove: () => Promise<void>) {
  let store = first;
  return {
    store,
    reopen: async () => {
      await store.close();
      store = await open();
      return store;
    },
    dispose: async () => {
      await store.close();
      await remove();
    },
  };
}

const backEnds: Readonly<Record<string, BackEnd>> = {
  "the memory store": {
    harness: {
      create: async () => ({ store: createMemoryStore() }),
      capabilities: { reopen: false, powerCut: false },
    },
  },
  "the files store, durability full": filesBackEnd("full"),
  "the files store, durability os": filesBackEnd("os"),
  "the PostgreSQL store": postgresBackEnd(),
};

describe.each(Object.entries(backEnds))("%s", (_, { harness, prepare }) => {
  for (const { id, title, run } of storeConformance(harness)) {
    test(`[${id}] ${title}`, async (context) => {
      await prepare?.(context);
      await run();
    });
  }
});
