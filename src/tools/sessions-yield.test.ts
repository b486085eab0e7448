import { beforeEach, describe, expect, test } from "vitest";
import { WatchingWorld } from "../../test/support/watching-world.ts";
import type { Entry } from "../core/entries.ts";
import { sessionRefOf } from "../core/session-ref.ts";
import type { Run } from "../runs/contract.ts";
import { recoveryOf } from "../runs/recovery.ts";
import { yieldedFor } from "../sessions/turn-ports.ts";
import type { SessionRecord } from "../store/contract.ts";
import { sessionsYield } from "./sessions-yield.ts";

let world: WatchingWorld;
let parent: SessionRecord;
let run: Run;
beforeEach(async () => {
  world = new WatchingWorld();
  parent = await world.session("agent:main:main");
  run = await world.running(parent);
});

const yieldWith = (args: Record<string, unknown> = {}, by: Run | null = run) =>
  sessionsYield.execute(args, world.caller(parent, by), world.deps);

/** Ends the next claimed run and announces its end to the parent. */
async function finishNext(): Promise<Run> {
  const claim = await world.books.claim();
  const provenance = { kind: "inter_session", sourceSessionKey: claim.run.session.key };
  const message = { role: "user" as const, content: "done", provenance };
  const announce = { session: sessionRefOf(parent), kind: "announce" as const, message, provenance };
  const deliver = [{ ...announce, arrivalOf: claim.run.runId, root: claim.run.root, isDelivery: true }];
  await world.books.runs.end(claim.held, { state: "ok" }, { deliver });
  return claim.run;
}

