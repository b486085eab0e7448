import { readFileSync, writeFileSync } from "node:fs";
import { table } from "../../bench/render.ts";
import type { ServiceTimes } from "./assumptions.ts";
import { day, deployment, looksPerSecond, prices, readServiceTimes } from "./assumptions.ts";
import type { DayReport } from "./replay-day.ts";
import { coresForTurns, replayDay } from "./replay-day.ts";

/** The generated part of docs/scale.md: the arithmetic and the results of the simulation. */

const begin = "<!-- generated from bench/results by npm run bench: begin -->";
const end = "<!-- generated: end -->";

/** The loads, as multiples of a day with a million sessions. */
const loads = [0.125, 0.25, 0.5, 1] as const;
const seed = 20;
/** The replayed day lasts one hour, which is long compared with a session. */
export const replayMs = 3_600_000;

export function writeScalePage(path: string): void {
  const times = readServiceTimes();
  writeFileSync(path, withGenerated(readFileSync(path, "utf8"), renderScale(times, replayLoads(times))));
}

export function replayLoads(times: ServiceTimes, dayMs = replayMs): DayReport[] {
  return loads.map((load) => replayDay(times, { load, seed, dayMs }));
}

export function withGenerated(page: string, generated: string): string {
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from === -1 || to < from) throw new Error("docs/scale.md does not contain its markers. Restore them.");
  return `${page.slice(0, from + begin.length)}\n\n${generated}\n\n${page.slice(to)}`;
}

export function renderScale(times: ServiceTimes, reports: readonly DayReport[]): string {
  return [
    "### The arithmetic",
    arithmetic(times),
    "### The limits",
    walls(times),
    "### The simulation",
    overview(reports),
    "Utilization of each station in the busiest hour, and the 99th percentile of the wait for it:",
    utilization(reports),
    verdict(reports),
    "### The cost, with assumed prices",
    cost(times),
  ].join("\n\n");
}

const secondsPerDay = 86_400;
const turnsPerDay = day.sessions * day.turnsPerSession;

function arithmetic(times: ServiceTimes): string {
  const average = turnsPerDay / secondsPerDay;
  const peak = average * day.peakFactor;
  const events = times.events + day.deltasPerTurn;
  const turnSeconds = (day.modelCalls * day.thinkMs + (day.modelCalls - 1) * day.toolMs) / 1000;
  const imageKb = day.imageShare * day.imageKb;
  const { processes, connectionsPerProcess } = deployment;
  const lines: [string, string, string][] = [
    ["turns", `${number(average)}/s, ${number(peak)}/s at the peak`, `${number(turnsPerDay)} a day`],
    ["entries", `${number(times.entries)} per turn`, `${number(turnsPerDay * times.entries)} rows a day`],
    [
      "rows inserted in all tables",
      `${number(times.insertedRows)} per turn`,
      `${number(turnsPerDay * times.insertedRows)} a day`,
    ],
    [
      "transactions",
      `${number(times.transactions)} per turn`,
      `${number(peak * times.transactions)}/s at the peak`,
    ],
    [
      "stored, with indexes",
      `${number(times.storedKb)} KB per turn`,
      `${number((turnsPerDay * times.storedKb) / 1e6)} GB a day`,
    ],
    ["images", `${number(imageKb)} KB per turn`, `${number((turnsPerDay * imageKb) / 1e6)} GB a day`],
    [
      "write-ahead log",
      `${number(times.walKb)} KB per turn`,
      `${number((peak * times.walKb) / 1000)} MB/s at the peak`,
    ],
    [
      "concurrent runs (Little's law)",
      `${number(peak)}/s × ${number(turnSeconds)} s`,
      `${number(peak * turnSeconds)} at the peak`,
    ],
    [
      "CPU of the processes",
      `${number(times.processCpuMs)} ms per turn`,
      `${number((peak * times.processCpuMs) / 1000)} cores at the peak`,
    ],
    [
      "CPU of the database",
      `${number(times.databaseCpuMs)} ms per turn`,
      `${number((peak * times.databaseCpuMs) / 1000)} cores at the peak`,
    ],
    [
      "slot lock",
      `${number(times.slotLockMs)} ms per turn`,
      `${percent((peak * times.slotLockMs) / 1000)} at the peak`,
    ],
    ["events", `${number(events)} per turn`, `${number(peak * events)}/s at the peak`],
    [
      "events in each process",
      `${number(times.eventCpuMs * 1000)} µs per event`,
      `${percent((peak * events * times.eventCpuMs) / 1000)} of a core at the peak`,
    ],
    [
      "notifications",
      `at most ${looksPerSecond}/s per process`,
      `at most ${number(looksPerSecond * processes)}/s, each to ${processes} processes`,
    ],
    [
      "connections, with two roles",
      `${processes} × (2 × ${connectionsPerProcess} + 1)`,
      `${number(processes * (2 * connectionsPerProcess + 1))} at most`,
    ],
  ];
  return table(["what", "per turn or unit", "for a million sessions a day"], lines);
}

