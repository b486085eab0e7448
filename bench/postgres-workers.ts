import type { ChildProcess } from "node:child_process";
import { fork } from "node:child_process";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { scriptedModel } from "../src/agents/rehearsal/scripted-model.ts";
import type { Skein } from "../src/sessions/skein.ts";
import { openPostgres } from "../src/store/postgres/open-postgres.ts";
import { requireWorking } from "../src/store/work.ts";
import type { Figures, Job } from "./side.ts";
import { timed } from "./side.ts";
import { withSkein } from "./turns.ts";

/** A process that accepts messages, and other processes on the same database that answer them. */

const childFile = fileURLToPath(new URL("child.js", import.meta.url));
const module = "postgres-workers";

export const acts: Readonly<Record<string, (job: Job) => Promise<Figures>>> = { answer };

function thinkingModel(thinkMs: number) {
  return scriptedModel(() => ({ text: "Rain from noon on.", delayMs: thinkMs }));
}

/** Executes runs until the parent ends. */
async function answer(job: Job): Promise<Figures> {
  return withSkein(job, thinkingModel(partMs(job)), () => new Promise<Figures>(() => undefined));
}

/** The model's stream has several parts, each with the same delay. */
function partMs({ thinkMs = 0 }: Job): number {
  return thinkMs / 5;
}

export async function work(job: Job): Promise<Figures> {
  const { workers = 1, count = 1, sessions = 1 } = job;
  const children = Array.from({ length: workers }, (_, index) => startWorker(job, index));
  try {
    return await withSkein({ ...job, workers: 0 }, thinkingModel(0), async (skein) => {
      await waitForWorkers(job, workers);
      const say = (turns: number) => sayAll(skein, sessions, turns);
      await say(1);
      const ms = await timed(() => say(Math.ceil(count / sessions)));
      return { ms, turnsPerSecond: count / (ms / 1000) };
    });
  } finally {
    for (const child of children) child.disconnect();
  }
}

async function sayAll(skein: Skein, sessions: number, turns: number): Promise<void> {
  const sayIn = async (index: number) => {
    const session = skein.session({ userId: `u${index}`, sessionKey: `agent:main:bench-${index}` });
    for (let turn = 0; turn < turns; turn++) await session.send(`How is the weather on day ${turn}?`).result;
  };
  await Promise.all(Array.from({ length: sessions }, (_, index) => sayIn(index)));
}

function startWorker(job: Job, index: number): ChildProcess {
  const child = fork(childFile, { silent: true });
  child.stderr?.pipe(process.stderr);
  const own = { ...job, workers: 1, folder: join(job.folder, `worker-${index}`) };
  child.send({ module, act: "answer", job: own });
  return child;
}

async function waitForWorkers({ url = "" }: Job, workers: number): Promise<void> {
  const backend = requireWorking(await openPostgres({ url }));
  const { events } = backend.shared;
  await events.join();
  while (events.processes().filter(({ executesRuns }) => executesRuns).length < workers) await sleep(50);
  await backend.close();
}
