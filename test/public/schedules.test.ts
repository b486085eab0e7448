import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { scriptedModel, temporaryFolder } from "../../src/entry-testing.ts";
import type { ConfigInput, Skein, SkeinOptions } from "../../src/index.ts";
import { createSkein, defineAgent } from "../../src/index.ts";
import { emptyStore } from "../support/empty-store.ts";
import { soon } from "../support/soon.ts";

type Schedules = NonNullable<ConfigInput["schedules"]>;

const at = (text: string) => Date.parse(`${text}Z`);
const monday = "2026-01-05T08:00:00";
const minute = 60_000;
const hour = 60 * minute;

let folder: ReturnType<typeof temporaryFolder>;
/** The time in all processes. */
let time: number;
/** The last user message of every request to the model. */
let asked: string[];
const opened: Skein[] = [];

beforeEach(() => {
  folder = temporaryFolder("skein-schedules-");
  time = at(monday);
  asked = [];
});
afterEach(async () => {
  await closeAll();
  folder.remove();
});

async function closeAll(): Promise<void> {
  await Promise.all(opened.splice(0).map((skein) => skein.close({ graceMs: 0 })));
}

/** A process that shares the folder or database of the others. */
async function open(schedules: Schedules, options: SkeinOptions = {}): Promise<Skein> {
  const model = scriptedModel(({ prompt }) => {
    const said = prompt.findLast(({ role }) => role === "user")?.content;
    asked.push(JSON.stringify(said));
    return { text: "Done." };
  });
  const skein = await createSkein({
    dir: folder.path,
    ...(await emptyStore({ dir: folder.path })),
    config: { schedules },
    env: {},
    quiet: true,
    app: "schedules",
    models: { "own/model": model },
    agents: [
      defineAgent({ id: "main", model: "own/model" }),
      defineAgent({ id: "news", model: "own/model" }),
    ],
    clock: { now: () => time },
    ...options,
  });
  opened.push(skein);
  return skein;
}

const daily = { cron: "0 9 * * *", message: "daily news" };

/** Names of the schedules that started runs, oldest first. A run in the main session is named after its session. */
async function started(skein: Skein): Promise<string[]> {
  const runs = await skein.runs.list({ limit: 1000 });
  return runs
    .filter(({ outcome }) => outcome?.state === "ok")
    .map(({ session }) => session.key.split(":")[3] ?? "main")
    .toReversed();
}

const nextOf = async (skein: Skein, name: string) => {
  const found = (await skein.schedules.list()).find((each) => each.name === name);
  return found?.nextAt === undefined || found.nextAt === null ? null : new Date(found.nextAt).toISOString();
};

