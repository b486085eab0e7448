import { existsSync } from "node:fs";
import { afterEach, describe, expect, test } from "vitest";
import type { Family, FamilyOptions } from "../support/family.ts";
import { announced, begun, call, calls, desk, lastUser, results, withParts } from "../support/family.ts";
import { closeAll, newFolder } from "../support/skein.ts";

afterEach(closeAll);

const main = "agent:main:main";
const spawn = (task: string, more: object = {}) => ["sessions_spawn", { task, ...more }] as const;
const plan = (more: object = {}) => [
  call(...spawn("Geese", { label: "geese", ...more })),
  { text: "It is on it." },
  { text: "I see." },
];
const places = [
  { where: "files", dir: () => ({ dir: newFolder() }) },
  { where: "memory", dir: () => ({}) },
];

/** A family whose child has started an answer that never finishes. */
async function stalled(options: FamilyOptions = {}) {
  const family = await withParts({ Plan: plan(), Geese: [{ text: "One, two", stall: true }] }, options);
  const turn = family.skein.session().send("Plan");
  await turn.result;
  await family.until("run.delta", ({ sessionKey }) => sessionKey !== main);
  const [child] = await family.skein.runs.list({ startedBy: turn.runId });
  if (child === undefined) throw new Error("there is no child");
  return { family, runId: turn.runId, child };
}

/** Returns the announcements of this end that the parent received, once everything has ended. */
async function toldOnce(family: Family, runId: string): Promise<string> {
  await family.settled(runId);
  const lines = await family.linesAt(main);
  expect(announced(lines)).toBe(1);
  expect(lines.at(-1)).toBe("assistant: I see.");
  return lines.at(-2) ?? "";
}

describe.each(places)("an end of a child is announced once ($where)", ({ dir }) => {
  test("[FAM28] when the parent's agent kills it", async () => {
    const { family, runId } = await stalled(dir());
    const killed = await family.call("subagents", { action: "kill", target: "geese" });
    expect(killed).toMatchObject({ status: "ok", killed: 1 });
    const told = await toldOnce(family, runId);
    expect(told).toContain("Status: aborted");
    expect(told).toContain("One, two");
  });

  test("[FAM28] when its run is aborted", async () => {
    const { family, runId, child } = await stalled(dir());
    await family.skein.runs.abort(child.runId);
    expect(await toldOnce(family, runId)).toContain("Status: aborted");
  });

  test("[FAM28] when it times out", async () => {
    // The time limit might expire before the run has produced any text.
    const Geese = [{ text: "One, two", stall: true }];
    const family = await withParts({ Plan: plan({ runTimeoutSeconds: 1 }), Geese }, dir());
    const { runId, result } = family.skein.session().send("Plan");
    await result;
    expect(await toldOnce(family, runId)).toContain("Status: timed out");
  });

  test("[FAM28] when its session is removed while it runs", async () => {
    const { family, runId, child } = await stalled(dir());
    await family.skein.store.sessions.remove({ agentId: "main" }, child.session.sessionId);
    expect(await toldOnce(family, runId)).toMatch(/Status: (aborted|failed)/);
  });

  test("[FAM28] when its model fails", async () => {
    const parts = { Plan: plan(), Geese: [{ error: { status: 400, message: "no geese" } }] };
    const family = await withParts(parts, dir());
    const { runId, result } = family.skein.session().send("Plan");
    await result;
    expect(await toldOnce(family, runId)).toMatch(/Status: failed: .*no geese/);
  });
});

