import { setTimeout as sleep } from "node:timers/promises";
import type { Figures, Job } from "../side.ts";
import type { Line } from "./lines.ts";
import { httpLine, socketLine } from "./lines.ts";
import type { Question } from "./load.ts";
import { at, fullLoad, pacedLoad } from "./load.ts";
import type { Served, Wish } from "./served.ts";
import { withServer } from "./served.ts";

/** Requests at full load, then at half of that load. */

const connections = 16;
const warmUpMs = 1000;
const measuredMs = 3000;

const everyMs = 50;

const list = () => () => ({ method: "sessions.list", params: '{"limit":100}' });

const questions: Readonly<Record<string, (sessions: number) => Question>> = {
  list,
  // Sessions change throughout the measurement.
  "changing list": list,
  // The sessions that people are currently viewing.
  history: (sessions) => (number) => historyOf(number % Math.min(readOften, sessions)),
  // A different session each time, far from the previous one, so that its files are not already open.
  "any history": (sessions) => (number) => historyOf((number * 7919) % sessions),
};

const readOften = 100;

function historyOf(number: number): ReturnType<Question> {
  return { method: "chat.history", params: `{"sessionKey":"${keyAt(number)}"}` };
}

/** The names that the fixture gives to its sessions. */
function keyAt(number: number): string {
  const agent = ["main", "helper", "scout"][number % 3];
  const rest = [`session:s${number}`, `slack:group:G${number}`, `cron:weekly-${number}`, `user:u${number}`];
  return `agent:${agent}:${rest[number % 4]}`;
}

export async function ask(job: Job): Promise<Figures> {
  const { kind = "list", over = "http", payload, folder, sessions = 1 } = job;
  const wish: Wish = payload === undefined ? { wish: "gateway", folder } : { wish: "bare", bytes: payload };
  return withServer(wish, async (served) => {
    const stop = kind === "changing list" ? await writing(served) : async () => undefined;
    const figures = await measure(served, over, questions[kind]?.(sessions) as Question);
    await stop();
    return figures;
  });
}

/** Renames a session at regular intervals over a separate connection until it is stopped. */
async function writing(served: Served): Promise<() => Promise<void>> {
  const line = await httpLine(served);
  let isStopped = false;
  const work = async () => {
    for (let number = 0; !isStopped; number++) {
      const next = sleep(everyMs);
      await line.ask("sessions.patch", `{"key":"${keyAt(0)}","displayName":"Report ${number}"}`);
      await next;
    }
    line.close();
  };
  const done = work();
  return () => {
    isStopped = true;
    return done;
  };
}

async function measure(served: Served, over: "http" | "socket", question: Question): Promise<Figures> {
  const open = over === "http" ? httpLine : socketLine;
  const lines: Line[] = await Promise.all(Array.from({ length: connections }, () => open(served)));
  await fullLoad(lines, question, warmUpMs);
  const { cpuUs: before = 0 } = await served.ask({ wish: "used" });
  const full = await fullLoad(lines, question, measuredMs);
  const { cpuUs: after = 0 } = await served.ask({ wish: "used" });
  const half = await pacedLoad(lines, question, full.perSecond / 2, measuredMs);
  const { rssMb = 0 } = await served.ask({ wish: "used" });
  for (const line of lines) line.close();
  return {
    requestsPerSecond: full.perSecond,
    fullP99Ms: at(full.times, 0.99),
    halfP50Ms: at(half.times, 0.5),
    halfP99Ms: at(half.times, 0.99),
    usCpu: (after - before) / full.times.length,
    bodyKb: full.bytes / 1000,
    serverMb: rssMb,
  };
}