describe("sessions_yield", () => {
  test("[FAM20] runs last, and waits for every open run that this one started", async () => {
    expect(sessionsYield.isLast).toBe(true);
    const a = await world.spawn(parent, "a", { by: run });
    const b = await world.spawn(parent, "b", { by: run });
    await world.spawn(parent, "of-nobody");
    const { result, sleep } = await yieldWith();
    expect(result).toEqual({
      status: "yielded",
      message: "Turn yielded.",
      waitingFor: [a.run.runId, b.run.runId],
    });
    expect(sleep).toEqual({ waitFor: [a.run.runId, b.run.runId] });
    expect((await yieldWith({ message: "Later." })).result.message).toBe("Later.");
  });

  test("[FAM20] an ended run counts as long as its announcement is unread", async () => {
    await world.spawn(parent, "a", { by: run });
    const ended = await finishNext();
    const { result, sleep } = await yieldWith();
    expect(result).toMatchObject({ status: "yielded", waitingFor: [ended.runId] });
    const slept = await world.books.runs.sleep(
      { runId: run.runId, fence: run.fence },
      { ...sleep, wakeAt: world.books.now + 1000 },
    );
    expect(slept).toBe("queued");
  });

  test("[FAM22] with nothing to wait for it is refused, and the turn continues", async () => {
    const { result, sleep } = await yieldWith();
    expect(result).toEqual({
      status: "error",
      code: "nothing_to_wait_for",
      error: "There is nothing to wait for: you have no open runs. Continue your turn.",
    });
    expect(sleep).toBeUndefined();
    const { run: child } = await world.spawn(parent, "a", { by: run });
    await world.books.runs.abort(child.runId);
    expect((await yieldWith()).result.code).toBe("nothing_to_wait_for");
    const named = (await yieldWith({ waitFor: [child.runId] })).result;
    expect(named).toMatchObject({
      code: "nothing_to_wait_for",
      error: expect.stringContaining("have ended"),
    });
  });

  test("[FAM22] named runs are awaited; unknown ones are refused by name, and another user's are unknown", async () => {
    const a = await world.spawn(parent, "a", { by: run });
    await world.spawn(parent, "b", { by: run });
    const { result, sleep } = await yieldWith({ waitFor: [a.run.runId, a.run.runId] });
    expect(result.waitingFor).toEqual([a.run.runId]);
    expect(sleep).toEqual({ waitFor: [a.run.runId] });
    const bobs = await world.accept(await world.session("agent:main:main", {}, "bob"));
    const { result: refused, sleep: none } = await yieldWith({ waitFor: [bobs.runId, a.run.runId, "x"] });
    expect(refused).toMatchObject({ status: "error", code: "not_found" });
    expect(refused.error).toContain(`Runs not found: ${bobs.runId}, x (`);
    expect(none).toBeUndefined();
  });

  test("[FAM22] a run of an invisible session looks like one that does not exist", async () => {
    const other = await world.accept(await world.session("agent:main:session:other"));
    expect((await yieldWith({ waitFor: [other.runId] })).result.code).toBe("not_found");
    world.settings = { ...world.settings, agents: { main: { visibility: "agent" } } };
    expect((await yieldWith({ waitFor: [other.runId] })).result.status).toBe("yielded");
    const sandboxed = world.caller(parent, run, { sandboxed: true });
    const { result } = await sessionsYield.execute({ waitFor: [other.runId] }, sandboxed, world.deps);
    expect(result.code).toBe("not_found");
  });

  test("[FAM22] is refused outside of a session and outside of a run", async () => {
    const outside = world.caller(parent, null, { session: null });
    expect((await sessionsYield.execute({}, outside, world.deps)).result).toEqual({
      status: "error",
      code: "no_session",
      error: "No session context",
    });
    expect((await yieldWith({}, null)).result).toEqual({
      status: "error",
      code: "yield_not_supported",
      error: "Yield not supported in this context",
    });
  });

  test("refuses to wait for a sleeping run that waits for this one, with the cycle", async () => {
    const { session, run: queued } = await world.spawn(parent, "a", { by: run });
    const claim = await world.books.claim();
    expect(claim.run.runId).toBe(queued.runId);
    await world.books.runs.sleep(claim.held, { waitFor: [run.runId], wakeAt: world.books.now + 1000 });
    const { result, sleep } = await yieldWith();
    const cycle = [run.runId, queued.runId, run.runId];
    expect(result).toMatchObject({ status: "error", code: "wait_cycle", cycle });
    expect(sleep).toBeUndefined();
    expect((await yieldWith({ waitFor: [run.runId] })).result.code).toBe("wait_cycle");
    expect((await world.open(session)).length).toBe(1);
  });

  test("input that waits for this very session is not a deadlock: a sleeping run blocks no one", async () => {
    const { run: queued } = await world.spawn(parent, "a", { by: run });
    const claim = await world.books.claim();
    const asked = await world.accept(parent, { kind: "send", startedBy: queued.runId });
    await world.books.runs.sleep(claim.held, { waitFor: [asked.runId], wakeAt: world.books.now + 1000 });
    expect(await world.books.runs.waits(asked.runId)).toMatchObject({ runIds: [run.runId] });
    expect((await yieldWith()).result).toMatchObject({ status: "yielded", waitingFor: [queued.runId] });
  });

  test.each(["details", "text"])(
    "[FAM23] after a crash following it, the run sleeps because of its %s",
    async (by) => {
      const { run: child } = await world.spawn(parent, "a", { by: run });
      const { result, sleep } = await yieldWith();
      const content = [{ type: "text", text: by === "text" ? JSON.stringify(result) : "yielded" }];
      const entries = [
        { role: "user", content: "Go" },
        {
          role: "assistant",
          stopReason: "toolUse",
          content: [{ type: "toolCall", id: "c", name: "sessions_yield", arguments: {} }],
        },
        {
          role: "toolResult",
          toolCallId: "c",
          toolName: "sessions_yield",
          content,
          ...(by === "details" ? { details: result } : {}),
        },
      ].map((message, index) => ({ type: "message", id: `e${index}`, message }) as unknown as Entry);
      expect(recoveryOf(entries, { wasWoken: false, mostAttempts: 3, startedAt: null })).toBe("sleep");
      expect(yieldedFor(entries)).toEqual(sleep);
      expect(sleep).toEqual({ waitFor: [child.runId] });
    },
  );
});
