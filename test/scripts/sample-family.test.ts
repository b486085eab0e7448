import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { makeFamily } from "../../scripts/sample-family.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { run } from "../support/cli.ts";

describe("the sample family", () => {
  test("[CLI56] is created once by the rehearsal model: helpers that report, and agents that message each other", async () => {
    using folder = temporaryFolder();
    const dir = join(folder.path, ".skein");
    const lines: string[] = [];
    const say = (line: string) => lines.push(line);
    expect(await makeFamily(dir, { say })).toBe("made");
    expect(statSync(dir).mode & 0o777).toBe(0o700);
    const told = lines.join("\n");
    expect(told).toContain("Three helpers are back:");
    expect(told).toContain("I have told agent:support:main.");
    expect(told).toContain("main summarizes its older turns");
    expect(told).toContain("waits for your approval");
    expect(told).not.toContain("did not succeed");
    const call = (...args: string[]) => run([...args, "--dir", dir], { cwd: folder.path });
    const { sessions } = JSON.parse((await call("sessions", "ls", "--json")).out);
    const keys = sessions.map(({ key }: { key: string }) => key).toSorted();
    expect(keys).toHaveLength(6);
    expect(keys.filter((key: string) => key.startsWith("agent:main:subagent:"))).toHaveLength(3);
    expect(keys).toEqual(
      expect.arrayContaining(["agent:main:main", "agent:main:session:weather", "agent:support:main"]),
    );
    const { runs } = JSON.parse((await call("runs", "ls", "--json")).out);
    const unfinished = runs.filter(({ state }: { state: string }) => state !== "ok" && state !== "merged");
    expect(unfinished.map(({ sessionKey, state }: Record<string, string>) => [sessionKey, state])).toEqual([
      ["agent:support:main", "queued"],
      ["agent:main:session:weather", "error"],
    ]);
    expect((await call("runs", "ls")).out).toMatch(/asks +sessions_send .*the garden/);
    const history = (await call("sessions", "show", "agent:support:main")).out;
    expect(history).toContain("three guests arrive on the first day of spring");
    const tree = (await call("sessions", "tree", "main")).out;
    expect(tree).toContain("2 branches");
    for (const sign of ["[for garden lovers]", "[for families]", "▣ compaction"])
      expect(tree).toContain(sign);

    expect(await makeFamily(dir, { say })).toBe("there");
    expect(lines.join("\n")).toBe(told);
  });

  test("[CLI56] is created in any environment, and leaves an existing configuration unchanged", async () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "skein.yaml");
    const own = "agents: { main: { model: rehearsal/basic }, support: { model: rehearsal/basic } }\n";
    writeFileSync(file, own);
    const lines: string[] = [];
    await makeFamily(folder.path, { say: (line) => lines.push(line) });
    expect(readFileSync(file, "utf8")).toBe(own);
    expect(existsSync(join(folder.path, "work.db"))).toBe(true);
    // Without permission to message another agent, the sample reports the refusal.
    expect(lines.join("\n")).toContain("visibility is restricted");
  });

  test("[CLI56] does not exceed its time limit", async () => {
    using folder = temporaryFolder();
    const lines: string[] = [];
    await makeFamily(folder.path, { say: (line) => lines.push(line), limitMs: 0 });
    expect(lines.at(-1)).toContain("takes longer than expected");
  });
});