describe("the end of a child after a restart", () => {
  test("[FAM28] in the middle of its turn is announced once", async () => {
    const dir = newFolder();
    const { family, runId } = await stalled({ dir });
    await family.skein.close({ graceMs: 0 });
    const second = await withParts({ Plan: [{ text: "I see." }], Geese: [{ text: "12 geese" }] }, { dir });
    await second.until("run.ended", ({ sessionKey }) => sessionKey === main);
    expect(await toldOnce(second, runId)).toContain("12 geese");
  });

  test("[FAM28] in the middle of the parent's turn is announced once, and the parent does not spawn again", async () => {
    const dir = newFolder();
    const first = await withParts(
      { Plan: [plan()[0] ?? {}, { text: "It is", stall: true }], Geese: [{ text: "One, two", stall: true }] },
      { dir },
    );
    const { runId } = begun(first.skein.session().send("Plan"));
    await first.until("run.delta", ({ sessionKey }) => sessionKey === main);
    await first.until("run.delta", ({ sessionKey }) => sessionKey !== main);
    await first.skein.close({ graceMs: 0 });
    const second = await withParts(
      { Plan: [{ text: "It is on it." }, { text: "I see." }], Geese: [{ text: "12 geese" }] },
      { dir },
    );
    await second.until("run.ended", (event) => event.runId === runId);
    await second.settled(runId);
    expect(announced(await second.linesAt(main))).toBe(1);
    expect(await second.skein.runs.list({ startedBy: runId })).toHaveLength(1);
  });

  test("[FAM28] of the parent that waits for it is still the result of the call", async () => {
    const dir = newFolder();
    const waited = call(...spawn("Geese", { background: false }));
    const first = await withParts({ Plan: [waited], Geese: [{ text: "One, two", stall: true }] }, { dir });
    const { runId } = begun(first.skein.session().send("Plan"));
    await first.until("run.delta", ({ sessionKey }) => sessionKey !== main);
    await first.skein.close({ graceMs: 0 });
    const second = await withParts({ Plan: [{ text: "Twelve." }], Geese: [{ text: "12 geese" }] }, { dir });
    await second.until("run.ended", (event) => event.runId === runId);
    await second.settled(runId);
    expect(results(second.asked("Plan")[0])).toMatchObject([{ outcome: "ok", result: "12 geese" }]);
    expect(announced(await second.linesAt(main))).toBe(0);
    expect(await second.runsAt(main)).toHaveLength(1);
  });
});

describe("an ended child", () => {
  test.each(places)(
    "[FAM29] that is to be deleted is removed when its announcement is written: $where",
    async ({ dir }) => {
      const attachments = [{ name: "a.txt", content: "a" }];
      const family = await withParts(
        { Plan: plan({ cleanup: "delete", attachments }), Geese: [{ text: "12 geese" }] },
        dir(),
      );
      const { runId, result } = family.skein.session().send("Plan");
      await result;
      const gone = await family.until("session.deleted");
      await toldOnce(family, runId);
      const isTold = family.events.findIndex(
        (event) =>
          event.type === "entry.appended" &&
          event.sessionKey === main &&
          JSON.stringify(event.entry).includes("12 geese"),
      );
      expect(isTold).toBeGreaterThan(-1);
      expect(isTold).toBeLessThan(family.events.indexOf(gone));
      expect(await family.skein.session({ sessionKey: gone.sessionKey }).record()).toBeNull();
      const path = lastUser(family.asked("Geese")[0]).match(/a\.txt \(1 bytes\): (.*)$/m)?.[1] ?? "";
      expect(path).not.toBe("");
      await expect.poll(() => existsSync(path)).toBe(false);
    },
  );

  test.each(places)("[FAM30] that is kept is archived after its retention time: $where", async ({ dir }) => {
    let now = Date.parse("2026-01-05T10:00:00Z");
    const family = await withParts(
      { Plan: [...plan(), { text: "Later." }, { text: "Much later." }], Geese: [{ text: "12 geese" }] },
      { ...dir(), clock: { now: () => now } },
    );
    const { runId, result } = family.skein.session().send("Plan");
    await result;
    await family.settled(runId);
    const [child] = await family.skein.runs.list({ startedBy: runId });
    const isArchived = async () => (await family.at(child?.session.key ?? "")).meta.archived === true;
    now += 59 * 60_000;
    await family.skein.session().send("Still there?").result;
    expect(await isArchived()).toBe(false);
    now += 2 * 60_000;
    await family.skein.session().send("And now?").result;
    await expect.poll(isArchived).toBe(true);
    const sessions = await family.call("sessions_list", {});
    expect(sessions.count).toBe(1);
  });
});

