import {
  cronPattern,
  describeCronProblem,
  isCronExpression,
  isTimeZone,
  timeZonePattern,
} from "../../core/due-times.ts";
import * as s from "../../core/schema.ts";
import { agentIdKind, choice, optional, orNone, text, textLike } from "../settings/kinds.ts";
import type { Setting, ValueKind } from "../settings/setting.ts";
import { group, setting, table } from "../settings/setting.ts";
import { keysLike } from "./tables.ts";

/** Text that matches a pattern and passes a check that JSON Schema cannot express. */
function checkedText(
  expected: string,
  pattern: string,
  isValid: (text: string) => boolean,
): ValueKind<string> {
  return {
    expected,
    schema: s.string({ pattern }),
    read: (written) => (typeof written === "string" && isValid(written) ? { value: written } : null),
    write: (value) => value,
  };
}

const required = <T>(about: string, kind: ValueKind<T>): Setting<T> => ({ node: "setting", about, kind });

const expression: ValueKind<string> = {
  ...checkedText(
    'a cron expression with five fields such as "0 9 * * 1-5", or @hourly, @daily, @weekly, @monthly or @yearly',
    cronPattern,
    isCronExpression,
  ),
  explain: (written) => {
    const needed = typeof written === "string" ? describeCronProblem(written) : null;
    return needed === null ? null : `a cron expression with ${needed}`;
  },
};

const deliverTo = group(
  "Where the reply is sent. If absent, the reply stays in the session.",
  {
    channel: optional("The name of a channel. `null` means no delivery.", text, "no delivery"),
    to: optional("The peer, group or room on the channel.", text, "the channel's default"),
    accountId: optional("The account on the channel.", text, "the default account"),
    threadId: optional("The thread on the channel.", text, "no thread"),
  },
  { oneOf: ["channel"] },
);

const schedule = group("A message that an agent receives at certain times.", {
  cron: required(
    "When the message is sent: minute, hour, day of the month, month and day of the week.",
    expression,
  ),
  timezone: setting(
    "The time zone of `cron`, for example `Europe/Berlin`.",
    checkedText('a time zone such as "Europe/Berlin" or "UTC"', timeZonePattern, isTimeZone),
    "UTC",
  ),
  agent: setting(
    "The agent that receives the message. `null` means the default agent.",
    orNone(agentIdKind, "the default agent"),
    null,
  ),
  message: required("The message.", textLike("\\S", "text that is not blank")),
  session: setting(
    "The session that receives the message: a new one for every run (`isolated`), one for all runs of this schedule (`job`), or the agent's `main` session.",
    choice("isolated", "job", "main"),
    "isolated",
  ),
  missed: setting(
    "What to do about due times at which no process was running: nothing (`skip`), or send the message when a process starts, but only once even if several due times were missed (`once`).",
    choice("skip", "once"),
    "skip",
  ),
  user: optional(
    "The user that the sessions belong to. `null` means the unnamed user.",
    text,
    "the unnamed user",
  ),
  deliverTo,
});

export const schedules = table(
  "Messages to agents at certain times, by a name that is part of the session key `agent:<agentId>:cron:<name>`.",
  keysLike(
    "<schedule>",
    "a schedule name: up to 64 letters, digits, dots, hyphens and underscores",
    "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
  ),
  schedule,
);
