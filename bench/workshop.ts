import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ServerKeeper } from "../test/support/postgres-broker.ts";
import { DatabaseServer, migrator } from "../test/support/postgres-server.ts";
import { ChildProblem, inChild } from "./in-child.ts";
import type { Figure, Point } from "./results.ts";
import { figureOf } from "./results.ts";
import type { ActName, Figures, Job } from "./side.ts";
import { removeQuietly } from "./side.ts";
import type { Side, SideName } from "./sides.ts";
import { isPeer, sides } from "./sides.ts";

export interface Case {
  readonly name: string;
  readonly size: number;
  readonly act: ActName;
  /** The number of rounds per side. The sides alternate. */
  readonly runs: number;
  /** The sides with their jobs, without those that cannot take part. */
  readonly jobs: Partial<Record<SideName, (folder: string) => Job | Promise<Job>>>;
}

/** The maximum time that a side can take for one case once it has completed a round. */
const mostMsPerSide = 90_000;

/**
 * The environment for rows: temporary folders, fixtures that are created once, and processes that each do one thing.
 */
export class Workshop {
  readonly isQuick: boolean;
  readonly withPeers: boolean;
  readonly leftOut: { side: string; act: ActName; reason: string }[] = [];
  readonly #root = mkdtempSync(join(tmpdir(), "skein-bench-"));
  readonly #fixtures = new Map<string, Promise<string>>();
  /** The number of messages last given to a side. */
  readonly #counts = new Map<SideName, number>();
  readonly #databases = new Map<string, Promise<string>>();
  #keeper: ServerKeeper | null = null;
  #folders = 0;

  constructor(options: { isQuick: boolean; withPeers: boolean }) {
    this.isQuick = options.isQuick;
    this.withPeers = options.withPeers;
  }

  /** Returns a size scaled for this run. */
  size(full: number): number {
    return this.isQuick ? Math.ceil(full / 20) : full;
  }

  runs(full: number): number {
    return this.isQuick ? 1 : full;
  }

  note(text: string): void {
    process.stderr.write(`  ${text}\n`);
  }

  /** Returns a folder that is created once, no matter how many rows read it. */
  fixture(name: string, make: (folder: string) => Promise<unknown>): Promise<string> {
    const known = this.#fixtures.get(name);
    if (known !== undefined) return known;
    const folder = join(this.#root, name);
    const started = performance.now();
    const making = make(folder).then(() => {
      this.note(`fixture ${name}: ${((performance.now() - started) / 1000).toFixed(1)} s`);
      return folder;
    });
    this.#fixtures.set(name, making);
    return making;
  }

  /** Does the work for a fixture in a process with enough memory. */
  make(act: string, job: Job): Promise<Figures> {
    return inChild({ module: "fixtures", act, job }, { heapMb: 12_000 });
  }

  /** Fills a folder with messages in a side's format, once for each purpose. */
  filled(name: SideName, count: number, purpose: string): Promise<string> {
    const side: Side = sides[name];
    return this.fixture(`${purpose}-${name}-${count}`, async (folder) => {
      const sync = side.sync === undefined ? {} : { durability: "os" as const };
      const batch = side.isByStep === true ? 1 : 100;
      const job = { ...jobFor(side), folder, count, batch, warmUp: 0, ...sync };
      const act = name === "claude" ? "fill" : "append";
      await inChild({ module: side.module, act, job });
    });
  }

  /** Lets a side fill a folder or database in a separate process. */
  fill(name: SideName, act: ActName, job: Job): Promise<Figures> {
    return inChild({ module: sides[name].module, act, job });
  }

  /**
   * Returns the address of a new database. All databases are on one server, which is started when it is first needed.
   */
  async database(): Promise<string> {
    const server = await this.#databaseServer();
    await server.createRoles();
    return (await server.createDatabase()).url(migrator);
  }

  async #databaseServer(): Promise<DatabaseServer> {
    this.#keeper ??= new ServerKeeper({ isDurable: true });
    const kept = await this.#keeper.server;
    if ("missing" in kept) throw new Error(`PostgreSQL cannot run here: ${kept.missing}`);
    return new DatabaseServer(kept.port);
  }

