import { Chance } from "../transcript/random.ts";

/** The seed for all randomness in a test run. `vitest.config.ts` sets it unless `SKEIN_SEED` is given. */
export const runSeed = Number(process.env.SKEIN_SEED ?? 0);

/** How to reproduce a failure. */
export const seedTold = `SKEIN_SEED=${runSeed}`;

/** The same seed produces the same numbers. */
export function runChance(): Chance {
  return new Chance(runSeed);
}
