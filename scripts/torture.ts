// npm run torture: the suites that kill, cut and compare, for longer than a test run may take.
import { spawnSync } from "node:child_process";
import { root } from "./steps.ts";

const [rounds = "1000", runs = "2000"] = process.argv.slice(2);
console.log(
  `${rounds} rounds of kill -9 of writers and of families, ${runs} runs of each comparison with the memory store,`,
);
console.log("a turn killed at every one of its durable acts, a gateway killed 100 times under 100 clients,");
console.log(
  "1000 spawns of ACP agents that are killed, 200 under a gateway that is, an hour of visitors at a gateway, and 20000 transcripts for each provider",
);
const env = {
  ...process.env,
  SKEIN_CRASH_ROUNDS: rounds,
  SKEIN_FAMILY_ROUNDS: rounds,
  SKEIN_DIFFERENTIAL_RUNS: runs,
  SKEIN_KILL_POINTS: "all",
  SKEIN_GATEWAY_ROUNDS: "100",
  SKEIN_ACP_SPAWNS: "1000",
  SKEIN_ACP_GATEWAY_SPAWNS: "200",
  SKEIN_SOAK_SECONDS: "3600",
  SKEIN_TRANSCRIPT_RUNS: "20000",
};
const suites = ["run", "test/crash", "test/contract", "test/soak", "test/transcript"];
const { status } = spawnSync("vitest", suites, { cwd: root, env, stdio: "inherit" });
process.exitCode = status ?? 1;
