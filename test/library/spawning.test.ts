import { globSync, mkdirSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { usesDatabases } from "../support/empty-store.ts";
import type { Family } from "../support/family.ts";
import {
  announced,
  call,
  calls,
  gate,
  lastUser,
  results,
  system,
  withParts,
  words,
} from "../support/family.ts";
import { closeAll, newFolder } from "../support/skein.ts";

afterEach(closeAll);

const main = "agent:main:main";
const spawn = (task: string, more: object = {}) => ["sessions_spawn", { task, ...more }] as const;
const places = [
  { where: "files", dir: () => ({ dir: newFolder() }) },
  { where: "memory", dir: () => ({}) },
];

/** Returns the key of the child that a call created. */
async function childOf({ skein }: Family, result: Readonly<Record<string, unknown>> | undefined) {
  return (await skein.runs.get(String(result?.runId)))?.session.key ?? "";
}

async function planned(family: Family): Promise<void> {
  const turn = family.skein.session().send("Plan");
  await turn.result;
  await family.settled(turn.runId);
}

describe("a child", () => {
  test.each(places)(
    "[FAM15] in the foreground is the result of the call, and is not announced: $where",
    async ({ dir }) => {
      const family = await withParts(
        {
          Plan: [call(...spawn("Geese", { background: false, label: "geese" })), { text: "Twelve." }],
          Geese: [{ text: "12 geese", usage: { input: 30, output: 3 } }],
        },
        dir(),
      );
      await planned(family);
      const [result] = results(family.asked("Plan")[1]);
      expect(result).toMatchObject({
        status: "ok",
        label: "geese",
        mode: "run",
        result: "12 geese",
        outcome: "ok",
        usage: { input: 30, output: 3 },
      });
      expect(await family.runsAt(main)).toHaveLength(1);
      expect(announced(await family.linesAt(main))).toBe(0);
    },
  );

  test.each(places)(
    "[FAM15] [FAM37] in the background is announced once, with its numbers: $where",
    async ({ dir }) => {
      const family = await withParts(
        {
          Plan: [call(...spawn("Geese", { label: "geese" })), { text: "It is on it." }, { text: "Twelve." }],
          Geese: [{ text: "12 geese", usage: { input: 30, output: 3 } }],
        },
        dir(),
      );
      await planned(family);
      expect(results(family.asked("Plan")[1])).toMatchObject([
        { status: "ok", label: "geese", mode: "run", note: expect.stringContaining("pushed") },
      ]);
      const told = lastUser(family.asked("Plan")[2]);
      expect(told).toContain('(label: "geese")');
      expect(told).toContain("Status: completed successfully");
      expect(told).toMatch(/run time \d+\.\ds, tokens 30 in \/ 3 out/);
      expect(announced(await family.linesAt(main))).toBe(1);
      expect((await family.linesAt(main)).at(-1)).toBe("assistant: Twelve.");
    },
  );

  test("[FAM15] that failed in the foreground is reported in the result of the call", async () => {
    const family = await withParts({
      Plan: [call(...spawn("Geese", { background: false })), { text: "A pity." }],
      Geese: [{ error: { status: 400, message: "no geese" } }],
    });
    await planned(family);
    expect(results(family.asked("Plan")[1])).toMatchObject([
      { status: "ok", outcome: "error", error: expect.stringContaining("no geese") },
    ]);
    expect(announced(await family.linesAt(main))).toBe(0);
  });

  test.each(places)(
    "[FAM16] that forks starts with the conversation before its call: $where",
    async ({ dir }) => {
      const family = await withParts(
        {
          Remember: (request) => {
            const said = lastUser(request);
            if (said.includes("[Subagent Task]: Which number?")) return { text: "Seven." };
            if (said.includes("Remember")) return { text: "I do." };
            return results(request).length === 0
              ? call(...spawn("Which number?", { context: "fork", background: false }))
              : { text: "Done." };
          },
        },
        dir(),
      );
      await family.skein.session().send("Remember 7").result;
      await family.skein.session().send("Ask somebody").result;
      const asked = family.asked("Remember");
      const child = asked.find((request) => lastUser(request).includes("Which number?"));
      const before = words(child).map((line) => line.split("\n")[0]);
      expect(before).toContain("user: Remember 7");
      expect(before).toContain("assistant: I do.");
      expect(before.at(-2)).toBe("user: Ask somebody");
      expect(JSON.stringify(child?.prompt)).not.toContain("tool-call");
      expect(results(asked.at(-1))).toMatchObject([{ result: "Seven.", outcome: "ok" }]);
    },
  );

  test.skipIf(usesDatabases())(
    "[FAM17] [FAM38] gets its files, and no transcript has their contents",
    async () => {
      const dir = newFolder();
      const content = "Two cups of rice, and nobody is to know.";
      const attachments = [{ name: "recipe.txt", content, mimeType: "text/plain" }];
      const family = await withParts(
        {
          Plan: [call(...spawn("Cook", { attachments, background: false })), { text: "Good." }],
          Cook: [{ text: "Cooked." }],
        },
        { dir },
      );
      await planned(family);
      const [result] = results(family.asked("Plan")[1]);
      expect(result).toMatchObject({ attachments: { count: 1, totalBytes: content.length } });
      const told = lastUser(family.asked("Cook")[0]);
      const path = told.match(/recipe\.txt \(\d+ bytes\): (.*)$/m)?.[1] ?? "";
      expect(told).toContain("untrusted");
      expect(path).toBe("attachments/recipe.txt");
      const [file] = globSync(join(dir, "agents/main/attachments/*/recipe.txt"));
      expect(readFileSync(file ?? "", "utf8")).toBe(content);
      const logs = readdirSync(dir, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile() && entry.name.endsWith(".jsonl"))
        .map((entry) => readFileSync(join(entry.parentPath, entry.name), "utf8"));
      expect(logs.length).toBeGreaterThan(1);
      expect(logs.join()).not.toContain("nobody is to know");
      expect(logs.join()).toContain("recipe.txt");
    },
  );

  test("[FAM18] has the label, model, thinking, tools and folder that it was spawned with", async () => {
    const cwd = realpathSync(newFolder());
    mkdirSync(join(cwd, "inside"));
    const { tool } = gate();
    const wish = { label: "the same", thinking: "low", tools: ["gate"], cwd: "inside" };
    const family = await withParts(
      {
        Plan: [
          calls(
            spawn("Geese", wish),
            spawn("Ducks", { label: "the same" }),
            spawn("Basic", { model: "rehearsal/basic" }),
          ),
          call("sessions_yield"),
          { text: "Good." },
        ],
        Geese: [{ text: "12" }],
        Ducks: [{ text: "5" }],
      },
      { agent: { tools: [tool] }, dir: newFolder() },
    );
    const turn = family.skein.session({ cwd }).send("Plan");
    await turn.result;
    const [geese, ducks, basic] = results(family.asked("Plan")[1]);
    expect([geese?.label, ducks?.label]).toEqual(expect.arrayContaining(["the same", "the same (2)"]));
    expect((family.asked("Geese")[0]?.tools ?? []).map(({ name }) => name)).toEqual(["gate"]);
    const offered = (family.asked("Ducks")[0]?.tools ?? []).map(({ name }) => name);
    expect(offered).toEqual(["gate"]);
    expect(await family.at(await childOf(family, geese))).toMatchObject({
      cwd: join(cwd, "inside"),
      meta: { thinkingLevel: "low", spawnedBy: main, role: "leaf", spawnDepth: 1 },
    });
    expect(await family.at(await childOf(family, ducks))).toMatchObject({ cwd });
    const key = await childOf(family, basic);
    expect(await family.at(key)).toMatchObject({ meta: { model: "rehearsal/basic" } });
    const step = await family.until("run.step", ({ sessionKey }) => sessionKey === key);
    expect(step.model).toBe("basic");
    expect(system(family.asked("Geese")[0])).toContain("You are a sub-agent (role: leaf, depth: 1)");
  });
});

describe("limits on spawning", () => {
  test.each(places)("[FAM19] twenty calls of one message never exceed the limit: $where", async ({ dir }) => {
    const { tool, open } = gate();
    const tasks = Array.from({ length: 20 }, (_, index) => spawn(`Goose ${index}`));
    const family = await withParts(
      {
        Plan: [calls(...tasks), { text: "Five." }, { text: "Good." }, { text: "Good." }],
        Goose: (request) => (results(request).length === 0 ? call("gate") : { text: "Honk." }),
      },
      { agent: { tools: [tool] }, ...dir() },
    );
    const turn = family.skein.session().send("Plan");
    await turn.result;
    const told = results(family.asked("Plan")[1]);
    expect(told.filter(({ status }) => status === "ok")).toHaveLength(5);
    const refused = told.filter(({ code }) => code === "children_exceeded");
    expect(refused).toHaveLength(15);
    expect(refused[0]).toMatchObject({ status: "forbidden", error: expect.stringContaining("(5/5)") });
    open();
    await family.settled(turn.runId);
    expect(announced(await family.linesAt(main))).toBe(5);
  });

  test("[FAM19] two Skeins on one folder never exceed the limit", async () => {
    const dir = newFolder();
    const parts = { Goose: [{ text: "Honk", stall: true }] };
    const both = [await withParts(parts, { dir }), await withParts(parts, { dir, workers: false })];
    await both[0]?.make(main);
    const tried = both.flatMap((family) =>
      Array.from({ length: 8 }, () => family.call("sessions_spawn", { task: "Goose" })),
    );
    const told = await Promise.all(tried);
    expect(told.filter(({ status }) => status === "ok")).toHaveLength(5);
    expect(told.filter(({ code }) => code === "children_exceeded")).toHaveLength(11);
    const listed = await both[1]?.call("subagents", { action: "list" });
    expect(listed?.active).toHaveLength(5);
  });

  test("[FAM27] a child that gets sessions_spawn back cannot spawn deeper either", async () => {
    const subagents = { maxSpawnDepth: 1, tools: { allow: ["sessions_spawn"] } };
    const family = await withParts({ Bottom: [{ text: "Good." }] }, { agent: { subagents } });
    const bottom = await childOf(family, await family.call("sessions_spawn", { task: "Bottom" }));
    const refused = await family.call("sessions_spawn", { task: "Deeper" }, bottom);
    expect(refused).toMatchObject({ status: "forbidden", code: "depth_exceeded" });
    expect(refused.error).toContain("(current depth: 1, max: 1)");
  });

  test("[FAM27] a child spawns as deep as the agent allows, and no deeper", async () => {
    const { tool, open } = gate();
    const family = await withParts(
      {
        Plan: [calls(spawn("Middle"), ["sessions_yield", {}]), { text: "All good." }],
        Middle: [calls(spawn("Bottom"), ["sessions_yield", {}]), { text: "Below is good." }],
        Bottom: [call("gate"), { text: "Good." }],
      },
      { agent: { tools: [tool], subagents: { maxSpawnDepth: 2 } } },
    );
    const turn = family.skein.session().send("Plan");
    await family.until("run.tool", ({ toolName }) => toolName === "gate");
    const bottom = await childOf(family, { runId: (await family.skein.runs.list({ limit: 1 }))[0]?.runId });
    const refused = await family.call("sessions_spawn", { task: "Deeper" }, bottom);
    expect(refused).toMatchObject({ status: "forbidden", code: "forbidden" });
    expect(refused.error).toContain('the rules of sub-agents deny "sessions_spawn"');
    const offered = (part: string) => (family.asked(part)[0]?.tools ?? []).map(({ name }) => name);
    expect(offered("Middle")).toEqual(
      expect.arrayContaining(["sessions_spawn", "sessions_yield", "subagents"]),
    );
    expect(offered("Bottom")).toEqual(["gate"]);
    open();
    expect((await turn.result).reply).toBe("All good.");
    expect(announced(await family.linesAt(main))).toBe(1);
  });

  test("[FAM27] a child's agent must be allowed, and is never less sandboxed than its parent", async () => {
    const family = await withParts(
      { Task: [{ text: "Done." }] },
      {
        agent: { subagents: { allowAgents: ["closed"] } },
        others: [{ id: "closed", sandboxed: true, subagents: { allowAgents: ["*"] } }, { id: "other" }],
      },
    );
    const tried = async (args: object, from = main) => {
      const { status, code } = await family.call(
        "sessions_spawn",
        { task: "Task", background: false, ...args },
        from,
      );
      return code ?? status;
    };
    expect(await tried({ agentId: "other" })).toBe("agent_not_allowed");
    expect(await tried({ sandbox: "require" })).toBe("sandbox_restricted");
    expect(await tried({ agentId: "closed", sandbox: "require" })).toBe("ok");
    expect(await tried({ agentId: "other" }, "agent:closed:main")).toBe("sandbox_restricted");
    expect(await tried({ agentId: "nobody" }, "agent:closed:main")).toBe("not_found");
  });
});
