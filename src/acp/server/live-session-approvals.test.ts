import { describe, expect, test } from "vitest";
import { FakeSession, words } from "../../../test/support/acp-fake-session.ts";
import { inputEntryId } from "../../core/hashed-id.ts";

const never = new AbortController().signal;
const call = { phase: "call", toolCallId: "c", toolName: "pay", arguments: {} };
const result = { phase: "result", toolCallId: "c", toolName: "pay", isError: false, content: [] };

/** Writes an answer that calls a tool. */
function writeCall(fake: FakeSession, isLost = false): void {
  const content = [{ type: "toolCall", id: "c", name: "pay", arguments: {} }];
  const message = { role: "assistant", content, stopReason: "toolUse" };
  fake.append({ type: "message", message }, { isLost });
}

function writeResult(fake: FakeSession): void {
  const message = { role: "toolResult", toolCallId: "c", toolName: "pay", content: [], isError: false };
  fake.append({ type: "message", message });
}

async function opened(fake: FakeSession, isWhole = false) {
  const live = await fake.open(isWhole);
  live.begin();
  await expect.poll(() => fake.count("approvals.list")).toBe(2);
  return live;
}

/** Waits until all work in progress in this process is done. */
async function idle(): Promise<void> {
  for (let turns = 0; turns < 20; turns++) await new Promise(setImmediate);
}

/** Resolves when all events so far have been processed. */
async function settled(fake: FakeSession, mark: string): Promise<void> {
  fake.write("user", mark);
  await expect.poll(() => fake.text("user_message_chunk")).toContain(mark);
}

describe("an approval request that another process answers", () => {
  test("[AAG42] is withdrawn by polling while later requests stay, and nothing is polled without a request", async () => {
    const fake = new FakeSession();
    fake.pollMs = 250;
    const live = await opened(fake);
    fake.question("a1");
    await expect.poll(() => fake.asked.length).toBe(1);
    const lists = fake.count("approvals.list");
    await fake.ring();
    await expect.poll(() => fake.count("approvals.list")).toBe(lists + 1);
    expect(fake.asked[0]?.signal.aborted).toBe(false);
    fake.approvals = [];
    fake.before = async (method) => {
      if (method !== "approvals.list" || fake.asked.length > 1) return;
      fake.emit("approval.requested", { approvalId: "a2", toolCallId: "a2", toolName: "pay", arguments: {} });
      await expect.poll(() => fake.asked.length).toBe(2);
    };
    await fake.ring();
    await expect.poll(() => fake.asked.map(({ signal }) => signal.aborted)).toEqual([true, false]);
    await fake.ring();
    await expect.poll(() => fake.asked[1]?.signal.aborted).toBe(true);
    await idle();
    expect(fake.timers).toBe(0);
    expect(fake.count("approvals.resolve")).toBe(0);
    live.close();
  });

  test.each(["run.resumed", "run.ended"])("[AAG42] is withdrawn by %s of its run", async (event) => {
    const fake = new FakeSession();
    const live = await opened(fake);
    fake.question("a1");
    fake.question("b1", { runId: "r9" });
    await expect.poll(() => fake.asked.length).toBe(2);
    fake.approvals = fake.approvals.filter(({ approvalId }) => approvalId === "b1");
    fake.emit(event, { state: "ok" });
    await expect.poll(() => fake.asked.map(({ signal }) => signal.aborted)).toEqual([true, false]);
    live.close();
  });
});

