// A Skein instance that can spawn one real agent. The agent's model is a twin, and its home is a folder of the test.

import { existsSync, mkdirSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import type { Approval, Run } from "../../src/index.ts";
import { isEnded } from "../../src/runs/states.ts";
import type { Family } from "../support/family.ts";
import { withParts } from "../support/family.ts";
import { processIds, procText } from "../support/proc.ts";
import { newFolder } from "../support/skein.ts";
import type { RealAgent } from "./agents.ts";
import { furnish } from "./agents.ts";
import type { Model } from "./model.ts";
import { startModel } from "./model.ts";

export interface Ground {
  readonly family: Family;
  readonly model: Model;
  readonly home: string;
  readonly cwd: string;
  /** The result of sessions_spawn. */
  spawn(task: string, more?: object): Promise<Readonly<Record<string, unknown>>>;
  /** The next pending approval request. */
  approval(): Promise<Approval>;
  ended(runId: unknown): Promise<Run>;
}

const models: Model[] = [];

/** For use in afterEach, before the instance is closed. Agents then give up their pending questions. */
export async function closeModels(): Promise<void> {
  await Promise.all(models.splice(0).map(({ twin }) => twin.close()));
}

/** Skips the test, with a reason, if this agent is not installed. */
export async function groundOf(agent: RealAgent, { skip }: { skip(reason: string): never }): Promise<Ground> {
  const folder = process.env.SKEIN_REAL_AGENTS;
  if (folder === undefined) return skip("real agents are installed by npm run real-agents alone");
  const main = join(folder, "node_modules", agent.package, agent.main);
  if (!existsSync(main)) return skip(`${agent.package} is not installed in ${folder}`);
  const home = realpathSync(newFolder());
  const cwd = join(home, "work");
  mkdirSync(cwd);
  const model = await startModel(agent.api, agent.writes(cwd));
  models.push(model);
  const { origin } = new URL(model.twin.url);
  furnish(home, agent, origin);
  const started = { command: process.execPath, args: [main, ...agent.args], env: agent.env(origin) };
  const family = await withParts(
    { "": () => ({ text: "Noted." }) },
    {
      cwd,
      env: { PATH: process.env.PATH, HOME: home },
      settings: {
        acp: { agents: { [agent.name]: started }, defaultAgent: agent.name, startTimeoutSeconds: 120 },
      },
    },
  );
  const { skein, call } = family;
  return {
    family,
    model,
    home,
    cwd,
    spawn: (task, more = {}) => call("sessions_spawn", { runtime: "acp", task, cwd, ...more }),
    approval: async () => {
      const [first] = await inTime(
        () => skein.approvals.list(),
        ({ length }) => length > 0,
      );
      if (first === undefined) throw new Error("nobody was asked");
      return first;
    },
    ended: async (runId) => {
      const run = await inTime(
        () => skein.runs.get(String(runId)),
        (found) => found !== null && isEnded(found.state),
      );
      if (run === null) throw new Error(`there is no run ${String(runId)}`);
      return run;
    },
  };
}

/** Agents take seconds to start, and longer on a busy machine. */
async function inTime<T>(read: () => Promise<T>, is: (value: T) => boolean): Promise<T> {
  await expect.poll(async () => is(await read()), { timeout: 100_000, interval: 20 }).toBe(true);
  return read();
}

/** Returns the running processes that were started with this home folder. They cannot be found without /proc. */
export function processesOf(home: string): string[] {
  return pidsOf(home).map((pid) => procText(pid, "cmdline").replaceAll("\0", " "));
}

/** Kills all of them at the same time, as on a machine that runs out of memory. */
export function killAll(home: string): void {
  for (const pid of pidsOf(home)) kill(pid);
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // it has already exited
  }
}

function pidsOf(home: string): number[] {
  if (!existsSync("/proc/self/environ")) return [];
  return processIds().filter(
    (pid) => pid !== process.pid && procText(pid, "environ").split("\0").includes(`HOME=${home}`),
  );
}
