import { existsSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { TemporaryFolder } from "../../../src/entry-testing.ts";
import { temporaryFolder } from "../../../src/entry-testing.ts";
import { expectAllTold } from "../../support/acp-gateway-count.ts";
import type { StartedBy } from "../../support/acp-gateway-world.ts";
import { GatewayWorld, slots } from "../../support/acp-gateway-world.ts";
import { countWorld } from "../../support/acp-kill-count.ts";
import type { AgentName, Plan } from "../../support/acp-kill-plan.ts";
import { childrenEach, plannedSpawn, spawnArguments } from "../../support/acp-kill-plan.ts";
import { isThere } from "../../support/proc.ts";
import { repetitions } from "../../support/repetitions.ts";
import { seedTold } from "../../support/run-seed.ts";
import { runningPath } from "../../support/running-gateway.ts";

const spawns = repetitions.acpGatewaySpawns;
const limitMs = 600_000 + spawns * 20_000;
const openStates: ("queued" | "running" | "waiting" | "sleeping")[] = [
  "queued",
  "running",
  "waiting",
  "sleeping",
];
let folder: TemporaryFolder;
let world: GatewayWorld;

beforeEach(() => {
  folder = temporaryFolder("skein-acp-gateway-");
  world = new GatewayWorld(folder.path);
});
afterEach(async () => {
  await world.endAll();
  folder.remove();
});

/** Polls long enough for a busy machine. */
const eventually = <T>(read: () => T) => expect.poll(read, { timeout: 300_000, interval: 20 });
const open = async () => (await world.call("runs.list", { states: openStates })).runs;
const keyOf = (name: string | number) => `agent:main:session:parent-${name}`;

/** Returns the seed's plan, except that an agent that would be killed during its plan waits at that point instead. */
function heldArguments(number: number): Readonly<Record<string, unknown>> {
  const plan = { ...plannedSpawn(number).plan, blow: "hold" };
  return { ...spawnArguments(number), task: `PLAN ${JSON.stringify(plan)}` };
}
const isHolder = (number: number) => ["lean", "stubborn"].includes(plannedSpawn(number).agent);

/** Spawns every other child through an external call and the rest through a model that is asked to do so. */
async function spawn(number: number, args = heldArguments(number)): Promise<void> {
  if (number % 2 === 0) return world.spawnChild(keyOf(Math.floor(number / childrenEach)), args);
  const message = `use the tool sessions_spawn with ${JSON.stringify(args)}`;
  const sessionKey = keyOf(`of-${number}`);
  await world.call("chat.send", { sessionKey, message, idempotencyKey: `spawn-${number}` });
}

/** Spawns an agent with the given plan. */
function own(number: number, agentId: AgentName | "asking", steps: Plan["steps"], isHeld = true) {
  const plan: Plan = { number, steps, blow: isHeld ? "hold" : null, at: steps.length };
  return spawn(number, {
    task: `PLAN ${JSON.stringify(plan)}`,
    runtime: "acp",
    agentId,
    label: `n${number}`,
  });
}

/** Kills the gateway and checks that no recorded process survives. */
async function killed(by: StartedBy): Promise<void> {
  const { child } = world.last;
  process.kill(by === "npm" ? -(child.pid ?? 0) : world.pid, "SIGKILL");
  expect(await world.last.end()).toBe("SIGKILL");
  await eventually(() => world.processes).toEqual([]);
}

/** Stops the gateway gracefully and checks that neither a process nor `gateway.json` remains. */
async function stopped(): Promise<void> {
  process.kill(world.pid, "SIGTERM");
  expect(await world.last.end()).toBe(0);
  await eventually(() => world.processes).toEqual([]);
  expect(existsSync(runningPath(world.root))).toBe(false);
}

/** Approves every request. */
async function approveAll(): Promise<void> {
  for (const { approvalId } of (await world.call("approvals.list", {})).approvals)
    await world.call("approvals.resolve", { approvalId, answer: "approved" });
}

async function expectAllWell(count: number): Promise<ReturnType<typeof countWorld>> {
  await vi.waitFor(() => expectAllTold(world), { timeout: 300_000, interval: 200 });
  await stopped();
  const counted = countWorld(folder.path);
  expect({ problems: counted.problems, complaints: world.complaints }, seedTold).toEqual({
    problems: [],
    complaints: "",
  });
  expect(counted.spawns).toBe(count);
  return counted;
}

describe.skipIf(process.platform !== "linux")(
  "`skein start` with external agents in the middle of their turns",
  () => {
    test(
      `kill -9 of the gateway, alone or with npm, under ${spawns} spawns: all end, each is announced once, and no process is left`,
      async () => {
        const numbers = Array.from({ length: spawns }, (_, at) => at);
        const holders = numbers.filter(isHolder).length;
        await world.start("npm");
        await world.connect();
        const asked = Promise.all(numbers.map((number) => spawn(number)));
        asked.catch(() => undefined);
        let kills = 0;
        for (let held = 0; held < holders; held = world.held) {
          // Every slot has a waiting agent, or no more agents will wait.
          await eventually(() => world.held).toBe(Math.min(held + slots, holders));
          const before = world.pid;
          const by = kills % 2 === 0 ? "npm" : "hand";
          await killed(by);
          if (kills === 1) {
            // Kills it again while it is starting.
            world.spawn();
            await eventually(() => world.pid).not.toBe(0);
            await killed("hand");
          }
          kills += 1;
          await world.start(by === "npm" ? "hand" : "npm");
          expect(world.pid).not.toBe(before);
          expect(isThere(world.pid)).toBe(true);
        }
        await asked;
        for (const number of numbers.filter((each) => each % 2 === 1)) world.follow(keyOf(`of-${number}`));
        await eventually(async () => (await open()).length).toBe(0);
        const { lost } = await expectAllWell(spawns);
        // The expected kills and losses have actually happened.
        expect(kills).toBe(Math.ceil(holders / slots));
        expect(lost).toBeGreaterThanOrEqual(holders);
      },
      limitMs,
    );

    test(
      "SIGTERM ends it with all agents; the next start continues them, and repeats open questions",
      async () => {
        await world.start();
        await world.connect();
        await Promise.all([
          own(0, "lean", ["say", "leave"]),
          own(2, "stubborn", ["child", "stray", "tool"]),
          own(4, "asking", ["say", "permission"], false),
        ]);
        world.follow(keyOf(0));
        await eventually(() => world.held).toBe(2);
        await eventually(async () => (await world.call("approvals.list", {})).count).toBe(1);
        await stopped();
        await world.start();
        await eventually(async () => {
          await approveAll();
          return (await open()).length;
        }).toBe(0);
        expect(await expectAllWell(3)).toMatchObject({ ended: { ok: 3 }, announced: 3 });
      },
      limitMs,
    );

    test(
      "turns continue across a reload; after a kill, all of both configurations end and are announced once",
      async () => {
        await world.start();
        await world.connect();
        await Promise.all([
          own(0, "lean", ["say", "leave"]),
          own(2, "stubborn", ["stray", "tool"]),
          own(4, "asking", ["say", "permission"], false),
        ]);
        world.follow(keyOf(0));
        await eventually(() => world.held).toBe(2);
        await eventually(async () => (await world.call("approvals.list", {})).count).toBe(1);
        world.configure((config) => ({ ...config, lanes: { subagent: slots + 1 } }));
        await world.last.until(/Reloaded /);
        await eventually(async () => {
          await approveAll();
          return (await open()).map(({ agentId }) => agentId).toSorted();
        }).toEqual(["lean", "stubborn"]);
        await own(6, "lean", ["tool", "say"]);
        await eventually(() => world.held).toBe(3);
        await killed("hand");
        await world.start();
        await eventually(async () => (await open()).length).toBe(0);
        expect(await expectAllWell(4)).toMatchObject({ ended: { ok: 4 }, announced: 4 });
      },
      limitMs,
    );
  },
);
