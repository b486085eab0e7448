import type { Sql } from "../src/store/postgres/database.ts";
import { lockText, PostgresDatabase } from "../src/store/postgres/database.ts";
import { watchDatabase } from "./database-load.ts";
import { model, textOf } from "./scripted.ts";
import type { Figures, Job } from "./side.ts";
import { timed } from "./side.ts";
import { withSkein } from "./turns.ts";

/** What one turn costs Skein and its database. `npm run simulate` uses these figures as its service times. */

const warmUp = 48;
const keyOf = (index: number) => `agent:main:bench-${index}`;

/** Runs turns in several sessions at once. The turns of one session run one after another. */
export async function serve(job: Job): Promise<Figures> {
  const { count = 1, sessions = 1, url } = job;
  return withSkein(job, model(), async (skein) => {
    const sayTo = async (sessionKey: string, rounds: number) => {
      for (let round = 0; round < rounds; round++)
        await skein.session({ userId: sessionKey, sessionKey }).send(textOf(round)).result;
    };
    const sayAll = (turns: number) =>
      Promise.all(Array.from({ length: sessions }, (_, index) => sayTo(keyOf(index), turns / sessions)));
    await sayAll(Math.ceil(warmUp / sessions) * sessions);
    let events = 0;
    const unsubscribe = skein.subscribe(() => {
      events += 1;
    });
    let ms = 0;
    let cpuMs = 0;
    const work = async () => {
      const before = process.cpuUsage();
      ms = await timed(() => sayAll(count));
      const { user, system } = process.cpuUsage(before);
      cpuMs = (user + system) / 1000;
    };
    const { claims, load } = await watchClaims(async () =>
      url === undefined ? void (await work()) : watchDatabase(url, work),
    );
    unsubscribe();
    const figures = {
      turnMs: (ms * sessions) / count,
      turnsPerSecond: count / (ms / 1000),
      workerCpuMs: cpuMs / count,
      events: events / count,
    };
    if (load === undefined) return figures;
    return {
      ...figures,
      claimMs: claims.ms / Math.max(1, claims.count),
      databaseCpuMs: load.cpuMs / count,
      transactions: load.transactions / count,
      insertedRows: load.insertedRows / count,
      entries: load.entries / count,
      batches: load.batches / count,
      walKb: load.walBytes / count / 1000,
      storedKb: load.bytes / count / 1000,
    };
  });
}

/**
 * Measures how long transactions hold the lock on the slots of lanes. In the whole database, only one transaction can
 * hold it at a time.
 */
async function watchClaims<T>(
  work: () => Promise<T>,
): Promise<{ claims: { ms: number; count: number }; load: T }> {
  const claims = { ms: 0, count: 0 };
  const original = PostgresDatabase.prototype.transact;
  PostgresDatabase.prototype.transact = async function <R>(
    this: PostgresDatabase,
    ...args: Parameters<typeof original<R>>
  ): Promise<R> {
    const [actor, script, options] = args;
    let lockedAt: number | null = null;
    const watched = (sql: Sql) =>
      script(async (text, values) => {
        const rows = await sql<never>(text, values);
        if (text === lockText) lockedAt = performance.now();
        return rows;
      });
    const result = await (original<R>).call(this, actor, watched, options);
    if (lockedAt === null) return result;
    claims.ms += performance.now() - lockedAt;
    claims.count += 1;
    return result;
  };
  try {
    return { load: await work(), claims };
  } finally {
    PostgresDatabase.prototype.transact = original;
  }
}
