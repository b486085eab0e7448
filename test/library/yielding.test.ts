import { afterEach, describe, expect, test } from "vitest";
import { announced, begun, call, calls, gate, lastUser, results, withParts } from "../support/family.ts";
import { closeAll, newFolder } from "../support/skein.ts";

afterEach(closeAll);

const places = [
  { where: "files", dir: () => ({ dir: newFolder() }) },
  { where: "memory", dir: () => ({}) },
];
const spawn = (task: string, more: object = {}) => ["sessions_spawn", { task, ...more }] as const;
const yielded = ["sessions_yield", {}] as const;
const main = "agent:main:main";

describe("a run that yields", () => {
  test.each(places)("[FAM20] gets everything that arrives as one turn: $where", async ({ dir }) => {
    const { skein, asked, linesAt, runsAt, reported } = await withParts(
      {
        Count: [calls(spawn("Geese"), spawn("Ducks"), spawn("Swans"), yielded), { text: "Twenty." }],
        Geese: [{ text: "12 geese" }],
        Ducks: [{ text: "5 ducks" }],
        Swans: [{ text: "3 swans" }],
      },
      dir(),
    );
    const { reply } = await skein.session().send("Count").result;
    expect(reply).toBe("Twenty.");
    expect(asked("Count")).toHaveLength(2);
    const told = lastUser(asked("Count")[1]);
    for (const said of ["12 geese", "5 ducks", "3 swans"]) expect(told).toContain(said);
    expect(announced(await linesAt(main))).toBe(3);
    expect((await runsAt(main)).map(({ state }) => state)).toEqual(["ok", "merged", "merged", "merged"]);
    expect(reported).toEqual([]);
  });

  test("[FAM21] wakes only for what it named, and the rest is a separate turn", async () => {
    const { tool, open } = gate();
    const { skein, asked, linesAt, runsAt } = await withParts(
      {
        Count: [
          calls(spawn("Geese"), spawn("Ducks")),
          (request) => call("sessions_yield", { waitFor: [results(request)[0]?.runId] }),
          { text: "Geese first." },
          { text: "And ducks." },
        ],
        Geese: [{ text: "12 geese" }],
        Ducks: [call("gate"), { text: "5 ducks" }],
      },
      { agent: { tools: [tool] } },
    );
    const { reply, runId } = await skein.session().send("Count").result;
    expect(reply).toBe("Geese first.");
    expect(lastUser(asked("Count")[2])).not.toContain("5 ducks");
    open();
    await skein.settled((await skein.runs.get(runId))?.root.rootId ?? "");
    expect((await linesAt(main)).at(-1)).toBe("assistant: And ducks.");
    expect((await runsAt(main)).map(({ state }) => state)).toEqual(["ok", "merged", "ok"]);
  });

  test("[FAM22] continues if there is nothing to wait for", async () => {
    const { skein, asked } = await withParts({ Wait: [call("sessions_yield"), { text: "Well." }] });
    expect((await skein.session().send("Wait").result).reply).toBe("Well.");
    expect(results(asked("Wait")[1])).toMatchObject([{ status: "error", code: "nothing_to_wait_for" }]);
  });

  test("[FAM23] sleeps through a restart, and is woken once", async () => {
    const dir = newFolder();
    const parts = { Count: [calls(spawn("Geese"), yielded), { text: "Twelve." }] };
    const first = await withParts({ ...parts, Geese: [{ text: "One, two", stall: true }] }, { dir });
    const { runId } = begun(first.skein.session().send("Count"));
    await first.until("run.sleeping");
    await first.until("run.delta");
    await first.skein.close({ graceMs: 0 });
    const second = await withParts({ Count: [{ text: "Twelve." }], Geese: [{ text: "12 geese" }] }, { dir });
    await second.until("run.ended", (event) => event.runId === runId);
    await second.settled(runId);
    expect(lastUser(second.asked("Count")[0])).toContain("12 geese");
    const lines = await second.linesAt(main);
    expect(announced(lines)).toBe(1);
    expect(lines.at(-1)).toBe("assistant: Twelve.");
    expect(second.asked("Count")).toHaveLength(1);
  });

  test("[FAM24] is woken at its timeout with what is still open, which is announced when it arrives", async () => {
    const dir = newFolder();
    const { tool, open } = gate();
    let now = Date.parse("2026-01-05T10:00:00Z");
    const options = { dir, agent: { tools: [tool] }, clock: { now: () => now } };
    const first = await withParts(
      {
        Count: [calls(spawn("Geese", { label: "the geese", runTimeoutSeconds: 0 }), yielded)],
        Geese: [call("gate")],
      },
      options,
    );
    const { runId } = begun(first.skein.session().send("Count"));
    await first.until("run.sleeping");
    await first.until("run.tool");
    await first.skein.close({ graceMs: 0 });
    now += 61 * 60_000;
    const second = await withParts(
      { Count: [{ text: "I go on." }, { text: "Late." }], Geese: [{ text: "12 geese" }] },
      options,
    );
    await second.until("run.ended", (event) => event.runId === runId);
    const told = lastUser(second.asked("Count")[0]);
    const [child] = await second.skein.runs.list({ startedBy: runId });
    expect(told).toContain(child?.runId);
    expect((await second.skein.runs.get(runId))?.outcome?.reply).toBe("I go on.");
    open();
    await second.settled(runId);
    expect(announced(await second.linesAt(main))).toBe(1);
    expect((await second.linesAt(main)).at(-1)).toBe("assistant: Late.");
  });
});

describe("a run that does not yield", () => {
  test.each(places)(
    "[FAM25] gets one turn for everything that ends within a second: $where",
    async ({ dir }) => {
      const { tool, open } = gate();
      const { skein, asked, linesAt } = await withParts(
        {
          Count: [calls(spawn("Geese"), spawn("Ducks")), { text: "They are on it." }, { text: "Seventeen." }],
          Geese: [call("gate"), { text: "12 geese" }],
          Ducks: [call("gate"), { text: "5 ducks" }],
        },
        { agent: { tools: [tool] }, ...dir() },
      );
      const { runId, reply } = await skein.session().send("Count").result;
      expect(reply).toBe("They are on it.");
      open();
      await skein.settled((await skein.runs.get(runId))?.root.rootId ?? "");
      expect(asked("Count")).toHaveLength(3);
      const told = lastUser(asked("Count")[2]);
      expect(told).toContain("12 geese");
      expect(told).toContain("5 ducks");
      expect(announced(await linesAt(main))).toBe(2);
    },
  );
});

test("[REH1] the rehearsal model spawns helpers, waits for them, and combines their results", async () => {
  const { skein, linesAt, reported } = await withParts({}, { agent: { model: "rehearsal/basic" } });
  const text = "spawn three helpers to describe the gardens of Kyoto and summarize";
  const { reply } = await skein.session().send(text).result;
  const lines = await linesAt(main);
  expect(announced(lines)).toBe(3);
  expect(lines.filter((line) => line.startsWith("assistant: ")).length).toBeGreaterThan(1);
  expect(reply.match(/gardens of Kyoto/g)).toHaveLength(3);
  expect(reported).toEqual([]);
});