describe("due times", () => {
  test("[SCH1] each starts one run, although two processes share the store", async () => {
    // Schedules are processed in order, so a run of the last one shows that its process has handled the others.
    const reports: unknown[] = [];
    const report = (error: unknown) => void reports.push(error);
    const one = await open({ daily, one: { ...daily, message: "one" } }, { report });
    await open({ daily, two: { ...daily, message: "two" } }, { report });
    for (const day of ["05", "06", "07"]) {
      time = at(`2026-01-${day}T09:00:00`);
      const count = 3 * (Number(day) - 4);
      await soon(() => started(one)).toHaveLength(count);
    }
    expect((await started(one)).toSorted()).toEqual([
      ...["daily", "daily", "daily", "one", "one", "one", "two", "two", "two"],
    ]);
    expect(reports).toEqual([]);
  });

  test("[SCH1] a process that executes no runs leaves them to the others", async () => {
    const idle = await open({ daily }, { workers: false });
    time = at("2026-01-05T09:00:00");
    const worker = await open({ daily, marker: daily });
    time = at("2026-01-06T09:00:00");
    await soon(() => started(idle)).toHaveLength(2);
    expect((await started(worker)).toSorted()).toEqual(["daily", "marker"]);
  });

  test("[SCH2] one that passes while no process is running is skipped", async () => {
    const skipped = { ...daily, missed: "skip" as const };
    await open({ skipped, marker: { ...daily, missed: "once" } });
    await closeAll();
    time = at("2026-01-07T12:00:00");
    const next = await open({ skipped, marker: { ...daily, missed: "once" } });
    await soon(() => started(next)).toEqual(["marker"]);
    time = at("2026-01-08T09:00:00");
    await soon(async () => (await started(next)).toSorted()).toEqual(["marker", "marker", "skipped"]);
  });

  test("[SCH3] with `once`, all that pass while no process is running start one run", async () => {
    const schedules: Schedules = {
      daily: { ...daily, missed: "once" },
      marker: { cron: "0 13 * * *", message: "x" },
    };
    await open(schedules);
    await closeAll();
    time = at("2026-01-08T12:00:00");
    const [next] = await Promise.all([open(schedules), open(schedules)]);
    await soon(() => started(next)).toEqual(["daily"]);
    time = at("2026-01-08T13:00:00");
    await soon(() => started(next)).toEqual(["daily", "marker"]);
  });

  test("[SCH2] those before a schedule was added or changed are not missed", async () => {
    const marker = { ...daily, missed: "once" as const };
    await open({ marker });
    await closeAll();
    time = at("2026-01-05T12:00:00");
    const added = { ...daily, missed: "once" as const };
    const second = await open({ added, changed: added, marker });
    await soon(() => started(second)).toEqual(["marker"]);
    await closeAll();
    time = at("2026-01-05T14:00:00");
    const third = await open({
      added,
      changed: { ...added, cron: "0 13 * * *" },
      late: { ...added, cron: "0 15 * * *" },
    });
    time = at("2026-01-05T15:00:00");
    await soon(() => started(third)).toEqual(["marker", "late"]);
  });

  test("[SCH4] a time of day that a clock change skips is due when the clock changes", async () => {
    time = at("2026-03-28T12:00:00");
    const skein = await open({
      nightly: { cron: "30 2 * * *", timezone: "Europe/Berlin", message: "back up" },
    });
    expect(await nextOf(skein, "nightly")).toBe("2026-03-29T01:00:00.000Z");
    time = at("2026-03-29T01:00:00");
    await soon(() => started(skein)).toEqual(["nightly"]);
    expect(await nextOf(skein, "nightly")).toBe("2026-03-30T00:30:00.000Z");
  });

  test("[SCH4] one of several times of day that a clock change skips is due when the clock changes", async () => {
    time = at("2026-03-28T14:00:00");
    const skein = await open({
      checks: { cron: "0,30 2,14 * * *", timezone: "Europe/Berlin", message: "check" },
    });
    expect(await nextOf(skein, "checks")).toBe("2026-03-29T01:00:00.000Z");
    time = at("2026-03-29T01:00:00");
    await soon(() => started(skein)).toEqual(["checks"]);
    expect(await nextOf(skein, "checks")).toBe("2026-03-29T12:00:00.000Z");
  });

  test("[SCH5] one of several times of day that occurs twice is due once", async () => {
    time = at("2026-10-25T00:30:00");
    const skein = await open({
      checks: { cron: "30 2,14 * * *", timezone: "Europe/Berlin", message: "check" },
    });
    expect(await nextOf(skein, "checks")).toBe("2026-10-25T13:30:00.000Z");
  });

  test("[SCH5] a time of day that occurs twice is due once", async () => {
    time = at("2026-10-24T12:00:00");
    const skein = await open({
      nightly: { cron: "30 2 * * *", timezone: "Europe/Berlin", message: "back up" },
      marker: { cron: "30 1 25 10 *", message: "x" },
    });
    time = at("2026-10-25T00:30:00");
    await soon(() => started(skein)).toEqual(["nightly"]);
    time = at("2026-10-25T01:30:00");
    await soon(() => started(skein)).toEqual(["nightly", "marker"]);
    expect(await nextOf(skein, "nightly")).toBe("2026-10-26T01:30:00.000Z");
  });

  test("[SCH6] one that is months away is met, and a clock that is set back does not repeat it", async () => {
    const skein = await open({
      yearly: { cron: "0 0 1 7 *", message: "happy July" },
      marker: { cron: "30 * * * *", message: "x" },
    });
    time = at("2026-07-01T00:00:00");
    await soon(() => started(skein)).toContain("yearly");
    time -= hour / 2;
    await soon(() => nextOf(skein, "yearly")).toBe("2026-07-01T00:00:00.000Z");
    time += hour;
    const runs = async () => (await started(skein)).filter((name) => name === "marker").length;
    const before = await runs();
    await soon(runs).toBeGreaterThanOrEqual(Math.max(1, before));
    time += 2 * hour;
    await soon(runs).toBeGreaterThan(before);
    expect((await started(skein)).filter((name) => name === "yearly")).toHaveLength(1);
  });

  test.each(["while a process is running", "before a process starts"])(
    "[SCH19] one is met although the clock was a year ahead and was corrected %s, and no run is repeated",
    async (when) => {
      const schedules: Schedules = { often: { cron: "* * * * *", message: "x", missed: "once" } };
      const ahead = at("2027-01-05T08:01:00");
      time = ahead - minute;
      let skein = await open(schedules);
      const lastRun = async () => (await skein.schedules.list())[0]?.lastRun?.runId;
      time = ahead;
      await soon(() => started(skein)).toEqual(["often"]);
      const first = await lastRun();
      if (when === "before a process starts") await closeAll();
      time = at(monday);
      if (when === "before a process starts") skein = await open(schedules);
      // A process watches from the moment at which it sees the correction, so the time passes until a due time follows.
      const passTime = async () => {
        time += minute;
        return (await started(skein)).length;
      };
      await soon(passTime).toBeGreaterThan(1);
      time = ahead;
      await soon(lastRun).toBe(first);
    },
  );
});

