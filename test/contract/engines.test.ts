import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import type { Script, ScriptEngine, Whose } from "../../src/core/script.ts";
import { changeRows, lockFor, queryRow } from "../../src/core/script.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { SkeinError } from "../../src/index.ts";
import { Database } from "../../src/store/files/database.ts";
import { PostgresBackend } from "../../src/store/postgres/store.ts";
import { SqliteEngine } from "../../src/store/sqlite-engine.ts";
import { borrowDatabase, migrator, postgresFor } from "../support/postgres.ts";

/**
 * What the run ledger relies on. Its scripts are the same for every database, so an engine that passes these cases, and
 * the ledger's own tests, keeps runs correctly.
 */

/** Engines of two processes on one database, in which the table `facts` is empty. */
type Pair = readonly [here: ScriptEngine, there: ScriptEngine];

interface EngineCase {
  readonly name: string;
  check(pair: Pair): Promise<void>;
}

const ann: Whose = { userId: "ann" };
const rejected = () =>
  new SkeinError("invalid_arguments", { problem: "The test rejects this", advice: "Nothing" });

function* read(name: string): Script<number> {
  return Number((yield* queryRow("SELECT value FROM facts WHERE name = ?", name))?.value ?? 0);
}

function* write(name: string, value: number): Script<void> {
  const text =
    "INSERT INTO facts (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value";
  yield* changeRows(text, name, String(value));
}

function* increment(name: string): Script<number> {
  const next = (yield* read(name)) + 1;
  yield* write(name, next);
  return next;
}

function* incrementAndFail(name: string, error: Error): Script<number> {
  yield* increment(name);
  throw error;
}

/** Increments one number from both processes at once. Every increment reads a different value. */
async function checkExclusion(
  [here, there]: Pair,
  name: string,
  whose: (index: number) => Whose,
  script = increment,
) {
  const engines = Array.from({ length: 24 }, (_, index) => (index % 2 === 0 ? here : there));
  const results = await Promise.all(
    engines.map((engine, index) => engine.change("synced", whose(index), () => script(name))),
  );
  expect(results.toSorted((a, b) => a - b)).toEqual(engines.map((_, index) => index + 1));
}

function* withoutLocks<T>(script: Script<T>): Script<T> {
  let step = script.next();
  while (step.done !== true) step = script.next(step.value.wants === "lock" ? undefined : yield step.value);
  return step.value;
}

const cases: readonly EngineCase[] = [
  {
    name: "a change that has resolved is visible to every process",
    check: async ([here, there]) => {
      for (let count = 1; count <= 20; count++) {
        expect(await here.change("synced", ann, () => increment("a"))).toBe(count);
        expect(await there.read(() => read("a"))).toBe(count);
      }
    },
  },
  {
    name: "a script that throws changes nothing, and its error reaches the caller",
    check: async ([here, there]) => {
      const error = rejected();
      await expect(here.change("synced", ann, () => incrementAndFail("a", error))).rejects.toBe(error);
      expect(await there.read(() => read("a"))).toBe(0);
    },
  },
  {
    name: "changes to the same user's rows exclude each other, in one process and between processes",
    check: (pair) => checkExclusion(pair, "a", () => ann),
  },
  {
    name: "changes that take a slot exclude each other for all users",
    check: (pair) => {
      const incrementAlone = function* (name: string): Script<number> {
        yield* lockFor("slots");
        return yield* increment(name);
      };
      const whose = (index: number) => ({ userId: index % 3 === 0 ? "ann" : "bob" });
      return checkExclusion(pair, "a", whose, incrementAlone);
    },
  },
  {
    name: "changes to the gateways' rows exclude each other",
    check: (pair) => checkExclusion(pair, "a", () => "gateway"),
  },
  {
    name: "a rejected script does not affect the others that are passed with it, and results keep their order",
    check: async ([here, there]) => {
      const scripts = [
        () => increment("a"),
        () => incrementAndFail("b", rejected()),
        () => increment("c"),
        () => increment("a"),
      ];
      const results = await here.changeEach(scripts.map((script) => ({ whose: ann, script })));
      expect(results.map(({ status }) => status)).toEqual([
        "fulfilled",
        "rejected",
        "fulfilled",
        "fulfilled",
      ]);
      expect(results.map((each) => (each.status === "fulfilled" ? each.value : null))).toEqual([
        1,
        null,
        1,
        2,
      ]);
      const stored = await Promise.all(["a", "b", "c"].map((name) => there.read(() => read(name))));
      expect(stored).toEqual([2, 0, 1]);
    },
  },
  {
    name: "the mark differs after a change by this process or another one",
    check: async ([here, there]) => {
      const before = here.mark();
      await here.change("synced", ann, () => increment("a"));
      const own = here.mark();
      await there.change("synced", ann, () => increment("a"));
      expect(new Set([before, own, here.mark()]).size).toBe(3);
    },
  },
  {
    name: "the version changes when another process writes",
    check: async ([here, there]) => {
      const before = here.version();
      await there.change("synced", ann, () => increment("a"));
      await expect.poll(() => here.version()).not.toBe(before);
    },
  },
];

