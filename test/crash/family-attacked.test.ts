import { afterEach, describe, expect, test } from "vitest";
import type { Obedient } from "../support/obedient.ts";
import { obedient, told } from "../support/obedient.ts";

const opened: Obedient[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map(({ skein }) => skein.close({ graceMs: 0 })));
});

async function world(...given: Parameters<typeof obedient>): Promise<Obedient> {
  const made = await obedient(...given);
  opened.push(made);
  return made;
}

const ann = (sessionKey: string) => ({ userId: "ann", sessionKey });

describe("what a child gets", () => {
  test("[ATK1] no agent's word about sub-agents gives a grandchild what its parent may not use", async () => {
    const { turn, requests } = await world([
      { subagents: { allowAgents: ["b"], maxSpawnDepth: 3 } },
      { id: "b", subagents: { maxSpawnDepth: 3, tools: { allow: ["sessions_send", "sessions_list"] } } },
    ]);
    const grandchild = { task: "SAY grand", background: false };
    const child = { agentId: "b", task: told(["sessions_spawn", grandchild]), background: false };
    await turn(ann("agent:main:main"), ["sessions_spawn", child]);
    const [ofMain, ofChild, ofGrandchild] = requests.map(({ tools = [] }) => tools.map(({ name }) => name));
    expect(ofMain).toContain("sessions_send");
    expect(ofChild).not.toContain("sessions_send");
    expect(ofGrandchild?.filter((name) => !ofChild?.includes(name))).toEqual([]);
  });
});
