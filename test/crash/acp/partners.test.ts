import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { lostProcessText } from "../../../src/acp/client/acp-turn.ts";
import type { TemporaryFolder } from "../../../src/entry-testing.ts";
import { temporaryFolder } from "../../../src/entry-testing.ts";
import type { Skein } from "../../../src/index.ts";
import {
  agentsAlive,
  countWorld,
  promptedTogether,
  startedAgents,
  wardensAlive,
} from "../../support/acp-kill-count.ts";
import type { AgentName, Blow, Plan } from "../../support/acp-kill-plan.ts";
import { makeWorld, markOf, openWorld, user } from "../../support/acp-kill-world.ts";
import { Started } from "../../support/cli-process.ts";
import { isStillThere, signalTo } from "../../support/proc.ts";
import { supportProgram } from "../../support/programs.ts";
import { soon } from "../../support/soon.ts";

const program = supportProgram("acp-kill-partner");
const parent = { ...user, sessionId: "parent" };
let folder: TemporaryFolder;
let asking: Skein;
let partners: readonly Started[] = [];

beforeEach(async () => {
  folder = temporaryFolder("skein-acp-partners-");
  makeWorld(folder.path);
  asking = await openWorld(folder.path, { workers: false });
  partners = [new Started([program, folder.path]), new Started([program, folder.path])];
  await Promise.all(partners.map((each) => each.until(/working/)));
});
afterEach(async () => {
  await asking.close();
  for (const each of partners) each.child.kill("SIGKILL");
  await Promise.all(partners.map((each) => each.end()));
  for (const pid of wardensAlive(folder.path)) signalTo(pid, "SIGCONT");
  await soon(() => [...agentsAlive(folder.path), ...wardensAlive(folder.path)]).toEqual([]);
  folder.remove();
});

/** Returns the prompts that the agents received in their sessions, in order. */
function promptsOfAll(): string[][] {
  return globSync(join(folder.path, "sessions/*.json")).map(
    (path) => JSON.parse(readFileSync(path, "utf8")) as string[],
  );
}

/** Spawns an agent that kills the process running it and waits until it has ended. */
async function spawned(agentId: AgentName, steps: Plan["steps"], at: number, blow: Blow = "kill_skein") {
  const plan: Plan = { number: 1, steps, blow, at };
  const args = { task: `PLAN ${JSON.stringify(plan)}`, runtime: "acp", agentId, label: "n1" };
  const { result } = await asking.callTool("sessions_spawn", args, parent);
  return asking.ended(String(result.runId), { timeoutMs: 120_000 });
}

describe.skipIf(process.platform !== "linux")("two processes on one folder with the same agents", () => {
  test.each<[string, AgentName, Plan["steps"], number]>([
    ["begins", "lean", ["say", "tool"], 0],
    ["has a call open", "lean", ["say", "leave", "say"], 2],
    ["is about to end", "lean", ["tool", "say"], 2],
    ["has children, and ignores SIGTERM", "stubborn", ["child", "stray", "leave"], 3],
  ])(
    "one is killed while its agent %s: the other continues the agent's session",
    async (_, agent, steps, at) => {
      const run = await spawned(agent, steps, at);
      expect(run.outcome).toMatchObject({ state: "ok", reply: expect.stringMatching(/Done 1\.$/) });
      expect(run.lost).toBe(1);
      // Each child had one agent, with the same agent session.
      expect(new Set(startedAgents(folder.path).map(({ skein }) => skein))).toEqual(
        new Set(partners.map(({ child }) => child.pid)),
      );
      const [first, ...others] = promptsOfAll();
      expect(others).toEqual([]);
      expect(first).toEqual([expect.stringContaining("PLAN"), expect.stringContaining(lostProcessText)]);
      expect(promptedTogether(folder.path)).toEqual([]);
      const alive = partners.filter(({ child }) => child.signalCode === null && child.exitCode === null);
      expect(alive).toHaveLength(1);
      // Waits until the parent has received the announcement.
      await soon(async () => (await asking.runs.list({ states: ["queued", "running"] })).length).toBe(0);
      for (const each of alive) {
        each.endInput();
        expect(await each.end()).toBe(0);
      }
      expect(countWorld(folder.path)).toMatchObject({ problems: [], spawns: 1, announced: 1, lost: 1 });
    },
  );

  test("an agent that outlives its Skein is ended before another process continues its session", async () => {
    const run = await spawned("stubborn", ["say", "stray"], 2, "kill_skein_unwatched");
    expect(run.outcome).toMatchObject({ state: "ok" });
    expect(run.lost).toBe(1);
    expect(promptedTogether(folder.path)).toEqual([]);
    const [first] = startedAgents(folder.path);
    expect(startedAgents(folder.path)).toHaveLength(2);
    expect(isStillThere(first?.pid ?? 0, markOf(folder.path))).toBe(false);
  });
});
