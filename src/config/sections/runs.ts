import { choice, numberBetween, orNone, wholeNumber } from "../settings/kinds.ts";
import type { Setting } from "../settings/setting.ts";
import { group, setting } from "../settings/setting.ts";

const number = (about: string, fallback: number, least: number, most: number): Setting<number> =>
  setting(about, wholeNumber(least, most), fallback);

const queueMode = setting(
  "What happens to input while a turn runs: add it to that turn (steer), run it next (followup), or abort the turn and run it (interrupt).",
  choice("steer", "followup", "interrupt"),
  "steer",
);

export const queue = group("Input that arrives while a turn runs.", { mode: queueMode });

const lane = (whose: string, fallback: number) =>
  number(`Maximum number of concurrent runs of ${whose}, over all sessions.`, fallback, 1, 1000);

const laneFields = {
  main: lane("people and channels", 4),
  subagent: lane("sub-agents", 8),
  cron: lane("scheduled jobs", 1),
  nested: lane("messages between sessions", 8),
};

export const lanes = group(
  "How many runs execute at once; runs that wait or sleep do not count.",
  laneFields,
);

export const budget = group("Limits of one request and everything that it starts.", {
  hops: number("Maximum length of a chain of sessions that pass a request on.", 8, 0, 1000),
  runs: number("Maximum number of runs that it starts.", 100, 1, 1_000_000),
  tokens: setting("Maximum number of tokens; null: no limit.", orNone(wholeNumber(1), "no limit"), null),
  costUsd: setting(
    "Maximum cost in dollars, as far as prices are known; null: no limit.",
    orNone(numberBetween(0, 1_000_000), "no limit"),
    null,
  ),
});

export const approvals = group("Approvals of tool calls.", {
  timeoutSeconds: number("Seconds after which an unanswered approval is denied.", 120, 1, 2_592_000),
});

export const retries = group("What happens when a request to a provider fails.", {
  max: number("Maximum number of retries after a rate limit, a server error or a network error.", 3, 0, 20),
  stallSeconds: number("Seconds of silence after which a stream counts as failed.", 120, 1, 86_400),
});

export const yielding = group("Runs that sleep until others have ended.", {
  timeoutMinutes: number(
    "Minutes after which a sleeping run is woken, even if something is still open.",
    60,
    1,
    525_600,
  ),
});
