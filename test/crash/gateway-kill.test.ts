import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { Talker } from "../support/gateway-clients.ts";
import { expectNothingLost, hasHeardAll } from "../support/gateway-clients-count.ts";
import { GatewayProcess } from "../support/gateway-clients-process.ts";
import { repetitions } from "../support/repetitions.ts";
import { runChance } from "../support/run-seed.ts";

const { gatewayKills: kills, gatewayClients: clients } = repetitions;
/** Each client has three sockets: one for calls, one for events, and one for the followed session. */
const clientsPerToken = 10;
/** All clients combined send about 25 messages per second. */
const pauseMs = 80 * clients;
let folder: TemporaryFolder;
let gateway: GatewayProcess;
let talkers: Talker[] = [];
const chance = runChance();

beforeEach(async () => {
  folder = temporaryFolder("skein-gateway-kill-");
  gateway = await GatewayProcess.at(join(folder.path, "root"));
});
afterEach(async () => {
  await Promise.all(talkers.splice(0).map((talker) => talker.close()));
  await gateway.kill();
  folder.remove();
});

async function connectAll(count: number): Promise<void> {
  const tokens: string[] = [];
  for (let index = 0; index * clientsPerToken < count; index += 1)
    tokens.push(await gateway.token({ scopes: ["read", "write"], userId: `user-${index}` }));
  const connecting = Array.from({ length: count }, (_, index) =>
    Talker.connect({
      url: gateway.url,
      name: `c${index}`,
      token: tokens[Math.floor(index / clientsPerToken)] as string,
      reconnect: { minMs: 50, maxMs: 20 * clients },
      // Most events are text deltas. Only one client in ten receives them.
      hears: index % 10 === 0 ? [] : ["entry.appended", "run.started", "run.ended"],
    }),
  );
  talkers = await Promise.all(connecting);
}

const acknowledged = () => talkers.reduce((sum, talker) => sum + talker.acknowledged.length, 0);

async function allBack(before: readonly number[]): Promise<void> {
  const away = () =>
    talkers
      .filter(({ opened }, index) => opened <= (before[index] as number))
      .map(({ name, state, failures }) => `${name} is ${state}: ${failures.map(String).join(", ")}`);
  await expect.poll(away, { timeout: 600_000, interval: 50 }).toEqual([]);
}

describe("a gateway that is killed while clients are connected", () => {
  test(
    `[GKL1] kill -9 of the gateway ${kills} times under ${clients} clients: nothing is lost, duplicated or unreported`,
    async () => {
      await gateway.start();
      await connectAll(clients);
      let isEnough = false;
      const talking = Promise.all(talkers.map((talker) => talker.talk(() => isEnough, pauseMs)));
      let killed = 0;
      const kill = async () => {
        killed += 1;
        return gateway.end("SIGKILL");
      };
      for (let round = 0; killed < kills; round += 1) {
        const enough = acknowledged() + 1 + chance.below(clients);
        await expect.poll(acknowledged, { timeout: 600_000, interval: 5 }).toBeGreaterThanOrEqual(enough);
        const before = talkers.map(({ opened }) => opened);
        expect(await kill()).toBe("SIGKILL");
        if (round % 2 === 1) {
          // Kills it again while it is starting.
          gateway.spawn();
          await sleep(chance.below(600));
          await kill();
        }
        await gateway.start();
        await allBack(before);
      }
      isEnough = true;
      await talking;
      await Promise.all(talkers.map((talker) => talker.say()));
      const deaf = () => talkers.filter((each) => !hasHeardAll(gateway.root, each)).map(({ name }) => name);
      await expect.poll(deaf, { timeout: 600_000, interval: 500 }).toEqual([]);
      for (const talker of talkers) expectNothingLost(gateway.root, talker);
      expect(talkers.flatMap(({ failures }) => failures)).toEqual([]);
      expect(gateway.complaints).toBe("");
    },
    3_600_000 + kills * 20_000,
  );
});
