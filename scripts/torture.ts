// npm run torture: runs the tests in `npm test` with many more rounds, in parts of less than an hour each. `--list`
// lists the parts.
import { execFileSync, spawnSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { globSync } from "node:fs";
import { parseArgs } from "node:util";
import type { Repetitions } from "../test/support/repetitions.ts";
import { repetitionsFor } from "../test/support/repetitions.ts";
import { root } from "./steps.ts";

interface Part {
  readonly name: string;
  readonly files: readonly string[];
  readonly without?: string;
  /** For each count, describes what is repeated. */
  readonly counts: Readonly<Partial<Record<keyof Repetitions, string>>>;
  /** The approximate duration on two idle cores. */
  readonly minutes: number;
}

const parts: readonly Part[] = [
  {
    name: "writers",
    files: ["test/crash/*.test.ts"],
    without: "test/crash/{gateway-*,machines}.test.ts",
    counts: {
      writerKills: "kills of a writer",
      messagesAtOnce: "messages at once",
      propertyCases: "cases of each property",
    },
    minutes: 10,
  },
  {
    name: "families",
    files: ["test/crash/runs/*.test.ts"],
    counts: {
      familyKills: "kills of sessions that spawn, yield and announce",
      killPoints: "durable writes of a turn at most, each with a kill",
    },
    minutes: 20,
  },
  {
    name: "gateway",
    files: ["test/crash/gateway-*.test.ts", "test/public/connections.test.ts"],
    counts: {
      gatewayKills: "kills of a gateway",
      gatewayClients: "clients connected to it",
      pooledClients: "clients of ten connections to PostgreSQL",
    },
    minutes: 25,
  },
  {
    name: "machines",
    files: ["test/crash/machines.test.ts"],
    counts: {
      machineRounds:
        "rounds of two kills, a stall and two crashes of the database under 200 sessions on three machines",
    },
    minutes: 10,
  },
  {
    name: "agents",
    files: ["test/crash/acp/*.test.ts"],
    counts: {
      acpSpawns: "spawns of ACP agents that are killed",
      acpGatewaySpawns: "spawns of ACP agents under a gateway that is killed",
    },
    minutes: 30,
  },
  {
    name: "stores",
    files: ["test/contract/**/*.test.ts", "test/scale.test.ts", "test/e2e/acp-runtime-permissions.test.ts"],
    counts: {
      storeComparisons: "comparisons of the files store with the memory store",
      queuedSessions: "sessions with queued messages",
      compactedTurns: "turns under compactions",
      permissionRequests: "permission requests at once",
      branchEntries: "entries in a branch",
    },
    minutes: 10,
  },
  {
    name: "properties",
    files: ["src/**/*.test.ts"],
    counts: { propertyCases: "cases of each property" },
    minutes: 35,
  },
  {
    name: "transcripts",
    files: ["test/transcript/*.test.ts"],
    counts: { transcripts: "transcripts for each provider" },
    minutes: 15,
  },
  {
    name: "soak",
    files: ["test/soak/*.test.ts"],
    counts: { soakSeconds: "seconds of load on a gateway" },
    minutes: 52,
  },
];

const { values } = parseArgs({
  options: {
    list: { type: "boolean", default: false },
    part: { type: "string", multiple: true, default: [] },
    share: { type: "string", default: "1" },
  },
});
const share = Number(values.share);
if (!(share > 0 && share <= 1))
  throw new Error(`--share must be above 0 and at most 1, not "${values.share}"`);
const seed = process.env.SKEIN_SEED ?? String(randomInt(10 ** 9));
const repetitions = repetitionsFor(share);

if (values.list) listParts();
else runParts(values.part.length === 0 ? parts : values.part.map(partOf));

/** Finds a part by its number or name. */
function partOf(given: string): Part {
  const part = parts.find(({ name }, index) => given === name || given === String(index + 1));
  if (part === undefined)
    throw new Error(`There is no part "${given}". List the parts with npm run torture -- --list.`);
  return part;
}

function countsOf({ counts }: Part): string {
  const texts = Object.entries(counts).map(
    ([name, what]) => `${repetitions[name as keyof Repetitions]} ${what}`,
  );
  return texts.join(", ");
}

function listParts(): void {
  for (const [index, part] of parts.entries())
    console.log(`${index + 1}  ${part.name.padEnd(12)} about ${part.minutes} min  ${countsOf(part)}`);
}

/** Runs every part, even after a failure, and prints the rows of the table in docs/reliability.md. */
function runParts(chosen: readonly Part[]): void {
  const commit = execFileSync("git", ["rev-parse", "--short=8", "HEAD"], {
    cwd: root,
    encoding: "utf8",
  }).trim();
  const rows = chosen.map((part) => {
    console.log(`torture: ${part.name}, SKEIN_SEED=${seed}, ${countsOf(part)}`);
    const started = performance.now();
    const isPassed = runPart(part);
    const minutes = Math.ceil((performance.now() - started) / 60_000);
    const result = isPassed ? "passed" : "failed";
    console.log(`torture: ${part.name} ${result} after ${minutes} min, SKEIN_SEED=${seed}`);
    if (!isPassed) process.exitCode = 1;
    return `| ${part.name} | ${commit} | ${seed} | ${countsOf(part)} | ${minutes} min | ${result} |`;
  });
  console.log(rows.join("\n"));
}

function runPart({ files, without }: Part): boolean {
  const left = new Set(without === undefined ? [] : globSync(without, { cwd: root }));
  const chosen = globSync([...files], { cwd: root }).filter((file) => !left.has(file));
  const env = { ...process.env, SKEIN_SEED: seed, SKEIN_TORTURE: String(share) };
  return spawnSync("vitest", ["run", ...chosen], { cwd: root, env, stdio: "inherit" }).status === 0;
}
