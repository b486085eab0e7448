import type { Config } from "../config/sections/all.ts";
import type { DueTimes } from "../core/due-times.ts";
import { dueTimes } from "../core/due-times.ts";
import { SkeinError } from "../core/errors.ts";
import { formatKey } from "../core/keys.ts";
import { present } from "../core/present.ts";
import type { Accepted, DeliveryTarget, Run, ScheduleId, ScheduleState } from "../runs/contract.ts";
import { runIdOf } from "../runs/ledger/run-ledger.ts";
import { acceptInput } from "./accept.ts";
import type { App } from "./app.ts";
import { resolveSessionTarget } from "./resolve-context.ts";

/** A schedule from the configuration. */
export interface Schedule {
  readonly id: ScheduleId;
  readonly agentId: string;
  readonly settings: Config["schedules"][string];
  readonly due: DueTimes;
  /** Changes whenever the due times change. */
  readonly pattern: string;
}

export function configuredSchedules({ config, agents }: Pick<App, "config" | "agents">): Schedule[] {
  return Object.entries(config.schedules).map(([name, settings]) => {
    const { cron, timezone, user, agent } = settings;
    return {
      id: { userId: user, name },
      agentId: agent ?? agents.first,
      settings,
      due: dueTimes(cron, timezone),
      pattern: `${cron} ${timezone}`,
    };
  });
}

export type ScheduleApp = Pick<
  App,
  "store" | "runs" | "agents" | "acp" | "models" | "config" | "spaces" | "files" | "clock"
>;

/**
 * Accepts the schedule's message. A repeated request returns the same run in any process, so each due time starts at
 * most one run.
 */
export function acceptScheduled(
  app: ScheduleApp,
  { id: { userId, name }, agentId, settings }: Schedule,
  request: string,
): Promise<Accepted> {
  const idempotencyKey = `schedule:${name}:${request}`;
  const runId = runIdOf(userId, idempotencyKey);
  const { session, message, deliverTo } = settings;
  const sessionKey =
    session === "main"
      ? undefined
      : formatKey({ form: "cron", agentId, job: name, ...(session === "isolated" ? { runId } : {}) });
  const target = resolveSessionTarget(app, { userId, agentId, ...present({ sessionKey }) });
  return acceptInput(app, target, {
    kind: "cron",
    runId,
    idempotencyKey,
    content: message,
    options: present({ deliverTo: deliveryOf(deliverTo) }),
    // The message was not typed by a person, so it does not postpone the reset of an idle session.
    provenance: { kind: "internal_system" },
  });
}

function deliveryOf({ channel, ...rest }: Schedule["settings"]["deliverTo"]): DeliveryTarget | null {
  return channel === null ? null : { channel, ...present(rest) };
}

/** A schedule with its next due time and its last run. */
export interface ScheduleInfo {
  readonly name: string;
  /** `null` for the unnamed user. */
  readonly userId: string | null;
  readonly agentId: string;
  readonly cron: string;
  readonly timezone: string;
  readonly message: string;
  readonly session: "isolated" | "job" | "main";
  readonly missed: "skip" | "once";
  /** `null` if the reply stays in the session. */
  readonly deliverTo: DeliveryTarget | null;
  /** `null` if the schedule is not paused. */
  readonly pausedAt: number | null;
  /** When the schedule is due next. `null` if it is paused or will never be due again. */
  readonly nextAt: number | null;
  /** `null` before the first run. */
  readonly lastRun: LastScheduledRun | null;
}

/** A schedule's last run, whether it was due or requested. */
export interface LastScheduledRun extends Partial<Pick<Run, "state">> {
  readonly runId: string;
  readonly at: number;
  /** Absent, like the state, once the run has been deleted. */
  readonly sessionKey?: string;
}

/**
 * Lists, runs, pauses and resumes the configured schedules. Every method takes an optional `userId`. If it is set,
 * other users' schedules are not found.
 *
 * @example
 * ```ts
 * import type { ScheduleService } from "skein";
 * async function pauseAll(schedules: ScheduleService) {
 *   for (const { name } of await schedules.list()) await schedules.pause(name);
 * }
 * ```
 */
export class ScheduleService {
  readonly #app: ScheduleApp & Pick<App, "closed" | "newId">;

  constructor(app: ScheduleApp & Pick<App, "closed" | "newId">) {
    this.#app = app;
  }

  /** Lists schedules in the order of the configuration. */
  async list(userId?: string | null): Promise<readonly ScheduleInfo[]> {
    this.#app.closed.throwIfAborted();
    const schedules = configuredSchedules(this.#app).filter(
      ({ id }) => userId === undefined || id.userId === userId,
    );
    const states = await this.#app.runs.schedules(schedules.map(({ id }) => id));
    return Promise.all(schedules.map((each, index) => this.#describe(each, states[index] ?? null)));
  }

  /**
   * Sends the message now, even if the schedule is paused. Later due times are not affected. A second call with the
   * same idempotency key returns the same run. Throws `not_found`.
   */
  async run(
    name: string,
    { idempotencyKey = this.#app.newId() }: { readonly idempotencyKey?: string } = {},
    userId?: string | null,
  ): Promise<Run> {
    const schedule = this.#find(name, userId);
    const { run, isNew } = await acceptScheduled(this.#app, schedule, `run:${idempotencyKey}`);
    if (isNew) await this.#app.runs.recordScheduledRun(schedule.id, run.runId);
    return run;
  }

  /** Pauses the schedule in all processes until it is resumed, even across restarts. Throws `not_found`. */
  pause(name: string, userId?: string | null): Promise<ScheduleInfo> {
    return this.#setPaused(name, true, userId);
  }

  /** Continues with the next due time. Due times that passed during the pause are skipped. Throws `not_found`. */
  resume(name: string, userId?: string | null): Promise<ScheduleInfo> {
    return this.#setPaused(name, false, userId);
  }

  async #setPaused(name: string, isPaused: boolean, userId?: string | null): Promise<ScheduleInfo> {
    const schedule = this.#find(name, userId);
    return this.#describe(schedule, await this.#app.runs.pauseSchedule(schedule.id, isPaused));
  }

  #find(name: string, userId?: string | null): Schedule {
    this.#app.closed.throwIfAborted();
    const found = configuredSchedules(this.#app).find(
      ({ id }) => id.name === name && (userId === undefined || id.userId === userId),
    );
    if (found !== undefined) return found;
    const advice =
      "List the schedules with skein schedules ls, or add it under schedules in the configuration";
    throw new SkeinError("not_found", { what: "Schedule", name, advice });
  }

  async #describe(
    { id, agentId, settings, due }: Schedule,
    state: ScheduleState | null,
  ): Promise<ScheduleInfo> {
    const { cron, timezone, message, session, missed, deliverTo } = settings;
    const pausedAt = state?.pausedAt ?? null;
    return {
      ...id,
      ...{ agentId, cron, timezone, message, session, missed, deliverTo: deliveryOf(deliverTo), pausedAt },
      nextAt: pausedAt === null ? due.nextAfter(this.#app.clock.now()) : null,
      lastRun: state === null ? null : await this.#lastRun(state),
    };
  }

  async #lastRun({ lastRunId, lastRunAt }: ScheduleState): Promise<LastScheduledRun | null> {
    if (lastRunId === null || lastRunAt === null) return null;
    const run = await this.#app.runs.get(lastRunId);
    const more = run === null ? {} : { state: run.state, sessionKey: run.session.key };
    return { runId: lastRunId, at: lastRunAt, ...more };
  }
}
