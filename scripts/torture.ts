// npm run torture: the same tests with more rounds, more random cases and a seed of its own.
import { spawnSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { root } from "./steps.ts";

const [rounds = "1000", runs = "2000"] = process.argv.slice(2);
const env = {
  ...process.env,
  SKEIN_SEED: process.env.SKEIN_SEED ?? String(randomInt(10 ** 9)),
  SKEIN_CRASH_ROUNDS: rounds,
  SKEIN_FAMILY_ROUNDS: rounds,
  SKEIN_DIFFERENTIAL_RUNS: runs,
  SKEIN_PROPERTY_RUNS: "10000",
  SKEIN_KILL_POINTS: "all",
  SKEIN_GATEWAY_ROUNDS: "100",
  SKEIN_ACP_SPAWNS: "1000",
  SKEIN_ACP_GATEWAY_SPAWNS: "200",
  SKEIN_SOAK_SECONDS: "3600",
  SKEIN_TRANSCRIPT_RUNS: "20000",
};
console.log(
  `${rounds} kills of writers and of families, ${runs} comparisons with the memory store, 10000 cases of each property,`,
);
console.log("a turn killed at every durable act, a gateway killed 100 times under 100 clients,");
console.log("1000 spawns of ACP agents that are killed, 200 under a gateway that is killed,");
console.log("an hour of load on a gateway, and 20000 transcripts for each provider.");
console.log(`Repeat this run with SKEIN_SEED=${env.SKEIN_SEED} npm run torture`);
const suites = ["run", "src", "test/crash", "test/contract", "test/soak", "test/transcript"];
const { status } = spawnSync("vitest", suites, { cwd: root, env, stdio: "inherit" });
process.exitCode = status ?? 1;
