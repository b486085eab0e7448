// Runs before each test file. Makes its properties use the run's seed and the requested number of random cases.
import fc from "fast-check";
import { repetitions } from "./repetitions.ts";
import { runSeed } from "./run-seed.ts";

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: runSeed, numRuns: repetitions.propertyCases });