describe("approval requests of a session that is open in an editor", () => {
  test.each(["ask", "allow", "deny"] as const)(
    "[AJN4] are neither asked nor answered for a disconnected editor, in mode %s",
    async (mode) => {
      const fake = new FakeSession();
      fake.permit = () => Promise.reject(new Error("the connection is closed"));
      const live = await opened(fake);
      live.permissions.mode = mode;
      live.permissions.open({ approvalId: "a0", toolCallId: "a0", toolName: "pay", arguments: {} });
      live.close();
      fake.question("a1");
      live.permissions.open({ approvalId: "a2", toolCallId: "a2", toolName: "pay", arguments: {} });
      live.begin();
      await idle();
      expect(fake.asked.map(({ toolCallId }) => toolCallId)).not.toContain("a1");
      const resolved = fake.called.filter(([method]) => method === "approvals.resolve");
      expect(resolved.map(([, { approvalId }]) => approvalId)).toEqual(mode === "ask" ? [] : ["a0"]);
    },
  );

  test("[AJN4] are not asked if the editor disconnects while they are being listed", async () => {
    const fake = new FakeSession();
    fake.permit = () => Promise.reject(new Error("the connection is closed"));
    const live = await fake.open();
    fake.question("a1", {}, false);
    fake.before = (method) => (method === "approvals.list" ? live.close() : undefined);
    live.begin();
    await expect.poll(() => fake.count("approvals.list")).toBeGreaterThan(0);
    await idle();
    expect(fake.asked).toEqual([]);
    expect(fake.count("approvals.resolve")).toBe(0);
  });

  test("[AJN4] are withdrawn if they were answered while events were lost; the others stay", async () => {
    const fake = new FakeSession();
    const live = await opened(fake);
    fake.question("a1");
    fake.question("a2");
    await expect.poll(() => fake.asked.length).toBe(2);
    fake.approvals.shift();
    fake.emit("gap", { after: 1, upTo: 2 });
    await expect.poll(() => fake.asked.map(({ signal }) => signal.aborted)).toEqual([true, false]);
    expect(fake.asked).toHaveLength(2);
    live.close();
  });

  test("[AJN4] are withdrawn if they are answered between the list and their event", async () => {
    const fake = new FakeSession();
    const live = await fake.open();
    fake.question("a1");
    let isListed = false;
    fake.before = async (method) => {
      if (method !== "approvals.list") return;
      fake.emit("approval.resolved", { approvalId: "a1", answer: "approved", by: null });
      await idle();
      isListed = true;
    };
    live.begin();
    await expect.poll(() => isListed).toBe(true);
    await settled(fake, "now");
    await idle();
    expect(fake.asked.map(({ signal }) => signal.aborted)).toEqual([true]);
    live.close();
  });

  test("[AAG13] are withdrawn on cancel only for runs that were started here", async () => {
    const fake = new FakeSession();
    const live = await opened(fake);
    const answered = live.prompt(words("pay"), never, Promise.resolve());
    await expect.poll(() => fake.count("agent.wait")).toBe(1);
    fake.question("theirs", { runId: "r9" });
    fake.question("ours", { runId: "r1" });
    await expect.poll(() => fake.asked.length).toBe(2);
    await live.cancel();
    expect(fake.asked.map(({ signal }) => signal.aborted)).toEqual([false, true]);
    fake.emit("run.ended", { state: "aborted" });
    fake.end();
    expect(await answered).toMatchObject({ stopReason: "cancelled" });
    live.close();
  });

  test("[AAG13] are not needed for a prompt that is cancelled together with its arrival: it ends when accepted", async () => {
    const fake = new FakeSession();
    const live = await opened(fake);
    const answered = live.prompt(words("pay"), AbortSignal.abort(), Promise.resolve());
    await expect.poll(() => fake.called.find(([method]) => method === "runs.abort")?.[1].runId).toBe("r1");
    fake.emit("run.ended", { state: "aborted" });
    fake.end();
    expect(await answered).toMatchObject({ stopReason: "cancelled" });
    live.close();
  });
});

describe("concurrent runs", () => {
  test.each(["aborted", "merged"])("a run that is %s leaves the open calls unchanged", async (state) => {
    const fake = new FakeSession();
    const live = await opened(fake);
    fake.emit("run.started");
    writeCall(fake);
    fake.emit("run.tool", call);
    fake.emit("run.ended", { runId: "r2", state });
    fake.emit("run.tool", result);
    await settled(fake, "now");
    expect(fake.calls()).toEqual(["c pending", "c in_progress", "c completed"]);
    live.close();
  });

  test("calls read from a busy session belong to their own run", async () => {
    const fake = new FakeSession();
    fake.working = "r1";
    writeCall(fake, true);
    const live = await opened(fake, true);
    fake.emit("run.ended", { runId: "r2", state: "aborted" });
    writeResult(fake);
    await settled(fake, "now");
    expect(fake.calls()).toEqual(["c pending", "c completed"]);
    writeCall(fake);
    fake.working = undefined;
    fake.emit("run.ended", { state: "error" });
    await settled(fake, "at last");
    expect(fake.calls().slice(2)).toEqual(["c#2 pending", "c#2 failed"]);
    live.close();
  });

  test("a result that is written while no run is known still counts", async () => {
    const fake = new FakeSession();
    writeCall(fake, true);
    fake.before = (method) => {
      if (method === "sessions.get" && fake.log.length === 1) writeResult(fake);
    };
    const live = await opened(fake, true);
    expect(fake.calls()).toEqual(["c pending", "c completed"]);
    live.close();
  });

  test("[AAG9] each turn ends with its own answer, not with the previous or the next one", async () => {
    const fake = new FakeSession();
    const live = await opened(fake);
    const [one, two] = [
      live.prompt(words("one"), never, Promise.resolve()),
      live.prompt(words("two"), never, Promise.resolve()),
    ];
    await expect.poll(() => fake.count("agent.wait")).toBe(2);
    fake.write("user", "one", { id: inputEntryId("r1") });
    fake.write("assistant", "long", { stopReason: "length" });
    fake.emit("run.ended", { state: "ok" });
    fake.write("user", "two", { id: inputEntryId("r2") });
    fake.emit("run.ended", { runId: "r2", state: "ok" });
    await settled(fake, "now");
    fake.end("r1");
    fake.end("r2");
    expect(await one).toMatchObject({ stopReason: "max_tokens" });
    expect(await two).toMatchObject({ stopReason: "end_turn" });
    live.close();
  });
});
