import { Chance } from "../transcript/random.ts";

/** The one number that every chance of a test run follows; `vitest.config.ts` sets it where SKEIN_SEED does not. */
export const runSeed = Number(process.env.SKEIN_SEED ?? 0);

/** How to have a failure again. */
export const seedTold = `SKEIN_SEED=${runSeed}`;

/** The same numbers for the same seed. */
export function runChance(): Chance {
  return new Chance(runSeed);
}
