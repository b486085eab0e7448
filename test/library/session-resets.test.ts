import { afterEach, describe, expect, test } from "vitest";
import type { ConfigInput, Skein } from "../../src/index.ts";
import { openRuns } from "../support/run-skein.ts";

const opened: Skein[] = [];
afterEach(async () => {
  for (const skein of opened.splice(0)) await skein.close({ graceMs: 0 });
});

const minute = 60_000;
type Reset = NonNullable<NonNullable<ConfigInput["session"]>["reset"]>;

async function start(reset: Reset, startedAt = "2026-06-15T12:00:00Z") {
  let now = Date.parse(startedAt);
  const { skein } = await openRuns({
    script: () => ({ text: "Yes." }),
    config: { session: { reset, dmScope: "per-channel-peer" } },
    clock: { now: () => now },
  });
  opened.push(skein);
  return {
    skein,
    setTime: (time: string) => {
      now = Date.parse(time);
    },
    pass: (minutes: number) => {
      now += minutes * minute;
    },
    send: async (text: string, options = {}) =>
      (await skein.session({}).send(text, options).result).sessionId,
  };
}

describe("when a session is reset", () => {
  test("[RST2] by the first input after the idle time", async () => {
    const { send, pass } = await start({ mode: "idle", minutes: 30 });
    const first = await send("one");
    pass(29);
    expect(await send("two")).toBe(first);
    pass(30);
    const second = await send("three");
    expect(second).not.toBe(first);
    expect(await send("four")).toBe(second);
  });

  test("[RST2] by the first input after the hour of the day", async () => {
    const local = (text: string) => new Date(text).toISOString();
    const { send, setTime } = await start({ mode: "daily", atHour: 4 }, local("2026-06-15T05:00"));
    const first = await send("one");
    setTime(local("2026-06-16T03:59:59"));
    expect(await send("two")).toBe(first);
    setTime(local("2026-06-16T04:00:00"));
    const second = await send("three");
    expect(second).not.toBe(first);
    setTime(local("2026-06-16T23:00:00"));
    expect(await send("four")).toBe(second);
  });

  test("[RST2] never without a rule", async () => {
    const { send, pass } = await start({ mode: "none" });
    const first = await send("one");
    pass(100 * 24 * 60);
    expect(await send("two")).toBe(first);
  });

  test("[RST1] the rule of a channel precedes the rule of a kind, which precedes the default", async () => {
    const { skein, send, pass } = await start({
      mode: "none",
      byKind: { group: { mode: "idle", minutes: 10 } },
      byChannel: { quiet: { mode: "none" }, busy: { mode: "idle", minutes: 5 } },
    });
    const receive = async (channel: string, messageId: string) => {
      const { runId } = await skein.receive({
        channel,
        messageId,
        peer: "ann",
        group: "G1",
        text: messageId,
      });
      return (await skein.ended(runId))?.session.sessionId;
    };
    const channels = ["irc", "quiet", "busy"];
    const sendToAll = async (id: string) => {
      const sessions = [await send(id)];
      for (const channel of channels) sessions.push((await receive(channel, id)) ?? "");
      return sessions;
    };
    const before = await sendToAll("one");
    pass(7);
    const soon = await sendToAll("two");
    expect(soon.map((id, index) => id === before[index])).toEqual([true, true, true, false]);
    pass(20);
    const later = await sendToAll("three");
    expect(later.map((id, index) => id === soon[index])).toEqual([true, false, true, false]);
  });

  test("[RST4] input that is not from a person does not renew the idle time", async () => {
    const { send, pass } = await start({ mode: "idle", minutes: 30 });
    const first = await send("one");
    pass(20);
    const provenance = { kind: "inter_session" as const, sourceSessionKey: "agent:main:session:other" };
    expect(await send("from another session", { provenance })).toBe(first);
    pass(15);
    expect(await send("two")).not.toBe(first);
  });
});

test("[GRD8] accepted input unarchives a session, and an answer does not", async () => {
  const { skein, send } = await start({ mode: "none" });
  const sessionId = await send("one");
  const { sessions } = skein.store;
  const scope = { agentId: "main" };
  const archive = () => sessions.patch(scope, sessionId, { archived: true });
  const isArchived = async () => (await sessions.get(scope, sessionId))?.meta.archived === true;
  await archive();
  await skein.session({}).append([{ role: "assistant", content: "By the way." }]);
  expect(await isArchived()).toBe(true);
  await send("two");
  expect(await isArchived()).toBe(false);
});
