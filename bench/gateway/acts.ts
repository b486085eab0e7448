import type { Acts } from "../side.ts";

/** The gateway. Each act has its own server. */
export const acts: Acts = {
  ask: async (job) => (await import("./asking.ts")).ask(job),
  hear: async (job) => (await import("./hearing.ts")).hear(job),
  ready: async (job) => (await import("./starting.ts")).ready(job),
};
