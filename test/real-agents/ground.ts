// A Skein that can spawn one real agent, whose model is a twin and whose home is a folder of the test.

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
  /** What sessions_spawn answers. */
  spawn(task: string, more?: object): Promise<Readonly<Record<string, unknown>>>;
  /** The next that waits for somebody. */
  approval(): Promise<Approval>;
  ended(runId: unknown): Promise<Run>;
}

const models: Model[] = [];

/** For afterEach, before the Skein is closed: agents give up what they ask then. */
export async function closeModels(): Promise<void> {
  await Promise.all(models.splice(0).map(({ twin }) => twin.close()));
}

/** Skips the test, with the reason, where this agent is not installed. */
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

/** Agents take seconds to start, and more of them on a machine that is busy. */
async function inTime<T>(read: () => Promise<T>, is: (value: T) => boolean): Promise<T> {
  await expect.poll(async () => is(await read()), { timeout: 100_000, interval: 20 }).toBe(true);
  return read();
}

/** What runs of all that was started with this home; where there is no /proc, nobody can tell. */
export function processesOf(home: string): string[] {
  return pidsOf(home).map((pid) => procText(pid, "cmdline").replaceAll("\0", " "));
}

/** Ends all of it at once, as a machine that runs out of memory does. */
export function killAll(home: string): void {
  for (const pid of pidsOf(home)) kill(pid);
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // it has ended by itself
  }
}

function pidsOf(home: string): number[] {
  if (!existsSync("/proc/self/environ")) return [];
  return processIds().filter(
    (pid) => pid !== process.pid && procText(pid, "environ").split("\0").includes(`HOME=${home}`),
  );
}