describe("pause, resume and run", () => {
  test("[SCH7] a paused schedule starts no run, also after a restart and in another process", async () => {
    const schedules: Schedules = { daily, marker: daily };
    const first = await open(schedules);
    const paused = await first.schedules.pause("daily");
    expect(paused).toMatchObject({ name: "daily", pausedAt: at(monday), nextAt: null });
    const other = await open(schedules);
    time = at("2026-01-05T09:00:00");
    await soon(() => started(other)).toEqual(["marker"]);
    await closeAll();
    const next = await open(schedules);
    time = at("2026-01-06T09:00:00");
    await soon(() => started(next)).toEqual(["marker", "marker"]);
    expect(await next.schedules.list()).toMatchObject([{ pausedAt: at(monday) }, { pausedAt: null }]);
  });

  test("[SCH8] a resumed schedule continues with the next due time", async () => {
    const once = { ...daily, missed: "once" as const };
    const skein = await open({ once, marker: once });
    await skein.schedules.pause("once");
    time = at("2026-01-05T09:00:00");
    await soon(() => started(skein)).toEqual(["marker"]);
    time += hour;
    const resumed = await skein.schedules.resume("once");
    expect(resumed).toMatchObject({ pausedAt: null, nextAt: at("2026-01-06T09:00:00") });
    await closeAll();
    const next = await open({ once, marker: once });
    time = at("2026-01-06T09:00:00");
    await soon(() => started(next)).toHaveLength(3);
    expect((await started(next)).toSorted()).toEqual(["marker", "marker", "once"]);
  });

  test("[SCH9] `run` sends the message now, once per idempotency key, even while the schedule is paused", async () => {
    const skein = await open({ daily });
    await skein.schedules.pause("daily");
    const first = await skein.schedules.run("daily", { idempotencyKey: "k" });
    expect((await skein.schedules.run("daily", { idempotencyKey: "k" })).runId).toBe(first.runId);
    expect(await skein.ended(first.runId)).toMatchObject({ outcome: { reply: "Done." } });
    const second = await skein.schedules.run("daily");
    expect(second.runId).not.toBe(first.runId);
    await skein.ended(second.runId);
    const [info] = await skein.schedules.list();
    expect(info?.lastRun).toEqual({
      ...{ runId: second.runId, at: time, state: "ok" },
      sessionKey: `agent:main:cron:daily:run:${second.runId}`,
    });
  });

  test("[SCH9] a schedule that is not configured is not found", async () => {
    const skein = await open({ daily });
    for (const act of ["run", "pause", "resume"] as const)
      await expect(skein.schedules[act]("weekly")).rejects.toMatchObject({ code: "not_found" });
  });
});

describe("sessions", () => {
  test("[SCH10] [SCH17] each run of an isolated schedule has a session of its own, of the kind cron", async () => {
    const skein = await open({ daily: { ...daily, agent: "news" } });
    const runs = [await skein.schedules.run("daily"), await skein.schedules.run("daily")];
    for (const { runId } of runs) await skein.ended(runId);
    const { sessions } = await skein.sessions.list({ kinds: ["cron"] });
    expect(sessions.map(({ key }) => key).toSorted()).toEqual(
      runs.map(({ runId }) => `agent:news:cron:daily:run:${runId}`).toSorted(),
    );
    expect(runs.map(({ lane }) => lane)).toEqual(["cron", "cron"]);
    expect(asked).toHaveLength(2);
  });

  test("[SCH11] runs of a schedule with `session: job` continue one session", async () => {
    const skein = await open({ daily: { ...daily, session: "job" } });
    for (let count = 0; count < 2; count++) await skein.ended((await skein.schedules.run("daily")).runId);
    const { sessions } = await skein.sessions.list({ kinds: ["cron"] });
    expect(sessions.map(({ key }) => key)).toEqual(["agent:main:cron:daily"]);
    const { messages } = await skein.sessions.history({ sessionKey: "agent:main:cron:daily" });
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "user", "assistant"]);
  });

  test("[SCH12] runs of a schedule with `session: main` are in the agent's main session", async () => {
    const skein = await open({ daily: { ...daily, session: "main" } });
    await skein.session({ sessionKey: "agent:main:main" }).send("Hello").result;
    time = at("2026-01-05T09:00:00");
    await soon(() => asked.length).toBe(2);
    await soon(() => started(skein)).toHaveLength(2);
    const { messages } = await skein.sessions.history({ sessionKey: "agent:main:main" });
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "user", "assistant"]);
    expect(asked.at(-1)).toContain("daily news");
  });

  test("[SCH13] the reply is delivered to `deliverTo`", async () => {
    const sent: unknown[] = [];
    const desk = {
      id: "desk",
      deliver: async ({ text }: { text: string }, target: object) => ({ at: sent.push([text, target]) }),
    };
    await open(
      { daily: { ...daily, deliverTo: { channel: "desk", to: "team", threadId: "t" } } },
      { channels: [desk] },
    );
    time = at("2026-01-05T09:00:00");
    await soon(() => sent).toEqual([["Done.", { channel: "desk", to: "team", threadId: "t" }]]);
  });

  test("[SCH14] the sessions of a schedule belong to its user, and other users do not find the schedule", async () => {
    const skein = await open({ hers: { ...daily, user: "ann" }, common: daily });
    time = at("2026-01-05T09:00:00");
    await soon(() => started(skein)).toHaveLength(2);
    const keysOf = async (userId?: string) =>
      (await skein.sessions.list(userId === undefined ? {} : { userId })).sessions.map(
        ({ key }) => key.split(":")[3],
      );
    expect([await keysOf("ann"), await keysOf("bob"), await keysOf()]).toEqual([["hers"], [], ["common"]]);
    const namesOf = async (userId: string | null) =>
      (await skein.schedules.list(userId)).map(({ name }) => name);
    expect([await namesOf("ann"), await namesOf("bob"), await namesOf(null)]).toEqual([
      ["hers"],
      [],
      ["common"],
    ]);
    for (const act of ["pause", "resume"] as const)
      await expect(skein.schedules[act]("hers", "bob")).rejects.toMatchObject({ code: "not_found" });
    await expect(skein.schedules.run("hers", {}, "bob")).rejects.toMatchObject({ code: "not_found" });
  });
});

