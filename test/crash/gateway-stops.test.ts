import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { connectWith } from "../../src/client/connect.ts";
import type { Timing } from "../../src/client/retry.ts";
import { realTiming } from "../../src/client/retry.ts";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import type { TalkerOptions } from "../support/gateway-clients.ts";
import { Talker } from "../support/gateway-clients.ts";
import { expectNothingLost, hasHeardAll } from "../support/gateway-clients-count.ts";
import { GatewayProcess } from "../support/gateway-clients-process.ts";

const pauseMs = 500;
let folder: TemporaryFolder;
let gateway: GatewayProcess;
let talkers: Talker[] = [];

beforeEach(async () => {
  folder = temporaryFolder("skein-gateway-stops-");
  gateway = await GatewayProcess.at(join(folder.path, "root"));
});
afterEach(async () => {
  await Promise.all(talkers.splice(0).map((talker) => talker.close()));
  await gateway.kill();
  folder.remove();
});

async function connectAll(count: number, options: Partial<TalkerOptions> = {}): Promise<void> {
  const token = await gateway.token({ scopes: ["read", "write"], userId: "ann" });
  const reconnect = { minMs: 50, maxMs: 1000 };
  const connecting = Array.from({ length: count }, (_, index) =>
    Talker.connect({ url: gateway.url, name: `s${index}`, token, reconnect, ...options }),
  );
  talkers = await Promise.all(connecting);
}

const eventually = <T>(read: () => T) => expect.poll(read, { timeout: 150_000, interval: 50 });
const acknowledged = () => talkers.reduce((sum, talker) => sum + talker.acknowledged.length, 0);

async function expectAllHeard(): Promise<void> {
  await Promise.all(talkers.map((talker) => talker.say()));
  await eventually(() => talkers.filter((talker) => !hasHeardAll(gateway.root, talker))).toEqual([]);
  for (const talker of talkers) expectNothingLost(gateway.root, talker);
  expect(talkers.flatMap(({ failures }) => failures)).toEqual([]);
  expect(gateway.complaints).toBe("");
}

describe("a gateway that stops while clients are connected", () => {
  test("[GKL1] SIGTERM closes every client with 'going away'; accepted input is answered after the next start", async () => {
    const codes: number[] = [];
    class Heard extends WebSocket {
      /** On a busy machine, a client might give up on a connection on its own. */
      #isOwnClose = false;

      constructor(url: string) {
        super(url);
        this.addEventListener("open", () =>
          this.addEventListener("close", ({ code }) => this.#isOwnClose || codes.push(code)),
        );
      }

      override close(...args: Parameters<WebSocket["close"]>): void {
        if (this.readyState === WebSocket.OPEN) this.#isOwnClose = true;
        super.close(...args);
      }
    }
    await gateway.start();
    await connectAll(20, { WebSocket: Heard });
    let isEnough = false;
    const talking = Promise.all(talkers.map((talker) => talker.talk(() => isEnough, pauseMs)));
    await eventually(() => acknowledged() >= 20).toBe(true);
    expect(await gateway.end("SIGTERM")).toBe(0);
    await gateway.start();
    await eventually(() => talkers.every(({ opened }) => opened > 1)).toBe(true);
    isEnough = true;
    await talking;
    await expectAllHeard();
    expect(new Set(codes)).toEqual(new Set([1001]));
    const refused = talkers.flatMap((talker) => talker.refused.map(({ code }) => code));
    expect(refused.filter((code) => code !== "unavailable")).toEqual([]);
  }, 600_000);

  test("[GKL1] a client leaves a gateway paused for longer than its timeout, and reconnects when it resumes", async () => {
    await gateway.start();
    // Two seconds stand for one minute.
    const timing: Timing = { ...realTiming, setTimer: (ms, ring) => realTiming.setTimer(ms / 30, ring) };
    await connectAll(5, {
      open: (url, options) => connectWith(url, options, timing),
      timeoutMs: 600_000,
      reconnect: { minMs: 1500, maxMs: 15_000 },
    });
    let isEnough = false;
    const talking = Promise.all(talkers.map((talker) => talker.talk(() => isEnough, pauseMs)));
    await eventually(() => acknowledged() >= 10).toBe(true);
    const before = talkers.map(({ opened }) => opened);
    const { child } = gateway.all[0] as GatewayProcess["all"][0];
    child.kill("SIGSTOP");
    await eventually(() => talkers.map(({ state }) => state)).toEqual(talkers.map(() => "connecting"));
    child.kill("SIGCONT");
    await eventually(() => talkers.every(({ opened }, index) => opened > (before[index] as number))).toBe(
      true,
    );
    isEnough = true;
    await talking;
    await expectAllHeard();
  }, 600_000);
});

describe("two gateways", () => {
  test("[GST2] started at once on a folder: one runs, the other one prints a link to it and exits with 0", async () => {
    for (let round = 0; round < 2; round += 1) {
      const first = gateway.spawn();
      await sleep(round * 30);
      const both = [first, gateway.spawn()];
      const told = await Promise.all(
        both.map((each) => each.until(/Press Ctrl-C to stop it|is already running for this folder/)),
      );
      expect(told.map(([text]) => text).toSorted()).toEqual([
        "Press Ctrl-C to stop it",
        "is already running for this folder",
      ]);
      const [winner, loser] = told[0]?.[0] === "Press Ctrl-C to stop it" ? both : both.toReversed();
      expect(await loser?.end()).toBe(0);
      expect(loser?.out).toContain(`${gateway.url}/#code=skein_code_`);
      const { pid } = JSON.parse(readFileSync(join(gateway.root, "gateway.json"), "utf8")) as { pid: number };
      expect(pid).toBe(winner?.child.pid);
      winner?.child.kill("SIGKILL");
      await winner?.end();
    }
    expect(gateway.complaints).toBe("");
  }, 600_000);
});
