import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Check } from "typebox/value";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { run } from "../../test/support/cli.ts";
import { acceptIn, seedRuns, withRuns } from "../../test/support/cli-runs.ts";
import { systemClock } from "../core/clock.ts";
import { EventBus } from "../core/events.ts";
import { OutboxListSchema, OutboxRowSchema } from "../protocol/outbox.ts";
import { AbortedSchema, ApprovalSchema, RunListSchema, RunSchema } from "../protocol/runs.ts";
import { RunWatcher } from "../sessions/run-watcher.ts";

let home = "";
let dir = "";

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "skein-cli-runs-"));
  dir = join(home, "skein");
  await seedRuns(dir);
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

const call = (...args: readonly string[]) => run(args, { cwd: home, env: { SKEIN_DIR: dir }, columns: 200 });
const json = async (...args: readonly string[]) => JSON.parse((await call(...args, "--json")).out);

describe("runs", () => {
  test("reports for every open run why it does not proceed", async () => {
    await withRuns(dir, async (runs, store) => {
      const [orders] = await store.sessions.find({}, { by: "sessionId", sessionId: "orders" });
      if (orders === undefined) throw new Error("there are no orders");
      await acceptIn(runs, orders, "and the next", "order-18");
      const init = { key: "agent:main:session:nap", sessionId: "nap", cwd: "/home/ann" };
      const nap = await store.sessions.create({}, init);
      await acceptIn(runs, nap, "wait for it", "nap-1");
      const claim = await runs.claim("somebody");
      const { runId = "", fence = 0 } = claim?.run ?? {};
      const child = await acceptIn(runs, orders, "for the sleeper", "order-19");
      await runs.sleep({ runId, fence }, { waitFor: [child.runId], wakeAt: Date.now() + 60_000 });
    });
    const { out, exit } = await call("runs", "ls");
    expect(exit).toBe(0);
    expect(out).toMatch(/waiting +session:orders +main +for approval of pay/);
    expect(out).toMatch(/queued +session:orders +main +behind …/);
    expect(out).toMatch(/sleeping +session:nap +main +until \S+ \S+ UTC at the latest, for 1 run: …/);
    expect(out).toMatch(/asks {2}pay \{"euros":17\} {2}\(\d+ s left\)/);
    const payload = await json("runs", "ls");
    expect(Check(RunListSchema, payload)).toBe(true);
    const sleeper = payload.runs.find(({ state }: { state: string }) => state === "sleeping");
    expect(sleeper).toMatchObject({ waitsFor: [expect.any(String)], wakeAt: expect.any(Number) });
  });

  test("filters by state, session and count, and pages", async () => {
    expect((await json("runs", "ls", "--state", "waiting")).count).toBe(1);
    expect((await json("runs", "ls", "--state", "ended")).count).toBe(0);
    expect((await json("runs", "ls", "--session", "nap")).runs).toMatchObject([{ sessionId: "nap" }]);
    const first = await json("runs", "ls", "--limit", "2");
    const rest = await json("runs", "ls", "--before", String(first.nextBefore));
    expect(first.count + rest.count).toBe((await json("runs", "ls")).count);
    expect((await call("runs", "ls", "--state", "asleep")).exit).toBe(2);
  });

  test("an unknown run, or another user's, is not found at once", async () => {
    const [{ runId }] = (await json("runs", "ls")).runs;
    expect(Check(RunSchema, await json("runs", "show", runId))).toBe(true);
    for (const args of [
      ["runs", "show", "nothing"],
      ["runs", "abort", "nothing"],
      ["runs", "approve", "nothing"],
      ["runs", "show", runId, "--user", "alice"],
      ["runs", "abort", runId, "--user", "alice"],
    ])
      expect(await call(...args)).toMatchObject({
        out: "",
        exit: 1,
        err: expect.stringContaining("not found"),
      });
    expect((await json("runs", "ls", "--user", "alice")).count).toBe(0);
    expect((await json("runs", "ls", "--user", "alice")).approvals).toEqual([]);
  });

  test("[CLI40] an approval is answered once, and a queued run ended at once", async () => {
    const [{ approvalId }] = (await json("runs", "ls")).approvals;
    expect(await call("runs", "approve", approvalId, "--user", "alice")).toMatchObject({ exit: 1 });
    const approved = await json("runs", "approve", approvalId);
    expect(Check(ApprovalSchema, approved)).toBe(true);
    expect(approved).toMatchObject({ answer: "approved", toolName: "pay" });
    expect(await call("runs", "deny", approvalId)).toMatchObject({ exit: 1 });
    const [queued] = (await json("runs", "ls", "--state", "queued")).runs;
    const aborted = await json("runs", "abort", queued.runId);
    expect(Check(AbortedSchema, aborted)).toBe(true);
    expect(aborted.state).toBe("aborted");
  });

  test("[CLI36] waits for everything that one request started", async () => {
    await withRuns(dir, async (runs, store) => {
      const [nap] = await store.sessions.find({}, { by: "sessionId", sessionId: "nap" });
      if (nap === undefined) throw new Error("there is no nap");
      const first = await acceptIn(runs, nap, "first", "root-1");
      const second = await runs.accept({
        session: first.session,
        kind: "send",
        message: { role: "user", content: "second" },
        root: first.root,
        startedBy: first.runId,
      });
      const settled = new RunWatcher(runs, new EventBus(), systemClock).untilSettled(first.root.rootId);
      let isSettled = false;
      void settled.then(() => {
        isSettled = true;
      });
      await runs.abort(first.runId);
      await runs.get(first.runId);
      expect(isSettled).toBe(false);
      await runs.abort(second.run.runId);
      await settled;
    });
  });
});

describe("outbox", () => {
  test("lists, shows, resends and drops messages", async () => {
    const payload = await json("outbox");
    expect(Check(OutboxListSchema, payload)).toBe(true);
    expect(payload.messages).toMatchObject([{ state: "dead", lastError: "the desk is closed" }]);
    const [{ outboxId }] = payload.messages;
    expect((await call("outbox", "ls")).out).toMatch(/dead +desk ann +session:orders/);
    expect((await call("outbox", "ls", "--state", "queued")).out).toBe("no messages match\n");
    expect((await call("outbox", "show", outboxId)).out).toContain("It is paid.");
    const again = await json("outbox", "retry", outboxId);
    expect(Check(OutboxRowSchema, again)).toBe(true);
    expect(again).toMatchObject({ state: "queued", attempts: 0 });
    expect(await json("outbox", "drop", outboxId)).toMatchObject({ state: "dropped" });
  });

  test("a missing message, or another user's, is not found", async () => {
    const [{ outboxId }] = (await json("outbox")).messages;
    for (const args of [
      ["outbox", "show", "nothing"],
      ["outbox", "retry", "nothing"],
      ["outbox", "show", outboxId, "--user", "alice"],
      ["outbox", "drop", outboxId, "--user", "alice"],
    ])
      expect(await call(...args)).toMatchObject({
        out: "",
        exit: 1,
        err: expect.stringContaining("not found"),
      });
    expect((await call("outbox", "ls", "--state", "lost")).exit).toBe(2);
  });

  test("[CLI16] creates no folder", async () => {
    const gone = join(home, "gone");
    for (const args of [["runs", "ls"], ["outbox"], ["send", "trip", "hello"], ["chat", "trip"]])
      expect(await call(...args, "--dir", gone)).toMatchObject({ out: "", exit: 1 });
  });
});
