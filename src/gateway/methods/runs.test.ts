import Type from "typebox";
import { afterEach, describe, expect, test, vi } from "vitest";
import { gateOf } from "../../../test/support/run-skein.ts";
import { answering, closeAll } from "../../../test/support/skein.ts";
import {
  ann,
  annAdmin,
  bob,
  closeTalking,
  codeOf,
  openTalking,
  secret,
} from "../../../test/support/talking.ts";
import { defineTool } from "../../agents/tools/define-tool.ts";
import type { SkeinEvent, SkeinEventType } from "../../core/events.ts";
import type { Skein } from "../../sessions/skein.ts";

afterEach(async () => {
  await closeTalking();
  await closeAll();
});

const trip = "agent:main:session:trip";

/** Starts a run for ann that requests approval to pay. */
async function asking() {
  const pay = defineTool({
    name: "pay",
    description: "Pays.",
    parameters: Type.Object({ key: Type.String() }),
    approval: true,
    execute: () => "paid",
  });
  const script = [{ calls: [{ name: "pay", arguments: { key: secret } }] }, { text: `It is ${secret}.` }];
  const opened = await openTalking({ script, tools: [pay] });
  const requested = nextOf(opened.skein, "approval.requested");
  const message = { sessionKey: trip, message: `Pay with ${secret}`, idempotencyKey: "1" };
  const { runId } = await opened.as(ann).call("chat.send", message);
  await requested;
  return { ...opened, runId };
}

function nextOf(skein: Skein, type: SkeinEventType): Promise<SkeinEvent> {
  return new Promise((resolve) => {
    const leave = skein.subscribe((event) => {
      if (event.type !== type) return;
      leave();
      resolve(event);
    });
  });
}