describe("children and channels", () => {
  const settings = { channels: { desk: { users: { ann: null } } } };
  const inbound = { channel: "desk", accountId: "acc", peer: "ann" };

  test("[FAM31] a thread is opened for a child, and messages in it reach the child", async () => {
    const opened: string[] = [];
    const { channel, told } = desk("desk", async (_, title) => {
      opened.push(title);
      return "T1";
    });
    const family = await withParts(
      {
        Plan: [
          call(...spawn("Geese", { thread: true, label: "geese" })),
          { text: "It is on it." },
          { text: "I see." },
        ],
        Geese: [{ text: "12 geese." }, { text: "And three ducks." }],
      },
      { channels: [channel], settings },
    );
    const { runId } = await family.skein.receive({ ...inbound, messageId: "m1", text: "Plan" });
    await family.until("run.ended", (event) => event.runId === runId);
    await family.settled(runId);
    expect(opened).toEqual(["geese"]);
    const [child] = await family.skein.runs.list({ startedBy: runId });
    expect(results(family.asked("Plan")[1])).toMatchObject([{ mode: "session", threadId: "T1" }]);
    const into = await family.skein.receive({
      ...inbound,
      threadId: "T1",
      messageId: "m2",
      text: "And ducks?",
    });
    expect(into.sessionKey).toBe(child?.session.key);
    await family.until("run.ended", (event) => event.runId === into.runId);
    const thread = { channel: "desk", to: "ann", accountId: "acc", threadId: "T1" };
    const { threadId: _, ...outside } = thread;
    await expect.poll(() => told.length).toBe(4);
    const posted = (target: object) =>
      told.filter((each) => JSON.stringify(each.target) === JSON.stringify(target));
    const inThread = told.filter((each) => "threadId" in each.target);
    expect(inThread).toMatchObject([
      { text: "12 geese.", target: thread },
      { text: "And three ducks.", target: thread },
    ]);
    expect(posted(outside).map(({ text }) => text)).toEqual(["It is on it.", "I see."]);
  });

  test("[FAM32] the parent's answer to an announcement goes to the origin of the request, with account and thread", async () => {
    const { channel, told } = desk();
    const family = await withParts(
      { Plan: plan(), Geese: [{ text: "12 geese" }] },
      { channels: [channel], settings },
    );
    const message = { ...inbound, threadId: "T9", messageId: "m1", text: "Plan" };
    const { runId } = await family.skein.receive(message);
    await family.until("run.ended", (event) => event.runId === runId);
    await family.settled(runId);
    const target = { channel: "desk", to: "ann", accountId: "acc", threadId: "T9" };
    await expect
      .poll(() => told)
      .toEqual([
        { text: "It is on it.", target },
        { text: "I see.", target },
      ]);
  });

  test("[FAM32] also for a parent that slept for its children", async () => {
    const { channel, told } = desk();
    const family = await withParts(
      {
        Plan: [calls(spawn("Geese"), ["sessions_yield", {}]), { text: "Twelve." }],
        Geese: [{ text: "12 geese" }],
      },
      { channels: [channel], settings },
    );
    const { runId } = await family.skein.receive({
      ...inbound,
      threadId: "T9",
      messageId: "m1",
      text: "Plan",
    });
    await family.until("run.ended", (event) => event.runId === runId);
    const target = { channel: "desk", to: "ann", accountId: "acc", threadId: "T9" };
    await expect.poll(() => told).toEqual([{ text: "Twelve.", target }]);
  });
});
