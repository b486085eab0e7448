import { codeOf } from "../core/errors.ts";
import type { App } from "./app.ts";
import type { Schedule, ScheduleApp } from "./schedules.ts";
import { acceptScheduled, configuredSchedules } from "./schedules.ts";

type TimerApp = ScheduleApp & Pick<App, "log" | "report" | "worker">;

/**
 * How often the clock is compared with the next due times. A timer set for a due time would fire at the wrong time
 * after the clock is changed or the machine is suspended, and timers cannot run longer than 24 days.
 */
const tickMs = 500;
/** After an error, the next attempt is made this many ticks later. */
const ticksAfterError = 10;
/** A due time is missed if no process starts its run within this time. */
const missedAfterMs = 60_000;

/** A schedule in this process. */
interface Job {
  readonly schedule: Schedule;
  /** When this process started watching the schedule, or when the clock was last set back. */
  since: number;
  /** The time at the last tick. */
  seenAt: number;
  /** When the job is due next, or `null` if never. */
  nextAt: number | null;
  /** The number of ticks until the next attempt after an error, otherwise 0. */
  pause: number;
}

/** Starts the runs of the schedules that are due. */
export class ScheduleTimer {
  readonly #app: TimerApp;
  #jobs: readonly Job[] = [];
  #timer: NodeJS.Timeout | undefined;
  #checking: Promise<void> | null = null;

  constructor(app: TimerApp) {
    this.#app = app;
  }

  /** Starts the timer. The first check also handles due times that passed while no process was running. */
  start(): void {
    const now = this.#app.clock.now();
    this.#jobs = configuredSchedules(this.#app).map((schedule) => ({
      ...{ schedule, since: now, seenAt: now, nextAt: now, pause: 0 },
    }));
    if (this.#jobs.length === 0) return;
    this.#timer = setInterval(() => this.#tick(), tickMs).unref();
    this.#tick();
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#checking;
  }

  #tick(): void {
    // A closing process starts no runs. The next process handles the due times.
    if (this.#checking !== null || this.#app.worker.isClosing) return;
    const due = this.#jobs.filter((job) => this.#isDue(job));
    if (due.length === 0) return;
    this.#checking = this.#checkAll(due).finally(() => {
      this.#checking = null;
    });
  }

  #isDue(job: Job): boolean {
    const now = this.#app.clock.now();
    // The clock was set back. The check also finds out whether the clock was ahead when due times were settled.
    if (now < job.seenAt) job.since = job.nextAt = now;
    job.seenAt = now;
    if (job.pause > 1) {
      job.pause--;
      return false;
    }
    return job.nextAt !== null && now >= job.nextAt;
  }

  async #checkAll(jobs: readonly Job[]): Promise<void> {
    for (const job of jobs) {
      const now = this.#app.clock.now();
      try {
        await this.#check(job, now);
        job.nextAt = job.schedule.due.nextAfter(now);
        job.pause = 0;
      } catch (error) {
        // A persistent failure is reported once.
        if (job.pause === 0) this.#app.report(error);
        job.pause = ticksAfterError;
      }
    }
  }

  async #check(job: Job, now: number): Promise<void> {
    const { log, runs } = this.#app;
    const { id, pattern, due, settings } = job.schedule;
    const dueAt = due.lastAt(now);
    const state = await runs.noteSchedule(id, { pattern, since: job.since });
    const { settledUntil, pausedAt, wasAhead } = state;
    if (wasAhead)
      log.write("warn", "schedule continued: a clock was ahead when it last ran", { schedule: id.name });
    if (dueAt === null || dueAt <= settledUntil || pausedAt !== null) return;
    const about = { schedule: id.name, dueAt: new Date(dueAt).toISOString() };
    if (now - dueAt > missedAfterMs && settings.missed === "skip") {
      if (await runs.settleSchedule(id, { dueAt, runId: null }))
        log.write("warn", "schedule skipped: no process started its run within a minute", about);
      return;
    }
    const runId = await this.#accept(job.schedule, dueAt);
    if (await runs.settleSchedule(id, { dueAt, runId }))
      log.write("info", "schedule run", { ...about, runId });
  }

  /**
   * Returns `null` if a process with a different configuration has already accepted a different message for the due
   * time.
   */
  async #accept(schedule: Schedule, dueAt: number): Promise<string | null> {
    try {
      return (await acceptScheduled(this.#app, schedule, new Date(dueAt).toISOString())).run.runId;
    } catch (error) {
      if (codeOf(error) !== "idempotency_conflict") throw error;
      return null;
    }
  }
}
