import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { seeded } from "../../bench/texts.ts";
import { readServiceTimes } from "../../scripts/simulation/assumptions.ts";
import { renderScale, replayLoads, withGenerated } from "../../scripts/simulation/scale-page.ts";
import { exponential, Station, Timeline } from "../../scripts/simulation/stations.ts";
import { root } from "../../scripts/steps.ts";

const read = (path: string) => readFileSync(join(root, path), "utf8");

/** The mean wait in a queue with Poisson arrivals, exponential service times and several servers (Erlang C). */
function meanWaitMs(perMs: number, serviceMs: number, servers: number): number {
  const offered = perMs * serviceMs;
  let term = 1;
  let sum = 1;
  for (let busy = 1; busy < servers; busy++) {
    term *= offered / busy;
    sum += term;
  }
  const last = (term * offered) / servers / (1 - offered / servers);
  const waitProbability = last / (sum + last);
  return (waitProbability * serviceMs) / (servers - offered);
}

function simulateQueue(perMs: number, serviceMs: number, servers: number, customers: number): Station {
  const random = seeded(7);
  const timeline = new Timeline();
  const station = new Station(timeline, "queue", servers);
  const arrive = (left: number) => {
    if (left === 0) return;
    timeline.after(exponential(random, 1 / perMs), () => {
      station.serve(exponential(random, serviceMs), () => undefined);
      arrive(left - 1);
    });
  };
  arrive(customers);
  timeline.run();
  return station;
}

describe("the simulation of a day", () => {
  test.each([
    { servers: 1, utilization: 0.5 },
    { servers: 1, utilization: 0.8 },
    { servers: 4, utilization: 0.8 },
    { servers: 16, utilization: 0.9 },
  ])("a queue with $servers servers at $utilization waits as long as Erlang C says", (given) => {
    const { servers, utilization } = given;
    const serviceMs = 10;
    const perMs = (utilization * servers) / serviceMs;
    const station = simulateQueue(perMs, serviceMs, servers, 400_000);
    const mean = station.waitsMs.reduce((sum, wait) => sum + wait, 0) / station.waitsMs.length;
    const expected = meanWaitMs(perMs, serviceMs, servers);
    expect(mean / expected).toBeGreaterThan(0.93);
    expect(mean / expected).toBeLessThan(1.07);
    expect(station.peakUtilization()).toBeCloseTo(utilization, 1);
  });

  test("the page contains what the simulation reports with the measured service times", () => {
    const page = read("docs/scale.md");
    const times = readServiceTimes();
    expect(withGenerated(page, renderScale(times, replayLoads(times)))).toBe(page);
  });
});
