import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { TemporaryFolder } from "../../../src/entry-testing.ts";
import { temporaryFolder } from "../../../src/entry-testing.ts";
import { agentsAlive, countWorld, startedAgents, wardensAlive } from "../../support/acp-kill-count.ts";
import { childrenEach } from "../../support/acp-kill-plan.ts";
import { makeWorld, markOf } from "../../support/acp-kill-world.ts";
import { Started } from "../../support/cli-process.ts";
import { isStillThere, signalTo } from "../../support/proc.ts";
import { supportProgram } from "../../support/programs.ts";
import { repetitions } from "../../support/repetitions.ts";
import { runChance, seedTold } from "../../support/run-seed.ts";
import { soon } from "../../support/soon.ts";

const spawns = repetitions.acpSpawns;
const parents = Math.ceil(spawns / childrenEach);
const program = supportProgram("acp-kill-child");
const chance = runChance();
/** Kills in addition to those in the plans. */
const mostSkeins = Math.max(3, Math.ceil(spawns / 20));
const mostAgents = Math.ceil(spawns / 4);
let folder: TemporaryFolder;
let running: Started | null = null;

beforeEach(() => {
  folder = temporaryFolder("skein-acp-kill-");
  makeWorld(folder.path);
});
afterEach(async () => {
  running?.child.kill("SIGKILL");
  await running?.end();
  for (const pid of agentsAlive(folder.path)) signalTo(pid, "SIGKILL");
  folder.remove();
});

/** Kills the agent processes that exist at that moment. */
async function killAgents(isOver: () => boolean): Promise<number> {
  let kills = 0;
  while (!isOver() && kills < mostAgents) {
    await sleep(chance.between(20, 400));
    const pid = agentsAlive(folder.path).at(-1 - chance.below(4));
    if (pid === undefined || isOver()) continue;
    signalTo(pid, chance.once(4) ? "SIGTERM" : "SIGKILL");
    kills++;
  }
  return kills;
}

/** Kills a Skein process once it has started this many agents itself. */
async function killAtWork(skein: Started, agents: number, isOver: () => boolean): Promise<void> {
  const own = () => startedAgents(folder.path).filter((agent) => agent.skein === skein.child.pid).length;
  while (!isOver() && own() < agents) await sleep(20);
  skein.child.kill("SIGKILL");
}

/** Starts Skein processes until one of them has finished everything. */
async function goOn(): Promise<{ readonly skeins: number; readonly last: number }> {
  for (let skeins = 1; ; skeins++) {
    const skein = new Started([program, folder.path, String(parents)]);
    running = skein;
    let isOver = false;
    const killing = skeins <= mostSkeins ? killAtWork(skein, chance.between(1, 4), () => isOver) : null;
    const how = await skein.end();
    isOver = true;
    await killing;
    expect(skein.err, seedTold).toBe("");
    if (how === "SIGKILL") continue;
    expect(how, seedTold).toBe(0);
    return { skeins, last: skein.child.pid ?? 0 };
  }
}

describe.skipIf(process.platform !== "linux")("external agents that are killed", () => {
  test(`${spawns} spawns with random kills: every run ends and is announced once, and no call or process is left`, async () => {
    let isOver = false;
    const killing = killAgents(() => isOver);
    const { skeins, last } = await goOn();
    // Once a process has exited gracefully, none of its child processes remains.
    const own = startedAgents(folder.path).filter(({ skein }) => skein === last);
    expect(
      own.filter(({ pid }) => isStillThere(pid, markOf(folder.path))),
      seedTold,
    ).toEqual([]);
    isOver = true;
    const kills = await killing;
    await soon(() => [...agentsAlive(folder.path), ...wardensAlive(folder.path)]).toEqual([]);
    const count = countWorld(folder.path);
    const reports = join(folder.path, "reports.log");
    const reported = existsSync(reports) ? readFileSync(reports, "utf8") : "";
    expect({ problems: count.problems, reported }, seedTold).toEqual({ problems: [], reported: "" });
    expect(count.spawns).toBe(parents * childrenEach);
    // With few spawns, some kinds of outcomes might not occur.
    if (spawns < 200) return;
    expect(kills).toBeGreaterThan(0);
    expect(skeins).toBeGreaterThan(2);
    for (const state of ["ok", "error", "aborted"]) expect(count.ended[state], state).toBeGreaterThan(0);
    expect(count.announced).toBeGreaterThan(count.spawns / 4);
    expect(count.spawns - count.announced).toBeGreaterThan(0);
  }, 3_600_000);
});