/** Engines with one fault, and the case that notices it. */
const faults: readonly { name: string; noticedBy: string; wrap(engine: ScriptEngine): object }[] = [
  {
    name: "resolves before the commit",
    noticedBy: "visible to every process",
    wrap: (engine) => ({
      change: async (...[durability, whose, script]: Parameters<ScriptEngine["change"]>) => {
        const known = Promise.withResolvers<unknown>();
        const early = function* (): Script<void> {
          known.resolve(yield* script());
          // The transaction goes on for a while.
          for (let left = 50; left > 0; left--) yield* read("a");
        };
        engine.change(durability, whose, early).catch(known.reject);
        return known.promise;
      },
    }),
  },
  {
    name: "commits each statement",
    noticedBy: "a script that throws changes nothing",
    wrap: (engine) => ({
      change: async (...[durability, whose, script]: Parameters<ScriptEngine["change"]>) => {
        const running = script();
        let step = running.next();
        while (step.done !== true) {
          const statement = step.value;
          const one = function* (): Script<unknown> {
            return yield statement;
          };
          step = running.next((await engine.change(durability, whose, one)) as never);
        }
        return step.value;
      },
    }),
  },
  {
    name: "takes no lock for a user",
    noticedBy: "same user's rows exclude",
    wrap: (engine) => ({
      change: (...[durability, , script]: Parameters<ScriptEngine["change"]>) =>
        engine.change(durability, null, script),
    }),
  },
  {
    name: "takes no lock for slots",
    noticedBy: "that take a slot exclude",
    wrap: (engine) => ({
      change: (...[durability, whose, script]: Parameters<ScriptEngine["change"]>) =>
        engine.change(durability, whose, () => withoutLocks(script())),
    }),
  },
  {
    name: "takes no lock for gateways",
    noticedBy: "gateways' rows exclude",
    wrap: (engine) => ({
      change: (...[durability, whose, script]: Parameters<ScriptEngine["change"]>) =>
        engine.change(durability, whose === "gateway" ? null : whose, script),
    }),
  },
  {
    name: "lets one rejected script fail all",
    noticedBy: "does not affect the others",
    wrap: (engine) => ({
      changeEach: async (changes: Parameters<ScriptEngine["changeEach"]>[0]) => {
        const all = function* (): Script<unknown[]> {
          const values: unknown[] = [];
          for (const { script } of changes) values.push(yield* script());
          return values;
        };
        const [result] = await Promise.allSettled([engine.change("synced", ann, all)]);
        return changes.map((_, index) =>
          result?.status === "fulfilled" ? { status: "fulfilled", value: result.value[index] } : result,
        );
      },
    }),
  },
  { name: "has one mark", noticedBy: "the mark differs", wrap: () => ({ mark: () => "same" }) },
];

const endings: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0)) await end();
});

async function openSqlite(): Promise<Pair> {
  const folder = temporaryFolder();
  const table = "CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT";
  const open = () => {
    const database = new Database(join(folder.path, "work.db"), "PRAGMA journal_mode = WAL;", [table]);
    endings.push(() => database.close());
    return new SqliteEngine(database);
  };
  const pair: Pair = [open(), open()];
  endings.push(() => folder.remove());
  return pair;
}

async function openPostgres(): Promise<Pair> {
  const { database, giveBack } = await borrowDatabase();
  const open = async () => {
    const backend = await PostgresBackend.open({ url: database.url(migrator), maxConnections: 4 });
    endings.push(() => backend.close());
    await backend.shared.events.join();
    return backend.engine;
  };
  const pair: Pair = [await open(), await open()];
  endings.push(giveBack);
  return pair;
}

describe("the engine of SQLite", () => {
  test.each(cases)("$name", async ({ check }) => check(await openSqlite()));
});

describe("the engine of PostgreSQL", () => {
  test.for(cases)("$name", async ({ check }, context) => {
    await postgresFor(context);
    await check(await openPostgres());
  });

  test.for(faults)("an engine that $name is noticed", async ({ noticedBy, wrap }, context) => {
    await postgresFor(context);
    const [here, there] = await openPostgres();
    const broken = (engine: ScriptEngine): ScriptEngine => ({
      read: (script) => engine.read(script),
      change: (...args) => engine.change(...args),
      changeEach: (changes) => engine.changeEach(changes),
      version: () => engine.version(),
      watch: (listener) => engine.watch(listener),
      mark: () => engine.mark(),
      fenceStep: () => engine.fenceStep(),
      ...wrap(engine),
    });
    const noticing = cases.filter(({ name }) => name.includes(noticedBy));
    expect(noticing).toHaveLength(1);
    await expect(noticing[0]?.check([broken(here), broken(there)])).rejects.toThrow();
  });
});
