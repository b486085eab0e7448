import { readFileSync } from "node:fs";
import type { RowResult } from "../../bench/results.ts";

/** What a day consists of. These values are assumptions. Everything that concerns Skein itself is measured. */
export const day = {
  sessions: 1_000_000,
  turnsPerSession: 5,
  /** The busiest moment of the day has this many times the average rate. */
  peakFactor: 1.8,
  /**
   * The mean time for one answer of the model. A turn has two answers: the first calls two tools, and the second is the
   * reply.
   */
  thinkMs: 4000,
  modelCalls: 2,
  toolMs: 500,
  /** Mean time until the user writes again. */
  pauseMs: 30_000,
  /** The number of pieces in which a model sends the answers of a turn. Each piece is an event. */
  deltasPerTurn: 60,
  /** Share of turns with an image, and its size. */
  imageShare: 0.02,
  imageKb: 300,
} as const;

/** One deployment, which stays the same while the load grows. */
export const deployment = {
  processes: 16,
  /** `lanes.main`, which limits the runs of all processes together. */
  lanes: 1500,
  databaseCores: 32,
  connectionsPerProcess: 10,
} as const;

/** In US dollars, without discounts. They are round numbers near those of large cloud providers. */
export const prices = {
  /** One server with 32 cores, without a standby. */
  databaseHour: 2,
  machines: 4,
  /** One machine with four cores. */
  machineHour: 0.2,
  gigabyteMonth: 0.1,
  /** How long sessions are kept. */
  keptDays: 30,
} as const;

/** Measured by `npm run bench`, per turn unless the name says otherwise. */
export interface ServiceTimes {
  readonly processCpuMs: number;
  readonly databaseCpuMs: number;
  /** How long a transaction holds the lock that counts the slots of all lanes. */
  readonly slotLockMs: number;
  readonly transactions: number;
  readonly entries: number;
  readonly insertedRows: number;
  readonly storedKb: number;
  readonly walKb: number;
  /** Events without the pieces of answers. */
  readonly events: number;
  readonly eventCpuMs: number;
  readonly eventDatabaseCpuMs: number;
  /** The CPU time of the database for one read of the feed by a process. */
  readonly feedReadCpuMs: number;
}

/** The maximum number of times per second that a process reads the feed, and that it notifies the others. */
export const looksPerSecond = 50;

const resultsFolder = new URL("../../bench/results/", import.meta.url);

/** Reads the service times from the results that the benchmark saved. */
export function readServiceTimes(): ServiceTimes {
  const crowded = figuresOf("postgres-turn", "16 sessions at once");
  const alone = figuresOf("postgres-turn", "one session at a time");
  const feed = figuresOf("postgres-feed", "answers as they are written");
  return {
    processCpuMs: crowded("workerCpuMs"),
    databaseCpuMs: crowded("databaseCpuMs"),
    slotLockMs: alone("claimMs"),
    transactions: crowded("transactions"),
    entries: crowded("entries"),
    insertedRows: crowded("insertedRows"),
    storedKb: crowded("storedKb"),
    walKb: crowded("walKb"),
    events: crowded("events"),
    eventCpuMs: feed("usCpuSent") / 1000,
    eventDatabaseCpuMs: feed("usDatabaseCpu") / 1000,
    // A batch is written once and was read once in the measurement.
    feedReadCpuMs: feed("usDatabaseCpu") / 1000 / (2 * feed("batchesPerEvent")),
  };
}

function figuresOf(row: string, name: string): (figure: string) => number {
  const text = readFileSync(new URL(`${row}.json`, resultsFolder), "utf8");
  const { points } = JSON.parse(text) as RowResult;
  const point = points.find((each) => each.case === name && each.side === "skein (PostgreSQL)");
  return (figure) => {
    const value = point?.figures[figure]?.median;
    if (value !== undefined) return value;
    throw new Error(`bench/results/${row}.json has no ${figure}; run: npm run bench -- ${row} --save`);
  };
}
