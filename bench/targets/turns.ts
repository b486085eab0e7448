import type { Target } from "../target.ts";
import { at, full, os } from "../target.ts";

const memory = "skein (memory)";
const addedTo = (side: string, what: string): Target => ({
  what,
  us: at("turn", "two calls", side, "addedBesideSyncMs"),
  against: at("turn", "two calls", "bare AI SDK loop"),
  goal: { kind: "at most", value: 3 },
});

export const turning: readonly Target[] = [
  {
    ...addedTo(full, "added to a turn with two calls, `full`, without the disk's own syncs"),
    headline: "added to a turn with two calls, without the disk's syncs",
  },
  addedTo(os, "… `os`"),
  addedTo(memory, "… in memory"),
  {
    what: "1,000 sessions at once, none lost",
    us: at("sessions-at-once", "1k", full, "lost"),
    goal: { kind: "at most", value: 0 },
  },
  {
    what: "… per turn, compared with 100",
    us: at("sessions-at-once", "1k", full, "turnMs"),
    against: at("sessions-at-once", "100", full, "turnMs"),
    goal: { kind: "within", times: 1.5 },
  },
];

export const spawning: readonly Target[] = [
  {
    what: "1,000 sub-agents spawned, run and announced, `full`",
    headline: "1,000 sub-agents spawned, run and announced",
    us: at("spawns", "1k", full),
    goal: { kind: "at most", value: 15_000 },
  },
  { what: "… `os`", us: at("spawns", "1k", os), goal: { kind: "at most", value: 15_000 } },
  {
    what: "… total memory",
    us: at("spawns", "1k", full, "peakMb"),
    goal: { kind: "at most", value: 600 },
  },
  { what: "… none lost", us: at("spawns", "1k", full, "lost"), goal: { kind: "at most", value: 0 } },
  {
    what: "… none announced twice",
    us: at("spawns", "1k", full, "twice"),
    goal: { kind: "at most", value: 0 },
  },
  {
    what: "… per sub-agent, compared with 100",
    us: at("spawns", "1k", full, "spawnMs"),
    against: at("spawns", "100", full, "spawnMs"),
    goal: { kind: "within", times: 1.5 },
  },
];
