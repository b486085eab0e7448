// Before each test file: the properties in it follow the seed of the run, unless one is given its own.
import fc from "fast-check";
import { runSeed } from "./run-seed.ts";

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: runSeed });