describe("runs and approvals", () => {
  test("lists the newest runs first, with their open approvals, in pages", async () => {
    const { as, runId } = await asking();
    const waiting = {
      sessionKey: trip,
      message: "And then?",
      idempotencyKey: "2",
      queueMode: "followup",
    } as const;
    const second = await as(ann).call("chat.send", waiting);
    const all = await as(ann).call("runs.list", { sessionKey: "trip" });
    expect(all.runs.map((run) => run.runId)).toEqual([second.runId, runId]);
    expect(all.approvals).toMatchObject([{ runId, toolName: "pay" }]);
    expect(all.runs[0]?.waitsFor).toEqual([runId]);
    const page = await as(ann).call("runs.list", { limit: 1 });
    expect(page).toMatchObject({ count: 1, nextBefore: page.runs[0]?.seq });
    const rest = await as(ann).call("runs.list", { limit: 1, before: page.nextBefore ?? 0 });
    expect(rest.runs.map((run) => run.runId)).toEqual([runId]);
    expect(rest).not.toHaveProperty("nextBefore");
    expect((await as(ann).call("runs.list", { states: ["queued"] })).count).toBe(1);
    expect((await as(ann).call("runs.list", { rootId: runId })).count).toBe(1);
  });

  test("a list queries once for what all its runs wait for, and only for the approvals it shows", async () => {
    const { as, skein } = await asking();
    for (const idempotencyKey of ["2", "3", "4"])
      await as(ann).call("chat.send", { sessionKey: trip, message: "And?", idempotencyKey });
    const [one, many, approvals] = [
      vi.spyOn(skein, "waits"),
      vi.spyOn(skein, "waitsOf"),
      vi.spyOn(skein.approvals, "list"),
    ];
    expect((await as(ann).call("runs.list", { sessionKey: trip })).count).toBe(4);
    expect([one.mock.calls.length, many.mock.calls.length]).toEqual([0, 1]);
    await as(ann).call("approvals.list", { open: false, sessionKey: trip, limit: 7 });
    const { uid: sessionUid } =
      (await skein.runs.get((await skein.runs.list({}))[0]?.runId ?? ""))?.session ?? {};
    expect(approvals.mock.lastCall).toEqual([{ open: false, limit: 7, sessionUid }, "ann"]);
  });

  test("the first answer counts, with the token's name, and a run keeps every approval it requested", async () => {
    const { as, runId } = await asking();
    const [asked] = (await as(ann).call("approvals.list", {})).approvals;
    const approvalId = asked?.approvalId ?? "";
    const yes = await as(ann).call("approvals.resolve", { approvalId, answer: "approved" });
    expect(yes).toMatchObject({ answer: "approved", by: "ann's phone" });
    const no = await as(annAdmin).call("approvals.resolve", { approvalId, answer: "denied" });
    expect(no).toMatchObject({ answer: "approved", by: "ann's phone" });
    expect(await as(ann).call("agent.wait", { runId })).toMatchObject({ state: "ok" });
    expect((await as(ann).call("approvals.list", { sessionKey: trip })).count).toBe(0);
    expect((await as(ann).call("approvals.list", { open: false, runId })).count).toBe(1);
    const got = await as(ann).call("runs.get", { runId });
    expect(got).toMatchObject({
      run: { runId, state: "ok" },
      approvals: [{ approvalId, answer: "approved" }],
    });
  });

  test("[WLK3] another user's session, run or approval looks like one that does not exist", async () => {
    const { as, skein, runId } = await asking();
    const [asked] = (await as(ann).call("approvals.list", {})).approvals;
    const approvalId = asked?.approvalId ?? "";
    const told = async (call: Promise<unknown>) => call.then(String, (error: Error) => error.message);
    const like = async (theirs: Promise<unknown>, none: Promise<unknown>, id: string) =>
      expect((await told(theirs)).replaceAll(id, "it")).toBe((await told(none)).replaceAll("none", "it"));
    const him = as(bob);
    await like(him.call("runs.get", { runId }), him.call("runs.get", { runId: "none" }), runId);
    await like(him.call("runs.abort", { runId }), him.call("runs.abort", { runId: "none" }), runId);
    await like(him.call("agent.wait", { runId }), him.call("agent.wait", { runId: "none" }), runId);
    const no = { answer: "denied" } as const;
    await like(
      him.call("approvals.resolve", { approvalId, ...no }),
      him.call("approvals.resolve", { approvalId: "none", ...no }),
      approvalId,
    );
    for (const key of [trip, "trip"]) {
      await like(
        him.call("runs.list", { sessionKey: key }),
        him.call("runs.list", { sessionKey: "none" }),
        key,
      );
      const params = { name: "session_status" };
      const theirs = him.call("tools.invoke", { sessionKey: key, ...params });
      const none = key.replace("trip", "none");
      await like(theirs, him.call("tools.invoke", { sessionKey: none, ...params }), "trip");
      const why = him.call("access.explain", { asker: key, target: "main" });
      await like(why, him.call("access.explain", { asker: "none", target: "main" }), key);
      await like(
        him.call("chat.abort", { sessionKey: key }),
        him.call("chat.abort", { sessionKey: "none" }),
        key,
      );
    }
    expect(await him.call("runs.list", { rootId: runId })).toMatchObject({ count: 0, approvals: [] });
    expect((await him.call("approvals.list", { runId, open: false })).count).toBe(0);
    expect(await skein.runs.get(runId)).toMatchObject({ state: "waiting" });
    expect((await as(ann).call("approvals.list", {})).count).toBe(1);
    // A call can name a user only if its token is for all users.
    expect(await codeOf(him.call("runs.get", { runId, userId: "ann" }))).toBe("forbidden");
    expect(await as().call("runs.get", { runId, userId: "ann" })).toMatchObject({ run: { runId } });
  });

  test("[WLK7] without the scope admin, messages, requests and answers are shown without secrets", async () => {
    const { as, runId } = await asking();
    const [asked] = (await as(ann).call("approvals.list", {})).approvals;
    await as(ann).call("approvals.resolve", { approvalId: asked?.approvalId ?? "", answer: "approved" });
    const shown = async (who: typeof ann) => [
      await as(who).call("agent.wait", { runId }),
      await as(who).call("runs.get", { runId }),
      await as(who).call("runs.list", {}),
      await as(who).call("approvals.list", { open: false }),
      await as(who).call("approvals.resolve", { approvalId: asked?.approvalId ?? "", answer: "approved" }),
    ];
    for (const payload of await shown(ann)) {
      expect(JSON.stringify(payload)).not.toContain(secret);
      expect(JSON.stringify(payload)).toContain(runId);
    }
    for (const payload of await shown(annAdmin)) expect(JSON.stringify(payload)).toContain(secret);
  });

  test("[WLK7] without the scope admin, the error of a run is shown without secrets", async () => {
    const { as } = await openTalking({ script: [{ error: { message: `bad key ${secret}`, status: 400 } }] });
    const said = { key: trip, message: "Go", idempotencyKey: "1", timeoutMs: 60_000 };
    const { error } = await as(ann).call("sessions.send", said);
    expect(error?.message).toContain("bad key");
    expect(error?.message).not.toContain(secret);
    expect((await as(annAdmin).call("sessions.send", said)).error?.message).not.toContain(secret);
  });
});

