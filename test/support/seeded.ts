// Before each test file: its properties use the seed of the run, and as many random cases as the run requests.
import fc from "fast-check";
import { repetitions } from "./repetitions.ts";
import { runSeed } from "./run-seed.ts";

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: runSeed, numRuns: repetitions.propertyCases });
