import { join } from "node:path";
import { validate } from "@langchain/langgraph-checkpoint-validation";
import { SkeinSaver } from "skein/langgraph";
import { openPostgres } from "skein/postgres";
import type { Store } from "skein/store";
import { createStore } from "skein/store";
import { temporaryFolder } from "skein/testing";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { findServer, migrator } from "../support/postgres-server.ts";

// The validation suite calls the test runner's functions as globals.
Object.assign(globalThis, { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it });

const isWhole = process.env.SKEIN_ADAPTERS === "whole";
const home = temporaryFolder("skein-langgraph-");
let users = 0;

interface OpenStore {
  readonly name: string;
  readonly store: Store;
  close?(): Promise<void>;
}

const stores: OpenStore[] = [{ name: "in memory", store: await createStore({ memory: true }) }];
if (isWhole) {
  stores.push({ name: "in a folder", store: await createStore({ dir: join(home.path, "store") }) });
  stores.push(await openDatabase());
}

async function openDatabase(): Promise<OpenStore> {
  const server = await findServer();
  if (typeof server === "string") throw new Error(server);
  await server.createRoles();
  const database = await server.createDatabase();
  const backend = await openPostgres({ url: database.url(migrator) });
  const close = async () => {
    await backend.close();
    await database.drop();
  };
  return { name: "on PostgreSQL", store: backend.openStore(), close };
}

// After all stores have been closed.
afterAll(() => home.remove());

describe("[LGR1] the validation suite of LangGraph", () => {
  for (const { name, store, close } of stores)
    validate({
      checkpointerName: `SkeinSaver ${name}`,
      createCheckpointer: () => new SkeinSaver({ store, userId: `user-${++users}` }),
      afterAll: async () => {
        await store.close();
        await close?.();
      },
    });
});
