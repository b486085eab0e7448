import * as s from "../core/schema.ts";
import { everyUser, idempotencyKey, user } from "./fields.ts";
import { method } from "./method.ts";
import { OutboxTargetSchema } from "./outbox.ts";
import { AcceptedSchema, optionalText, optionalTime, RunStateSchema } from "./runs.ts";

/** A configured schedule. `schedules.pause` and `schedules.resume` return the changed schedule. */
export const ScheduleSchema = s.closed({
  name: s.string(),
  userId: optionalText,
  agentId: s.string(),
  cron: s.string(),
  timezone: s.string(),
  message: s.string(),
  session: s.choice(["isolated", "job", "main"]),
  missed: s.choice(["skip", "once"]),
  deliverTo: s.optional(OutboxTargetSchema),
  /** Absent if the schedule is not paused. */
  pausedAt: optionalTime,
  /** The next due time. Absent while the schedule is paused. */
  nextAt: optionalTime,
  lastRun: s.optional(
    s.closed({
      runId: s.string(),
      at: s.integer(),
      /** Absent, like the session, once the run has been deleted. */
      state: s.optional(RunStateSchema),
      sessionKey: optionalText,
    }),
  ),
});
export type SchedulePayload = s.Static<typeof ScheduleSchema>;

/** `schedules.list`: in the order of the configuration. */
export const ScheduleListSchema = s.closed({ count: s.integer(), schedules: s.array(ScheduleSchema) });
export type ScheduleListPayload = s.Static<typeof ScheduleListSchema>;

const name = s.string({ minLength: 1, maxLength: 64 });

export const schedulesList = method({
  scope: "read",
  about: "Lists the configured schedules, with their next and last runs.",
  params: s.closed({ ...user, ...everyUser }),
  result: ScheduleListSchema,
  adminOnly: ["allUsers"],
  isIdempotent: true,
});

export const schedulesRun = method({
  scope: "write",
  about: "Sends a schedule's message now, even if the schedule is paused.",
  params: s.closed({ name, idempotencyKey, ...user }),
  result: AcceptedSchema,
  isIdempotent: true,
});

export const schedulesPause = method({
  scope: "write",
  about: "Stops a schedule in all processes until it is resumed.",
  params: s.closed({ name, ...user }),
  result: ScheduleSchema,
  isIdempotent: true,
});

export const schedulesResume = method({
  scope: "write",
  about: "Continues a paused schedule with its next due time.",
  params: s.closed({ name, ...user }),
  result: ScheduleSchema,
  isIdempotent: true,
});
