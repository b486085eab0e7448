import type { Job } from "../side.ts";
import type { Side, SideName } from "../sides.ts";
import { sides } from "../sides.ts";
import type { Workshop } from "../workshop.ts";
import { listSizes, manySessions } from "./list.ts";
import { longSession } from "./open-compacted.ts";
import type { Row } from "./row.ts";
import { growthSizes, inTurn } from "./row.ts";
import { queriesFor } from "./search.ts";

/** The rows that compare PostgreSQL with the files store and with peers on the same PostgreSQL server. */

const messages = 4800;

function countFor(shop: Workshop, name: SideName): number {
  const { most = messages }: Side = sides[name];
  return Math.ceil(shop.size(Math.min(most, messages)) / 16) * 16;
}

function appendJob(shop: Workshop, name: SideName, more: Partial<Job>) {
  return async (folder: string): Promise<Job> => ({
    folder,
    ...more,
    count: countFor(shop, name),
    ...(name === "full" ? {} : { url: await shop.database() }),
  });
}

export const appendRow: Row = {
  name: "postgres-append",
  title: "PostgreSQL: append messages of 1,000 characters",
  measure: (shop) =>
    inTurn(
      [
        { name: "one at a time", more: {} },
        { name: "16 sessions at once", more: { sessions: 16 } },
      ],
      ({ name, more }) => {
        const names: SideName[] = ["full", "postgres", "langgraphPostgres", "mastraPostgres"];
        const jobs = Object.fromEntries(names.map((side) => [side, appendJob(shop, side, more)]));
        return shop.measure({ name, size: messages, act: "append", runs: shop.runs(3), jobs });
      },
    ),
};

export const listRow: Row = {
  name: "postgres-list",
  title: "PostgreSQL: list the first 100 of 10,000 sessions",
  measure: (shop) => {
    const count = shop.size(listSizes["10k"]);
    const filter = "filtered" as const;
    return shop.measure({
      name: "10k",
      size: count,
      act: "list",
      runs: shop.runs(3),
      jobs: {
        full: async () => ({ folder: await manySessions(shop, "10k"), filter }),
        postgres: async (folder) => ({
          folder,
          filter,
          url: await shop.filledDatabase("sessions", (job) => shop.make("listed", { ...job, count })),
        }),
        mastraPostgres: async (folder) => ({
          folder,
          url: await shop.filledDatabase("threads", (job) =>
            shop.fill("mastraPostgres", "fill", { ...job, count }),
          ),
        }),
      },
    });
  },
};

export const searchRow: Row = {
  name: "postgres-search",
  title: "PostgreSQL: full-text search over 100,000 messages, English and Chinese",
  measure: (shop) => {
    const count = shop.size(100_000);
    const queries = queriesFor(240);
    return shop.measure({
      name: "100k",
      size: count,
      act: "search",
      runs: shop.runs(3),
      jobs: {
        full: async () => ({
          folder: await shop.fixture("searchable-100k", (folder) =>
            shop.make("searchable", { folder, count }),
          ),
          queries,
        }),
        postgres: async (folder) => ({
          folder,
          queries,
          url: await shop.filledDatabase("searchable-rows", (job) =>
            shop.make("searchable", { ...job, count }),
          ),
        }),
      },
    });
  },
};

export const openRow: Row = {
  name: "postgres-open",
  title: "PostgreSQL: open a long session, context built",
  measure: (shop) =>
    inTurn(["10k", "100k"] as const, (name) => {
      const count = shop.size(growthSizes[name]);
      const sessionId = `compacted-${name}`;
      const long = longSession(shop, "compacted", name);
      const peers = {
        langgraphPostgres: async (folder: string) => {
          const fewer = countFor(shop, "langgraphPostgres");
          const fill = (job: Job) =>
            shop.fill("langgraphPostgres", "append", { ...job, count: fewer, warmUp: 0 });
          return { folder, count: fewer, url: await shop.filledDatabase("graph-states", fill) };
        },
        mastraPostgres: async (folder: string) => {
          const fill = (job: Job) =>
            shop.fill("mastraPostgres", "append", { ...job, count, batch: 100, warmUp: 0 });
          return { folder, count, url: await shop.filledDatabase("thread-messages", fill) };
        },
      };
      return shop.measure({
        name,
        size: count,
        act: "open",
        runs: shop.runs(5),
        jobs: {
          full: async () => ({ folder: (await long).store, sessionId }),
          postgres: async (folder) => ({
            folder,
            sessionId,
            url: await shop.filledDatabase(`rows-${name}`, (job) =>
              shop.make("compacted", { ...job, sessionId, count }),
            ),
          }),
          ...(name === "10k" ? peers : {}),
        },
      });
    }),
};

export const turnRow: Row = {
  name: "postgres-turn",
  title: "PostgreSQL: what a turn with two tool calls costs, no thinking time",
  measure: (shop) =>
    inTurn(
      [
        { name: "one session at a time", sessions: 1, turns: 160 },
        { name: "16 sessions at once", sessions: 16, turns: 480 },
      ],
      ({ name, sessions, turns }) => {
        const count = Math.ceil(shop.size(turns) / sessions) * sessions;
        const job = (folder: string) => ({ folder, count, sessions, lanes: 64 });
        return shop.measure({
          name,
          size: count,
          act: "serve",
          runs: shop.runs(3),
          jobs: {
            full: job,
            postgres: async (folder) => ({ ...job(folder), url: await shop.database() }),
          },
        });
      },
    ),
};

export const feedRow: Row = {
  name: "postgres-feed",
  title: "PostgreSQL: events from one process to another",
  measure: (shop) => {
    const count = shop.size(20_000);
    return shop.measure({
      name: "answers as they are written",
      size: count,
      act: "feed",
      runs: shop.runs(3),
      jobs: { postgres: async (folder) => ({ folder, count, rate: 2000, url: await shop.database() }) },
    });
  },
};

const workerCases = [
  { name: "one worker, 8 runs at once", workers: 1, perProcess: 8 },
  { name: "two workers, 8 runs at once each", workers: 2, perProcess: 8 },
  { name: "one worker, 16 runs at once", workers: 1, perProcess: 16 },
];

export const workersRow: Row = {
  name: "postgres-workers",
  title: "PostgreSQL: turns whose model thinks for 3 s, by number of worker processes",
  measure: (shop) =>
    inTurn(workerCases, ({ name, ...given }) => {
      // A multiple of all lanes and of all sessions.
      const count = shop.isQuick ? 48 : 144;
      return shop.measure({
        name,
        size: count,
        act: "work",
        runs: shop.runs(3),
        jobs: {
          postgres: async (folder) => ({
            folder,
            count,
            sessions: 24,
            thinkMs: 3000,
            lanes: 16,
            ...given,
            url: await shop.database(),
          }),
        },
      });
    }),
};
