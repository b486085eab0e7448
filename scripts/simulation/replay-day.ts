import { seeded } from "../../bench/texts.ts";
import type { ServiceTimes } from "./assumptions.ts";
import { day, deployment, looksPerSecond } from "./assumptions.ts";
import { exponential, percentiles, Station, Timeline } from "./stations.ts";

/** Replays a day: sessions arrive along a daily curve, and their turns pass through every queue of a deployment. */

export interface ReplayOptions {
  /** Multiplies the number of sessions. */
  readonly load: number;
  readonly seed: number;
  /**
   * How long the replayed day lasts. Sessions arrive at the same rate per second as on the real day, so a shorter day
   * has fewer sessions, but the same queues.
   */
  readonly dayMs: number;
}

export interface StationReport {
  readonly name: string;
  readonly servers: number;
  /** Between 0 and 1, in the busiest twenty-fourth of the day. */
  readonly peakUtilization: number;
  readonly p50WaitMs: number;
  readonly p99WaitMs: number;
}

export interface DayReport {
  readonly load: number;
  readonly turns: number;
  readonly peakTurnsPerSecond: number;
  /** From an accepted message to the start of its run. */
  readonly p50StartMs: number;
  readonly p99StartMs: number;
  readonly stations: readonly StationReport[];
}

const realDayMs = 86_400_000;
const hours = 24;
/** A turn uses a process and the database when it is accepted, around each answer of the model, and at its end. */
const visits = 2 + day.modelCalls;

export function replayDay(times: ServiceTimes, { load, seed, dayMs }: ReplayOptions): DayReport {
  return new Replay(times, load, seed, dayMs).run();
}

class Replay {
  readonly #times: ServiceTimes;
  readonly #load: number;
  readonly #dayMs: number;
  readonly #random: () => number;
  readonly #timeline = new Timeline();
  readonly #lanes: Station;
  readonly #slotLock: Station;
  readonly #processes: Station;
  readonly #database: Station;
  readonly #feed: Station;
  readonly #startsMs: number[] = [];
  readonly #acceptedPerPeriod: number[] = [];

  constructor(times: ServiceTimes, load: number, seed: number, dayMs: number) {
    this.#times = times;
    this.#load = load;
    this.#dayMs = dayMs;
    this.#random = seeded(seed);
    const station = (name: string, servers: number) =>
      new Station(this.#timeline, name, servers, dayMs / hours);
    this.#lanes = station("lanes", deployment.lanes);
    this.#slotLock = station("slot lock", 1);
    this.#processes = station("processes", deployment.processes);
    this.#database = station("database", coresForTurns(times));
    this.#feed = station("feed reader of a process", 1);
  }

  run(): DayReport {
    this.#arrive();
    this.#timeline.run(this.#dayMs);
    const { p50, p99 } = percentiles(this.#startsMs);
    const stations = [this.#lanes, this.#slotLock, this.#processes, this.#database, this.#feed];
    return {
      load: this.#load,
      turns: this.#acceptedPerPeriod.reduce((sum, count) => sum + count, 0),
      peakTurnsPerSecond: Math.max(...this.#acceptedPerPeriod) / (this.#dayMs / hours / 1000),
      p50StartMs: p50,
      p99StartMs: p99,
      stations: stations.map(reportStation),
    };
  }

  /** A Poisson process whose rate follows the day, by thinning one with the highest rate. */
  #arrive(): void {
    const peakPerMs = (this.#load * day.sessions * day.peakFactor) / realDayMs;
    this.#timeline.after(exponential(this.#random, 1 / peakPerMs), () => {
      const share = rateAt(this.#timeline.now / this.#dayMs) / day.peakFactor;
      if (this.#random() < share) this.#takeTurn();
      this.#arrive();
    });
  }

  #takeTurn(): void {
    const acceptedAt = this.#timeline.now;
    const period = Math.floor((acceptedAt / this.#dayMs) * hours);
    this.#acceptedPerPeriod[period] = (this.#acceptedPerPeriod[period] ?? 0) + 1;
    this.#visit(() =>
      this.#lanes.acquire((release) => {
        this.#slotLock.serve(this.#spread(this.#times.slotLockMs), () => {
          this.#startsMs.push(this.#timeline.now - acceptedAt);
          this.#answer(day.modelCalls, () => {
            release();
            this.#pause();
          });
        });
      }),
    );
  }

  /** Each answer but the last one calls tools. */
  #answer(calls: number, then: () => void): void {
    this.#timeline.after(this.#spread(day.thinkMs), () =>
      this.#visit(() => {
        if (calls > 1) this.#timeline.after(this.#spread(day.toolMs), () => this.#answer(calls - 1, then));
        else this.#visit(then);
      }),
    );
  }

  /** The number of turns of a session has a geometric distribution. */
  #pause(): void {
    if (this.#random() < 1 / day.turnsPerSession) return;
    this.#timeline.after(this.#spread(day.pauseMs), () => this.#takeTurn());
  }

  /** Computes in a process, writes to the database, and sends the events to every process. */
  #visit(then: () => void): void {
    const { processCpuMs, databaseCpuMs, events, eventCpuMs, eventDatabaseCpuMs } = this.#times;
    const sent = (events + day.deltasPerTurn) / visits;
    this.#feed.serve(sent * eventCpuMs, () => undefined);
    this.#database.serve(sent * eventDatabaseCpuMs, () => undefined);
    this.#processes.serve(this.#spread(processCpuMs / visits), () =>
      this.#database.serve(this.#spread(databaseCpuMs / visits), then),
    );
  }

  #spread(mean: number): number {
    return exponential(this.#random, mean);
  }
}

/** The cores of the database that are left if every process reads the feed as often as it can. */
export function coresForTurns({ feedReadCpuMs }: ServiceTimes): number {
  const { processes, databaseCores } = deployment;
  return databaseCores - Math.ceil((processes * looksPerSecond * feedReadCpuMs) / 1000);
}

/** The rate at a moment of the day (0 to 1), as a multiple of the average. It is highest in the middle. */
function rateAt(moment: number): number {
  return 1 - (day.peakFactor - 1) * Math.cos(2 * Math.PI * moment);
}

function reportStation(station: Station): StationReport {
  const { name, servers, waitsMs } = station;
  const { p50, p99 } = percentiles(waitsMs);
  return {
    name,
    servers,
    peakUtilization: station.peakUtilization(),
    p50WaitMs: p50,
    p99WaitMs: p99,
  };
}
