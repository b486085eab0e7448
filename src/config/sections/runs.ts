import { choice, numberBetween, orNone, wholeNumber } from "../settings/kinds.ts";
import type { Group, Setting } from "../settings/setting.ts";

/** How runs wait, how many go at once, and where they end. */

const number = (about: string, fallback: number, least: number, most: number): Setting<number> => ({
  node: "setting",
  about,
  kind: wholeNumber(least, most),
  fallback: () => fallback,
});

const queueMode: Setting<"steer" | "followup" | "interrupt"> = {
  node: "setting",
  about:
    "What becomes of input while a turn runs: into that turn (steer), the next turn (followup), or instead of it (interrupt).",
  kind: choice("steer", "followup", "interrupt"),
  fallback: () => "steer",
};

export const queue = {
  node: "group",
  about: "Input that comes while a turn runs.",
  fields: { mode: queueMode },
} satisfies Group;

const lane = (whose: string, fallback: number) =>
  number(`How many runs of ${whose} go at once, over all sessions.`, fallback, 1, 1000);

const laneFields = {
  main: lane("people and channels", 4),
  subagent: lane("sub-agents", 8),
  cron: lane("jobs by the clock", 1),
  nested: lane("messages between sessions", 8),
};

export const lanes = {
  node: "group",
  about: "How many runs go at once; those that wait or sleep do not count.",
  fields: laneFields,
} satisfies Group;

export const budget = {
  node: "group",
  about: "What one request and all that it sets off may come to.",
  fields: {
    hops: number("How many sessions a request may be handed on through, one behind the other.", 8, 0, 1000),
    runs: number("How many runs it may set off.", 100, 1, 1_000_000),
    tokens: {
      node: "setting",
      about: "How many tokens it may use; null: no limit.",
      kind: orNone(wholeNumber(1), "no limit"),
      fallback: () => null,
    } as Setting<number | null>,
    costUsd: {
      node: "setting",
      about: "How many dollars it may cost, as far as prices are known; null: no limit.",
      kind: orNone(numberBetween(0, 1_000_000), "no limit"),
      fallback: () => null,
    } as Setting<number | null>,
  },
} satisfies Group;

export const approvals = {
  node: "group",
  about: "Tools that ask before they are used.",
  fields: {
    timeoutSeconds: number("After so many seconds without an answer it is a no.", 120, 1, 2_592_000),
  },
} satisfies Group;

export const retries = {
  node: "group",
  about: "What happens when a provider does not answer well.",
  fields: {
    max: number(
      "How often a model is asked again after a limit, a fault of its server or network.",
      3,
      0,
      20,
    ),
    stallSeconds: number("A stream that is silent for so many seconds has failed.", 120, 1, 86_400),
  },
} satisfies Group;

export const yielding = {
  node: "group",
  about: "Runs that sleep until others have ended.",
  fields: {
    timeoutMinutes: number(
      "After so many minutes a sleeping run is woken, whatever is still open.",
      60,
      1,
      525_600,
    ),
  },
} satisfies Group;
