import type { ChildProcess } from "node:child_process";
import { fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { supportProgram } from "../support/programs.ts";
import { repetitions } from "../support/repetitions.ts";
import type { SoakSample } from "../support/soak-judge.ts";
import { judgeSoak } from "../support/soak-judge.ts";
import type { Place } from "../support/soak-load.ts";
import { startLoad } from "../support/soak-load.ts";

/** How long the gateway is under load. */
const seconds = repetitions.soakSeconds;
const settleSeconds = Math.min(15, seconds / 3);
const samples = Math.min(400, Math.max(12, seconds / 2));
/** A number of visits that even a slow machine completes. */
const fewestVisits = 20;
const child = supportProgram("soak-child");

let folder: TemporaryFolder | null = null;
let running: ChildProcess | null = null;
afterEach(async () => {
  if (running?.exitCode === null) {
    running.kill("SIGKILL");
    await once(running, "exit");
  }
  folder?.remove();
});

async function told<T>(from: ChildProcess, word?: string): Promise<T> {
  const answer = once(from, "message");
  if (word !== undefined) from.send(word);
  return (await answer)[0] as T;
}

/** Samples the gateway's resources after all clients have left, while work in progress finishes. */
async function atRest(from: ChildProcess, isLevel: (sample: SoakSample) => boolean): Promise<SoakSample> {
  for (let tries = 0; ; tries += 1) {
    const { sample } = await told<{ sample: SoakSample }>(from, "sample");
    if (isLevel(sample) || tries === 20) return sample;
    await pause(500);
  }
}

describe("a gateway under load", () => {
  test("keeps stable memory while people and programs come and go", {
    timeout: (2 * seconds + settleSeconds + 600) * 1000,
  }, async () => {
    folder = temporaryFolder("skein-soak-");
    const gateway = fork(child, [folder.path], { execArgv: ["--expose-gc"], serialization: "json" });
    running = gateway;
    const place = await told<Place>(gateway);
    const settling = startLoad(place, "settle");
    await pause(settleSeconds * 1000);
    while (settling.visits < fewestVisits) await pause(100);
    await settling.leave();
    let last: SoakSample | null = null;
    const before = await atRest(gateway, (sample) => {
      const isSame = last?.fds === sample.fds && last.resources === sample.resources;
      last = sample;
      return isSame;
    });

    const load = startLoad(place, "soak");
    const during: SoakSample[] = [];
    while (during.length < samples || load.visits < fewestVisits) {
      await pause((seconds * 1000) / samples);
      during.push((await told<{ sample: SoakSample }>(gateway, "sample")).sample);
    }
    await load.leave();
    const after = await atRest(
      gateway,
      ({ fds, resources }) => fds <= before.fds && resources <= before.resources,
    );

    const log = join(folder.path, "log");
    expect({
      problems: judgeSoak({ before, during, after }),
      failures: [...new Set([...settling.failures, ...load.failures])].slice(0, 10),
      log: existsSync(log) ? readFileSync(log, "utf8").slice(0, 2000) : "",
    }).toEqual({ problems: [], failures: [], log: "" });
    gateway.send("close");
    expect(await once(gateway, "exit")).toEqual([0, null]);
  });
});