function cost(times: ServiceTimes): string {
  const { databaseHour, machines, machineHour, gigabyteMonth, keptDays } = prices;
  const gigabytes = (turnsPerDay * (times.storedKb + day.imageShare * day.imageKb)) / 1e6;
  const daily = {
    database: 24 * databaseHour,
    machines: 24 * machines * machineHour,
    storage: (gigabytes * keptDays * gigabyteMonth) / 30,
  };
  const dollars = (amount: number) => `$${amount.toFixed(2)}`;
  return table(
    ["what", "assumed price", "for a million sessions"],
    [
      ["database server", `${dollars(databaseHour)} per hour`, dollars(daily.database)],
      [`${machines} machines`, `${dollars(machineHour)} per hour each`, dollars(daily.machines)],
      [
        `storage for ${keptDays} days, ${number(gigabytes * keptDays)} GB`,
        `${dollars(gigabyteMonth)} per GB per month`,
        dollars(daily.storage),
      ],
      ["total", "", dollars(daily.database + daily.machines + daily.storage)],
    ],
  );
}

/** For each station, the number of sessions per day at which that station alone would be fully occupied at the peak. */
function walls(times: ServiceTimes): string {
  const events = times.events + day.deltasPerTurn;
  const runMs = day.modelCalls * day.thinkMs + (day.modelCalls - 1) * day.toolMs;
  const stations: [string, number, number][] = [
    ["lanes", deployment.lanes, runMs],
    ["slot lock", 1, times.slotLockMs],
    ["processes", deployment.processes, times.processCpuMs],
    ["database", coresForTurns(times), times.databaseCpuMs + events * times.eventDatabaseCpuMs],
    ["feed reader of a process", 1, events * times.eventCpuMs],
  ];
  const lines = stations
    .map(([name, servers, serviceMs]): [string, number, number, number] => {
      const turnsPerSecond = (servers * 1000) / serviceMs;
      const sessions = (turnsPerSecond * secondsPerDay) / day.peakFactor / day.turnsPerSession;
      return [name, servers, turnsPerSecond, sessions];
    })
    .toSorted((one, other) => one[3] - other[3])
    .map(([name, servers, turns, sessions]) => [
      name,
      number(servers),
      `${number(turns)}/s`,
      `${number(Number(sessions.toPrecision(2)))}`,
    ]);
  return table(["station, lowest limit first", "servers", "maximum turns", "maximum sessions a day"], lines);
}

function overview(reports: readonly DayReport[]): string {
  const lines = reports.map((report) => [
    `${number(report.load * day.sessions)}`,
    `${number(report.peakTurnsPerSecond)}/s`,
    duration(report.p50StartMs),
    duration(report.p99StartMs),
  ]);
  return table(["sessions a day", "turns in the busiest hour", "wait until the start, p50", "p99"], lines);
}

function utilization(reports: readonly DayReport[]): string {
  const names = reports[0]?.stations.map(({ name, servers }) => `${name} (${number(servers)})`) ?? [];
  const lines = names.map((name, at) => [
    name,
    ...reports.map(({ stations }) => {
      const station = stations[at];
      return `${percent(station?.peakUtilization ?? 0)}, ${duration(station?.p99WaitMs ?? 0)}`;
    }),
  ]);
  const heads = reports.map(({ load }) => `${number(load * day.sessions)} sessions`);
  return table(["station (servers)", ...heads], lines);
}

/** Above this utilization, queues grow as long as the busy hour lasts. */
const saturated = 0.95;

function verdict(reports: readonly DayReport[]): string {
  const full = reports.flatMap(({ load, stations }) => {
    const names = stations
      .filter(({ peakUtilization }) => peakUtilization >= saturated)
      .map(({ name }) => name);
    return names.length === 0 ? [] : [`At ${load} million, saturated: ${names.join(", ")}.`];
  });
  const fine = reports.filter(({ stations }) =>
    stations.every(({ peakUtilization }) => peakUtilization < saturated),
  );
  const most = Math.max(0, ...fine.map(({ load }) => load));
  return [
    `This deployment carries ${most} million sessions a day without saturating any station.`,
    ...full,
  ].join(" ");
}

function number(value: number): string {
  if (value >= 100) return Math.round(value).toLocaleString("en-US");
  return String(Number(value.toPrecision(value >= 10 ? 3 : 2)));
}

function percent(share: number): string {
  return `${Math.round(share * 100)}%`;
}

function duration(ms: number): string {
  return ms >= 1000 ? `${number(ms / 1000)} s` : `${number(ms)} ms`;
}