describe("[SCH15] a mistake in a schedule is reported with its line", () => {
  const file = () => join(folder.path, "skein.yaml");
  const load = (schedule: string, rest = "") => {
    writeFileSync(file(), `schedules:\n  daily:\n${schedule.replaceAll(/^/gm, "    ")}\n${rest}`);
    return createSkein({ dir: folder.path, config: file(), env: {}, workers: false, quiet: true });
  };
  const good = "cron: 0 9 * * *\nmessage: hello";

  test.each([
    [
      "an expression",
      "cron: 0 25 * * *\nmessage: x",
      '3:11: schedules.daily.cron: found "0 25 * * *", expected a cron',
    ],
    [
      "a date that never comes",
      "cron: 0 0 30 2 *\nmessage: x",
      '3:11: schedules.daily.cron: found "0 0 30 2 *"',
    ],
    [
      "a time zone",
      `${good}\ntimezone: Europe/Berln`,
      '5:15: schedules.daily.timezone: found "Europe/Berln"',
    ],
    [
      "an agent",
      `${good}\nagent: mian`,
      '5:12: schedules.daily.agent: found "mian", expected an agent: main',
    ],
    [
      "a channel",
      `${good}\ndeliverTo: { channel: dsk }`,
      '5:27: schedules.daily.deliverTo.channel: found "dsk"',
    ],
    [
      "a recipient without a channel",
      `${good}\ndeliverTo: { to: ann }`,
      "5:16: schedules.daily.deliverTo: found no channel",
    ],
    ["no message", "cron: 0 9 * * *", "3:5: schedules.daily: found no message"],
    [
      "a policy",
      `${good}\nmissed: always`,
      '5:13: schedules.daily.missed: found "always", expected "skip" or "once"',
    ],
  ])("%s", async (_, schedule, expected) => {
    const failure = await load(schedule).then(
      () => "none",
      (error: Error) => error.message,
    );
    expect(failure).toContain(`${file()}:${expected}`);
  });

  test("a channel that cannot send", async () => {
    const channels = 'channels: { desk: { type: webhook, secret: "0123456789abcdef0123456789abcdef" } }\n';
    await expect(load(`${good}\ndeliverTo: { channel: desk }`, channels)).rejects.toThrow(
      "a channel with a url",
    );
  });

  test("agents and channels that are defined in code are known", async () => {
    writeFileSync(
      file(),
      "schedules: { daily: { cron: '@daily', message: x, agent: desk, deliverTo: { channel: own } } }",
    );
    const channel = { id: "own", deliver: async () => ({}) };
    const skein = await createSkein({
      ...{ dir: folder.path, config: file(), env: {}, workers: false, quiet: true },
      ...{ agents: [defineAgent({ id: "desk", model: "rehearsal/basic" })], channels: [channel] },
    });
    opened.push(skein);
    expect(await skein.schedules.list()).toMatchObject([{ agentId: "desk", deliverTo: { channel: "own" } }]);
  });
});
