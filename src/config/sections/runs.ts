import { choice, numberBetween, orNone, wholeNumber } from "../settings/kinds.ts";
import type { Setting } from "../settings/setting.ts";
import { group, setting } from "../settings/setting.ts";

const number = (about: string, fallback: number, least: number, most: number): Setting<number> =>
  setting(about, wholeNumber(least, most), fallback);

const queueMode = setting(
  "What to do with input that arrives while a turn is running: add it to that turn (`steer`), run it next (`followup`), or abort the turn and run it (`interrupt`).",
  choice("steer", "followup", "interrupt"),
  "steer",
);

export const queue = group("Input that arrives while a turn is running.", { mode: queueMode });

const lane = (whose: string, fallback: number) =>
  number(`Maximum number of concurrent runs for ${whose}, across all sessions.`, fallback, 1, 1000);

const laneFields = {
  main: lane("people and channels", 4),
  subagent: lane("sub-agents", 8),
  cron: lane("scheduled jobs", 1),
  nested: lane("messages between sessions", 8),
  perProcess: setting(
    "Maximum number of runs that one process executes at the same time, across all lanes. `null` means no limit.",
    orNone(wholeNumber(1, 1000), "no limit"),
    null,
  ),
};

export const lanes = group(
  "How many runs execute concurrently. Waiting and sleeping runs are not counted. Processes that share a database share the lanes.",
  laneFields,
);

export const budget = group("Limits for one request and everything that it starts.", {
  hops: number(
    "Maximum number of times that a request may be passed on from one session to the next.",
    8,
    0,
    1000,
  ),
  runs: number("Maximum number of runs that a request may start.", 100, 1, 1_000_000),
  tokens: setting(
    "Maximum number of tokens that a request may use. `null` means no limit.",
    orNone(wholeNumber(1), "no limit"),
    null,
  ),
  costUsd: setting(
    "Maximum cost in dollars. Models without a known price are not counted. `null` means no limit.",
    orNone(numberBetween(0, 1_000_000), "no limit"),
    null,
  ),
});

export const approvals = group("Approvals for tool calls.", {
  timeoutSeconds: number("Seconds after which an unanswered approval request is denied.", 120, 1, 2_592_000),
});

export const retries = group("What happens when a request to a provider fails.", {
  max: number("Maximum number of retries after a rate limit, server error or network error.", 3, 0, 20),
  stallSeconds: number(
    "Seconds without data after which a response stream is treated as failed.",
    120,
    1,
    86_400,
  ),
});

export const yielding = group("Runs that sleep until other runs have ended.", {
  timeoutMinutes: number(
    "Minutes after which a sleeping run is woken, even if some of the runs it is waiting for have not ended.",
    60,
    1,
    525_600,
  ),
});
