import { present } from "../../core/present.ts";
import type { SchedulePayload } from "../../protocol/schedules.ts";
import type { ScheduleInfo } from "../../sessions/schedules.ts";
import { maskFor } from "../auth/mask.ts";
import { acceptedPayload } from "./chat.ts";
import type { Call, HandlersOf, MethodApp } from "./dispatch.ts";

type Method = "schedules.list" | "schedules.run" | "schedules.pause" | "schedules.resume";

/** Methods for schedules. */
export function scheduleHandlers(app: MethodApp): HandlersOf<Method> {
  const { skein } = app;
  return {
    "schedules.list": async ({ allUsers }, call) => {
      const schedules = await skein.schedules.list(allUsers === true ? undefined : call.userId);
      return { count: schedules.length, schedules: schedules.map((each) => payloadOf(app, call, each)) };
    },
    "schedules.run": async ({ name, idempotencyKey }, { userId }) =>
      acceptedPayload(app, await skein.schedules.run(name, { idempotencyKey }, userId)),
    "schedules.pause": async ({ name }, call) =>
      payloadOf(app, call, await skein.schedules.pause(name, call.userId)),
    "schedules.resume": async ({ name }, call) =>
      payloadOf(app, call, await skein.schedules.resume(name, call.userId)),
  };
}

function payloadOf(
  app: MethodApp,
  call: Call,
  { userId, deliverTo, pausedAt, nextAt, lastRun, message, ...rest }: ScheduleInfo,
): SchedulePayload {
  return {
    ...rest,
    message: maskFor(app, call).text(message),
    ...present({
      userId,
      pausedAt,
      nextAt,
      deliverTo: deliverTo === null ? null : { ...deliverTo },
      lastRun: lastRun === null ? null : { ...lastRun },
    }),
  };
}
