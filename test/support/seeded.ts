// Before each test file: its properties follow the seed of the run, and try as many random cases as the run asks for.
import fc from "fast-check";
import { repetitions } from "./repetitions.ts";
import { runSeed } from "./run-seed.ts";

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: runSeed, numRuns: repetitions.propertyCases });
