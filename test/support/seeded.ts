// Before each test file: its properties follow the seed of the run, and try as many random cases as the run asks for.
import fc from "fast-check";
import { runSeed } from "./run-seed.ts";

/** `npm run torture` sets more. */
const numRuns = Number(process.env.SKEIN_PROPERTY_RUNS ?? 200);

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: runSeed, numRuns });