describe("aborting", () => {
  const held = async () => {
    const gate = gateOf();
    const hold = defineTool({ name: "hold", description: "Waits.", execute: () => gate.wait() });
    const opened = await openTalking({ script: [{ calls: [{ name: "hold" }] }], tools: [hold] });
    const send = (sessionKey: string, idempotencyKey: string) =>
      opened.as(ann).call("chat.send", { sessionKey, message: "Go", idempotencyKey, queueMode: "followup" });
    const first = await send(trip, "1");
    await gate.reached;
    return { ...opened, first, send };
  };

  test("chat.abort ends all open runs of a session, or one of them", async () => {
    const { as, first, send } = await held();
    const second = await send(trip, "2");
    const third = await send(trip, "3");
    const one = await as(ann).call("chat.abort", { sessionKey: trip, runId: third.runId });
    expect(one.runs).toEqual([{ runId: third.runId, state: "aborted" }]);
    const all = await as(ann).call("chat.abort", { sessionKey: "trip" });
    expect(all.sessionKey).toBe(trip);
    expect(all.runs.map(({ runId }) => runId)).toEqual([second.runId, first.runId]);
    const ended = await as(ann).call("agent.wait", { runId: first.runId });
    expect(ended).toMatchObject({ finished: true, state: "aborted" });
    expect(await as(ann).call("chat.abort", { sessionKey: trip })).toMatchObject({ runs: [] });
  });

  test("a session cannot abort a run of another session, and the reason for an abort is kept", async () => {
    const { as, first, send } = await held();
    const other = await send("agent:main:session:other", "2");
    const wrong = as(ann).call("chat.abort", { sessionKey: "other", runId: first.runId });
    expect(await codeOf(wrong)).toBe("not_found");
    const { runId } = other;
    await as(ann).call("runs.abort", { runId, reason: "It is too late" });
    const ended = await as(ann).call("agent.wait", { runId });
    expect(ended).toMatchObject({
      state: "aborted",
      error: { message: expect.stringContaining("too late") },
    });
    expect(await as(ann).call("runs.abort", { runId })).toEqual({ runId, state: "aborted" });
  });
});

describe("the outbox", () => {
  const closed = async () => {
    const deliver = async () => {
      throw new Error(`closed for ${secret}`);
    };
    const opened = await openTalking({ script: answering(), channels: [{ id: "desk", deliver } as never] });
    const { skein, deps } = opened;
    const retried = nextOf(skein, "outbox.retry");
    const { runId } = await opened.as(ann).call("agent", {
      sessionKey: "agent:main:desk:group:team",
      message: "Hello",
      deliver: true,
      idempotencyKey: "1",
    });
    await retried;
    const [row] = await skein.outbox({}, "ann");
    return { ...opened, runId, deps, outboxId: row?.outboxId ?? "" };
  };

  test("messages are listed, dropped and resent only by their own user", async () => {
    const { as, skein, runId, outboxId } = await closed();
    const listed = await as(ann).call("outbox.list", { states: ["queued"] });
    expect(listed.messages).toMatchObject([{ outboxId, runId, state: "queued", attempts: 1 }]);
    expect((await as(bob).call("outbox.list", {})).count).toBe(0);
    for (const method of ["outbox.drop", "outbox.retry"] as const) {
      expect(await codeOf(as(bob).call(method, { outboxId }))).toBe("not_found");
      expect(await codeOf(as(ann).call(method, { outboxId: "none" }))).toBe("not_found");
    }
    const dropped = nextOf(skein, "outbox.dropped");
    expect(await as(ann).call("outbox.drop", { outboxId })).toMatchObject({ state: "dropped" });
    expect(await dropped).toMatchObject({ outboxId, runId, channel: "desk", userId: "ann" });
    expect(await as(ann).call("outbox.retry", { outboxId })).toMatchObject({ outboxId, attempts: 0 });
  });

  test("[WLK7] the response of a channel is shown without its secrets", async () => {
    const { as, outboxId } = await closed();
    const error = async (who: typeof ann) => (await as(who).call("outbox.list", {})).messages[0]?.lastError;
    expect(await error(ann)).toContain("closed for");
    expect(await error(ann)).not.toContain(secret);
    expect(await error(annAdmin)).toContain(secret);
    const dropped = await as(ann).call("outbox.drop", { outboxId });
    expect(dropped.lastError).not.toContain(secret);
  });
});
