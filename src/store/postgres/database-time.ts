import type { Clock } from "../../core/clock.ts";
import type { PostgresDatabase } from "./database.ts";

/**
 * After a start of the server, runs are taken over only after this multiple of `patienceMs`, because other processes
 * need longer to reconnect and renew their leases.
 */
const startFactor = 15 / 8;
const measureEveryMs = 2000;
/** A measurement that takes longer is imprecise, and the database might have been unreachable. */
const longestAnswerMs = 1000;
/** After this time, a measurement no longer proves that the database answers. */
const measurementValidMs = 3 * measureEveryMs;

/**
 * The time of the database, so that leases do not depend on the clocks of the machines. It is measured every few
 * seconds and extrapolated in between.
 */
export class DatabaseTime implements Clock {
  readonly #database: PostgresDatabase;
  readonly #patienceMs: number;
  /** The database's time minus `performance.now()`. */
  #offset = Date.now() - performance.now();
  #serverStart = 0;
  #measuredAt = Number.NEGATIVE_INFINITY;
  /** When the database began to answer every measurement. `null` if the last one failed. */
  #answersSince: number | null = null;
  #last = 0;

  /** `patienceMs` is how long the database must have been answering before runs of other processes are taken over. */
  constructor(database: PostgresDatabase, patienceMs: number) {
    this.#database = database;
    this.#patienceMs = patienceMs;
  }

  /** Never decreases. */
  now(): number {
    this.#last = Math.max(this.#last, Math.round(performance.now() + this.#offset));
    return this.#last;
  }

  /**
   * Whether silent processes can be assumed dead. `false` while these processes might only have lost their connection
   * to the database. This is assumed while this process has no connection, and for a while after a restart of the
   * server.
   */
  canTakeOver(): boolean {
    const now = performance.now();
    if (this.#answersSince === null || now - this.#measuredAt > measurementValidMs) return false;
    if (now - this.#answersSince < this.#patienceMs) return false;
    return this.now() - this.#serverStart >= startFactor * this.#patienceMs;
  }

  /** Measures again if the last measurement is old. Throws if the database does not answer. */
  async measure(): Promise<void> {
    const before = performance.now();
    if (before - this.#measuredAt < measureEveryMs) return;
    try {
      const [row] = await this.#database.read<{ now: number; started: number }>(
        null,
        `SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS now,
           extract(epoch FROM pg_postmaster_start_time())::float8 * 1000 AS started`,
      );
      const after = performance.now();
      const isQuick = after - before <= longestAnswerMs;
      if (isQuick || this.#serverStart === 0) this.#offset = Number(row?.now) - (before + after) / 2;
      if (!isQuick) this.#answersSince = after;
      this.#answersSince ??= after;
      this.#serverStart = Number(row?.started);
      this.#measuredAt = after;
    } catch (error) {
      this.#answersSince = null;
      throw error;
    }
  }
}