  /**
   * Returns the address of a database that is filled once. It is then vacuumed and analyzed, as a running server does
   * by itself within minutes.
   */
  filledDatabase(name: string, fill: (job: Job) => Promise<unknown>): Promise<string> {
    const known = this.#databases.get(name);
    if (known !== undefined) return known;
    const filling = this.database().then(async (url) => {
      await this.fixture(name, (folder) => fill({ folder, url }));
      await (await this.#databaseServer()).administer(new URL(url).pathname.slice(1), "VACUUM (ANALYZE)");
      return url;
    });
    this.#databases.set(name, filling);
    return filling;
  }

  idsOf(store: string, sessionId: string): string[] {
    return JSON.parse(readFileSync(join(store, "..", `ids-${sessionId}.json`), "utf8")) as string[];
  }

  /** Measures a case. The sides take turns repeatedly, so that a noisy minute affects all of them. */
  async measure(wanted: Case): Promise<Point[]> {
    const names = (Object.keys(wanted.jobs) as SideName[]).filter(
      (name) => (this.withPeers || !isPeer(name)) && !this.#isLeftOut(name, wanted.act),
    );
    const done = new Map<SideName, Figures[]>(names.map((name) => [name, []]));
    const spent = new Map<SideName, number>();
    // One extra round. The first one warms the page cache and is not counted.
    for (let round = 0; round <= wanted.runs; round++) {
      for (const name of names) {
        if (this.#isLeftOut(name, wanted.act) || (spent.get(name) ?? 0) > this.#mostMs(name)) continue;
        const { figures, ms } = await this.#once(name, wanted);
        if (figures !== null) done.get(name)?.push(figures);
        spent.set(name, (spent.get(name) ?? 0) + ms);
      }
    }
    return names.flatMap((name) => {
      const all = done.get(name) ?? [];
      const counted = all.length > 1 ? all.slice(1) : all;
      if (counted.length === 0) return [];
      const size = this.#counts.get(name) ?? wanted.size;
      return [{ case: wanted.name, size, side: sides[name].name, figures: summary(counted) }];
    });
  }

  async close(): Promise<void> {
    await this.#keeper?.stop();
    removeQuietly(this.#root);
  }

  #isLeftOut(name: SideName, act: ActName): boolean {
    return this.leftOut.some((each) => each.side === sides[name].name && each.act === act);
  }

  /** Returns the time limit for a side. A quick run measures peers only once. */
  #mostMs(name: SideName): number {
    return this.isQuick && isPeer(name) ? 0 : mostMsPerSide;
  }

  /** Runs one act. Returns its duration including its process but without the time for fixtures. */
  async #once(name: SideName, { act, jobs }: Case): Promise<{ figures: Figures | null; ms: number }> {
    const side: Side = sides[name];
    const folder = join(this.#root, `work-${this.#folders++}`);
    let started = performance.now();
    try {
      const job = { ...jobFor(side), ...(await jobs[name]?.(folder)) };
      if (job.count === undefined) this.#counts.delete(name);
      else this.#counts.set(name, job.count);
      started = performance.now();
      const figures = await inChild({ module: side.module, act, job: { folder, ...job } });
      return { figures, ms: performance.now() - started };
    } catch (error) {
      if (!(error instanceof ChildProblem) || side.module === "ours") throw error;
      const [reason = ""] = error.message.split("\n");
      this.note(`${side.name} is left out: ${error.message}`);
      this.leftOut.push({ side: side.name, act, reason: reason.slice(0, 200) });
      return { figures: null, ms: performance.now() - started };
    } finally {
      removeQuietly(folder);
    }
  }
}

/** The part of a job that depends only on the side. */
function jobFor({ sync, packages: [first] }: Side): Partial<Job> {
  return {
    ...(sync === undefined ? {} : { durability: sync }),
    ...(first === undefined ? {} : { package: first }),
  };
}

function summary(all: readonly Figures[]): Record<string, Figure> {
  const names = [...new Set(all.flatMap((each) => Object.keys(each)))];
  return Object.fromEntries(names.map((name) => [name, figureOf(all.flatMap((each) => each[name] ?? []))]));
}
