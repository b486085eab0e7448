import { describe, expect, test } from "vitest";
import { FakeSession, words } from "../../../test/support/acp-fake-session.ts";
import { CallError } from "../../client/contract.ts";
import { inputEntryId } from "../../core/hashed-id.ts";
import { restartText } from "./session-view.ts";

const never = new AbortController().signal;
const notNow = () => new CallError({ code: "rate_limited", message: "Not now." });

describe("a session that is open in an editor", () => {
  test.each([1, 2, 3, 200])("[AAG3] is shown from its beginning, in pages of %i", async (pageSize) => {
    const fake = new FakeSession(pageSize);
    for (const text of ["one", "two", "three", "four", "five"])
      fake.write("assistant", text, { isLost: true });
    const live = await fake.open(true);
    expect(fake.text()).toBe("one|two|three|four|five");
    live.close();
  });

  test("[AAG7] shows missed entries before the prompt is answered, and does not repeat late events", async () => {
    const fake = new FakeSession(2);
    fake.write("assistant", "before", { isLost: true });
    const live = await fake.open();
    live.begin();
    const answered = live.prompt(words("hi"), never, Promise.resolve());
    fake.write("user", "hi", { id: inputEntryId("r1") });
    fake.emit("run.delta", { kind: "text", delta: "good " });
    await expect.poll(() => fake.text()).toContain("good ");
    for (const text of ["good morning", "and", "good", "night"])
      fake.write("assistant", text, { isLost: true });
    fake.emit("gap", { after: 1, before: 2 });
    fake.emit("run.delta", { kind: "text", delta: "morning" });
    fake.emit("run.ended", { state: "ok" });
    fake.end();
    expect(await answered).toMatchObject({ stopReason: "end_turn" });
    expect(fake.text()).toBe("good |morning|and|good|night");
    expect(fake.text("user_message_chunk")).not.toContain("hi");
    live.close();
  });

  test("[AAG7] ignores late events of a run whose end was read from the log", async () => {
    const fake = new FakeSession();
    const live = await fake.open();
    live.begin();
    const answered = live.prompt(words("hi"), never, Promise.resolve());
    fake.write("assistant", "yes", { isLost: true });
    fake.end();
    await fake.ring();
    expect(await answered).toMatchObject({ stopReason: "end_turn" });
    fake.emit("run.delta", { kind: "text", delta: "yes" });
    fake.emit("run.tool", { phase: "call", toolCallId: "c", toolName: "t", arguments: {} });
    fake.emit("run.ended", { state: "ok" });
    fake.write("assistant", "later");
    await expect.poll(() => fake.text()).toContain("later");
    expect(fake.text()).toBe("yes|later");
    live.close();
  });

  test.each([true, false])(
    "[AAG2] continues in the new log when its key is reset, notified: %s",
    async (isTold) => {
      const fake = new FakeSession();
      fake.write("assistant", "old", { isLost: true });
      const live = await fake.open();
      live.begin();
      fake.log.length = 0;
      fake.sessionId = "s2";
      if (isTold) fake.emit("session.reset", { freshSessionId: "s2" });
      const answered = live.prompt(words("hi"), never, Promise.resolve());
      fake.write("assistant", "new", { id: "fresh", isLost: true });
      fake.emit("run.ended", { state: "ok" });
      fake.end();
      await answered;
      expect(fake.text()).toBe("new");
      live.close();
    },
  );

  test("[AAG7] an entry read before its deltas arrive is not shown twice or marked as restarted", async () => {
    const fake = new FakeSession();
    fake.before = (method) => {
      if (method !== "sessions.resolve" || fake.log.length > 0) return;
      fake.emit("run.delta", { kind: "text", delta: "half of it" });
      fake.write("assistant", "half of it and the rest");
    };
    const live = await fake.open(true);
    expect(fake.text()).toBe("half of it and the rest");
    live.begin();
    fake.write("user", "and then?");
    fake.emit("run.delta", { kind: "text", delta: "nothing" });
    fake.write("assistant", "nothing more");
    await expect.poll(() => fake.text()).toContain("more");
    expect(fake.text()).toBe("half of it and the rest|nothing| more");
    live.close();
  });

  test("[AAG7] shows an answer joined midway in full when it is written", async () => {
    const fake = new FakeSession();
    fake.write("user", "hi", { isLost: true });
    const live = await fake.open(true);
    live.begin();
    fake.emit("run.delta", { kind: "text", delta: "ning" });
    fake.write("assistant", "good morning");
    fake.write("assistant", "later");
    await expect.poll(() => fake.text()).toContain("later");
    expect(fake.text()).toBe("good morning|later");
    live.close();
  });

  test("[OWN12] does not stream the next turn's answer again after reading it from the log", async () => {
    const fake = new FakeSession();
    const live = await fake.open();
    live.begin();
    const answered = live.prompt(words("one"), never, Promise.resolve());
    await expect.poll(() => fake.count("agent.wait")).toBe(1);
    fake.write("user", "one", { id: inputEntryId("r1") });
    fake.write("assistant", "first");
    let isAhead = false;
    fake.before = (method) => {
      if (method !== "sessions.resolve" || isAhead) return;
      isAhead = true;
      fake.write("user", "two");
      fake.emit("run.delta", { runId: "r2", kind: "text", delta: "sec" });
      fake.emit("run.tool", { runId: "r2", phase: "call", toolCallId: "c", toolName: "t", arguments: {} });
      fake.write("assistant", "second");
    };
    fake.emit("run.ended", { state: "ok" });
    fake.end();
    await answered;
    expect(fake.text()).toBe("first|second");
    fake.emit("run.delta", { runId: "r2", kind: "text", delta: "thi" });
    fake.write("assistant", "third");
    await expect.poll(() => fake.text()).toMatch(/rd$/);
    expect(fake.text()).toBe("first|second|thi|rd");
    expect(fake.text()).not.toContain(restartText);
    expect(fake.calls()).toEqual([]);
    live.close();
  });

  test.each([1, 2, 3])(
    "[AAG3] omits nothing from a log that grows while it is shown, in pages of %i",
    async (pageSize) => {
      const fake = new FakeSession(pageSize);
      for (let n = 1; n <= 5; n++) fake.write("assistant", `${n}`, { isLost: true });
      fake.before = (method) => {
        if (method === "sessions.entries" && fake.log.length < 9)
          fake.write("assistant", `${fake.log.length + 1}`, { isLost: true });
      };
      const live = await fake.open(true);
      expect(fake.text()).toBe("1|2|3|4|5|6|7|8|9");
      live.close();
    },
  );

  test("[AAG7] retries when the gateway is temporarily unavailable, and the session stays live", async () => {
    const fake = new FakeSession();
    const live = await fake.open();
    live.begin();
    await expect.poll(() => fake.count("approvals.list")).toBe(2);
    let refusals = 1;
    fake.before = (method, { sessionKey }) => {
      if (method === "sessions.entries" && fake.count(method) < 4) throw notNow();
      if (method === "approvals.list" && sessionKey !== undefined && refusals-- > 0) throw notNow();
    };
    fake.write("assistant", "missed", { isLost: true });
    fake.question("a1", {}, false);
    fake.emit("gap", { after: 1, upTo: 2 });
    await fake.ring();
    await fake.ring();
    await expect.poll(() => fake.text()).toBe("missed");
    await fake.ring();
    await expect.poll(() => fake.asked.length).toBe(1);
    fake.write("assistant", "later");
    await expect.poll(() => fake.text()).toBe("missed|later");
    expect(fake.reported).toEqual([]);
    live.close();
  });

  test("[AAG7] reports a permanent failure and shows later entries", async () => {
    const fake = new FakeSession();
    const live = await fake.open();
    live.begin();
    const broken = new Error("the disk is gone");
    fake.before = (method) => {
      if (method === "sessions.resolve") throw broken;
    };
    fake.emit("gap", { after: 1, upTo: 2 });
    fake.question("a1", {}, false);
    fake.write("assistant", "later");
    await expect.poll(() => fake.text()).toBe("later");
    expect(fake.reported).toEqual([broken]);
    expect(fake.asked).toHaveLength(1);
    live.close();
  });
});
