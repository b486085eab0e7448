import { describe, expect, test } from "vitest";
import { openRuns } from "../support/run-skein.ts";

describe("a run of a spawned session", () => {
  test("[SPN9] has the sub-agent notice after the agent's own prompt, and other runs do not", async () => {
    const systems: string[] = [];
    const { skein } = await openRuns({
      agent: { system: "You count." },
      script: (request) => {
        const [first] = request.prompt;
        systems.push(first?.role === "system" ? first.content : "");
        return { text: "Done." };
      },
    });
    const meta = { spawnedBy: "agent:main:main", spawnDepth: 1, role: "leaf" };
    const init = { key: "agent:main:session:child", sessionId: "child", cwd: "/", meta };
    await skein.store.sessions.create({ agentId: "main" }, init);
    for (const sessionId of ["child", "other"]) await skein.session({ sessionId }).send("Go").result;
    expect(systems[0]).toMatch(/^You count\.\n\n# Subagent\n\nYou are a sub-agent/);
    expect(systems[1]).toBe("You count.");
    await skein.close();
  });
});
