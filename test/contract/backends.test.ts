import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { scriptedModel, temporaryFolder } from "../../src/entry-testing.ts";
import type { SkeinOptions } from "../../src/index.ts";
import { createSkein, defineAgent } from "../../src/index.ts";
import { PostgresBackend } from "../../src/store/postgres/store.ts";
import type { WorkingBackend } from "../../src/store/work.ts";
import type { StartProcess } from "../support/backend-cases.ts";
import { backendCases } from "../support/backend-cases.ts";
import { breakBackend, brokenBackends } from "../support/broken-backends.ts";
import { borrowDatabase, migrator, postgresFor } from "../support/postgres.ts";

const endings: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).toReversed()) await end();
});

/** Starts processes with the options that `place` returns for their folder. */
function startWith(place: (dir: string) => Promise<Partial<SkeinOptions>>): StartProcess {
  const folder = temporaryFolder();
  endings.push(() => folder.remove());
  let count = 0;
  return async ({ model = scriptedModel([]), tools = [], ...options } = {}) => {
    const dir = join(folder.path, String(count++));
    const placed = await place(dir);
    const skein = await createSkein({
      dir,
      config: null,
      env: {},
      quiet: true,
      report: () => undefined,
      app: "cases",
      models: { "rehearsal/script": model },
      agents: [defineAgent({ id: "main", model: "rehearsal/script", tools: [...tools] })],
      ...placed,
      ...options,
    });
    endings.push(() => skein.close({ graceMs: 0 }));
    return { skein, dir: placed.dir ?? dir };
  };
}

/** Processes on one database, each with its own connections. */
async function startOnPostgres(wrap: (backend: WorkingBackend) => WorkingBackend): Promise<StartProcess> {
  const { database, giveBack } = await borrowDatabase();
  endings.push(giveBack);
  return startWith(async () => {
    const backend = await PostgresBackend.open({
      url: database.url(migrator),
      maxConnections: 4,
      patienceMs: 0,
    });
    endings.push(() => backend.close());
    return { backend: wrap(backend) };
  });
}

describe("runs in memory", () => {
  test.each(backendCases.filter(({ needs }) => needs === undefined))("$name", ({ check }) =>
    check(startWith(async () => ({ memory: true }))),
  );
});

describe("runs in a folder", () => {
  test.each(backendCases.filter(({ needs }) => needs !== "events"))("$name", ({ check }) => {
    const root = temporaryFolder();
    endings.push(() => root.remove());
    return check(startWith(async () => ({ dir: root.path })));
  });
});

describe("runs on PostgreSQL", () => {
  test.for(backendCases)("$name", async ({ check }, context) => {
    await postgresFor(context);
    // Wrapped like the broken ones, so that only the fault of those can be what a case notices.
    const faultless = { name: "has no fault", noticedBy: "" };
    await check(await startOnPostgres((backend) => breakBackend(backend, faultless)));
  });

  test.for(brokenBackends)("a back end that $name is noticed", async (broken, context) => {
    await postgresFor(context);
    const noticing = backendCases.filter(({ name }) => name.includes(broken.noticedBy));
    expect(noticing).toHaveLength(1);
    const start = await startOnPostgres((backend) => breakBackend(backend, broken));
    await expect(noticing[0]?.check(start)).rejects.toThrow();
  });
});
