import { choice, numberBetween, orNone, wholeNumber } from "../settings/kinds.ts";
import type { Setting } from "../settings/setting.ts";
import { group, setting } from "../settings/setting.ts";

/** How runs wait, how many go at once, and where they end. */

const number = (about: string, fallback: number, least: number, most: number): Setting<number> =>
  setting(about, wholeNumber(least, most), fallback);

const queueMode = setting(
  "What becomes of input while a turn runs: into that turn (steer), the next turn (followup), or instead of it (interrupt).",
  choice("steer", "followup", "interrupt"),
  "steer",
);

export const queue = group("Input that comes while a turn runs.", { mode: queueMode });

const lane = (whose: string, fallback: number) =>
  number(`How many runs of ${whose} go at once, over all sessions.`, fallback, 1, 1000);

const laneFields = {
  main: lane("people and channels", 4),
  subagent: lane("sub-agents", 8),
  cron: lane("jobs by the clock", 1),
  nested: lane("messages between sessions", 8),
};

export const lanes = group("How many runs go at once; those that wait or sleep do not count.", laneFields);

export const budget = group("What one request and all that it sets off may come to.", {
  hops: number("How many sessions a request may be handed on through, one behind the other.", 8, 0, 1000),
  runs: number("How many runs it may set off.", 100, 1, 1_000_000),
  tokens: setting("How many tokens it may use; null: no limit.", orNone(wholeNumber(1), "no limit"), null),
  costUsd: setting(
    "How many dollars it may cost, as far as prices are known; null: no limit.",
    orNone(numberBetween(0, 1_000_000), "no limit"),
    null,
  ),
});

export const approvals = group("Tools that ask before they are used.", {
  timeoutSeconds: number("After so many seconds without an answer it is a no.", 120, 1, 2_592_000),
});

export const retries = group("What happens when a provider does not answer well.", {
  max: number("How often a model is asked again after a limit, a fault of its server or network.", 3, 0, 20),
  stallSeconds: number("A stream that is silent for so many seconds has failed.", 120, 1, 86_400),
});

export const yielding = group("Runs that sleep until others have ended.", {
  timeoutMinutes: number(
    "After so many minutes a sleeping run is woken, whatever is still open.",
    60,
    1,
    525_600,
  ),
});
