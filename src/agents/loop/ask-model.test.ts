import { afterEach, describe, expect, test, vi } from "vitest";
import type { Scene } from "../../../test/support/scripted-model.ts";
import {
  apiError,
  call,
  finish,
  said,
  says,
  scriptedModel,
  silent,
} from "../../../test/support/scripted-model.ts";
import type { TurnOptions } from "../../../test/support/turn.ts";
import { openTurn } from "../../../test/support/turn.ts";
import { SkeinError } from "../../core/errors.ts";
import type { Turn } from "../contract.ts";
import { openModel } from "../models/open-model.ts";

async function begin(scenes: readonly Scene[], options: Partial<TurnOptions> = {}) {
  const model = scriptedModel(scenes);
  const it = await openTurn({ model, ...options });
  await it.say({ role: "user", content: "Go" });
  return { ...it, model };
}
const lastMessage = async (it: Awaited<ReturnType<typeof begin>>) => {
  const entry = (await it.entries()).at(-1);
  return entry?.type === "message" ? entry.message : null;
};
const tooLong = apiError(400, "prompt is too long: 250000 tokens > 200000 maximum");
const failing: Scene = [
  ...said("Half an ans"),
  call("a", "read"),
  { type: "error", error: apiError(500, "Boom") },
];

afterEach(() => {
  vi.unstubAllEnvs();
});

describe("a request to a model", () => {
  test("after the last attempt, writes its text without its calls, and the number of attempts", async () => {
    const it = await begin([apiError(500, "First"), failing], { limits: { maxRetries: 1 } });
    await expect(it.run()).rejects.toMatchObject({
      code: "model_failed",
      message: expect.stringContaining(
        "anthropic/claude-sonnet-4-5 did not answer (attempts: 2): Boom. The session",
      ),
    });
    expect(await lastMessage(it)).toMatchObject({
      stopReason: "error",
      errorMessage: "Boom",
      content: [{ type: "text", text: "Half an ans" }],
      skein: { attempts: 2, retryable: true },
    });
  });

  test("reports a permanent error at once, in the provider's words", async () => {
    const it = await begin([apiError(400, "messages: roles must alternate"), says("never")]);
    await expect(it.run()).rejects.toThrow(/roles must alternate/);
    expect(it.model.asked).toHaveLength(1);
    expect(await lastMessage(it)).toMatchObject({ skein: { attempts: 1, retryable: false } });
    const filtered = await begin([[...said("I"), finish("content-filter", "SAFETY")]]);
    await expect(filtered.run()).rejects.toThrow(/stopped the answer because of its content \(SAFETY\)/);
    expect(filtered.charged).toMatchObject([{ input: 10, output: 5 }]);
    expect(it.charged).toEqual([]);
  });

  test.each<[string, Scene]>([
    ["an unterminated stream", said("Half")],
    ["an invalid finish", [...said("Half"), finish("interrupted")]],
    ["a finish with an error", [...said("Half"), finish("error", "MALFORMED_FUNCTION_CALL")]],
  ])("[LOP8] retries %s", async (_, scene) => {
    const it = await begin([scene, says("Whole.")]);
    expect(await it.run()).toMatchObject({ reply: "Whole." });
    expect(it.events.filter(({ type }) => type === "retry")).toMatchObject([{ attempt: 1, code: "cut" }]);
  });

  test("charges every attempt whose usage is known, and ends the turn once the budget is exceeded", async () => {
    const paid: Scene = [...said("Half"), finish("error")];
    const it = await begin([paid, paid, says("Whole.")]);
    expect(await it.run()).toMatchObject({ reply: "Whole." });
    expect(it.charged).toHaveLength(3);
    const lost = await begin([paid, paid], { limits: { maxRetries: 1 } });
    await expect(lost.run()).rejects.toMatchObject({ code: "model_failed" });
    expect(lost.charged).toHaveLength(2);
    const exceeded = new Error("The budget is exceeded.");
    const poor = await begin([paid, says("never")], { with: { charge: () => Promise.reject(exceeded) } });
    await expect(poor.run()).rejects.toBe(exceeded);
    expect(await lastMessage(poor)).toMatchObject({ content: [{ type: "text", text: "Half" }] });
  });

  test("[LOP8] the run is checked between attempts, and an abort ends the wait", async () => {
    const gone = new SkeinError("fenced", { sessionId: "s" });
    const it = await begin([apiError(500, "Boom"), says("never")]);
    let checks = 0;
    Object.assign(it.turn, { check: async () => (++checks === 2 ? Promise.reject(gone) : undefined) });
    await expect(it.run()).rejects.toBe(gone);
    const aborted = await begin([apiError(500, "Boom"), says("never")], {
      with: {
        emit: (event) => event.type === "retry" && aborted.abort(new Error("enough")),
      } as Partial<Turn>,
    });
    await expect(aborted.run()).rejects.toThrow("enough");
    expect(aborted.model.asked).toHaveLength(1);
  });

  test("[OVF2] compacts as long as it helps, without using up an attempt", async () => {
    const it = await begin([tooLong, apiError(500, "Boom"), tooLong, says("Fits.")]);
    expect(await it.run()).toMatchObject({ reply: "Fits." });
    expect([it.rooms, it.sleeps]).toEqual([["overflow", "overflow"], [500]]);
    const never = await begin(Array.from({ length: 9 }, () => tooLong));
    await expect(never.run()).rejects.toMatchObject({ code: "context_overflow" });
    expect([never.rooms.length, never.model.asked.length]).toEqual([4, 4]);
  });

  test("[OVF2] when nothing more can be compacted, the turn ends with the provider's error", async () => {
    const it = await begin([tooLong], { with: { makeRoom: async () => false } });
    await expect(it.run()).rejects.toThrow(/does not fit in the model's context window: prompt is too long/);
    expect(await lastMessage(it)).toMatchObject({ stopReason: "error", skein: { retryable: false } });
  });

  test("[OVF2] sends a request over the threshold that fits the window if nothing can be compacted", async () => {
    const it = await begin([says("Fits.")], { over: [true], with: { makeRoom: async () => false } });
    expect(await it.run()).toMatchObject({ reply: "Fits." });
    const large = await begin([says("never")], {
      over: [true],
      with: { makeRoom: async () => false },
      model: { ...scriptedModel([]), info: { contextWindow: 1 } },
    });
    await expect(large.run()).rejects.toMatchObject({ code: "context_overflow" });
  });

  test("[OVF4] a missing key, an unknown model and an unknown provider are reported with a remedy", async () => {
    const keyless = scriptedModel([]);
    vi.stubEnv("ANTHROPIC_API_KEY", undefined);
    const open = () => openModel(keyless.policy);
    const it = await begin([], { model: { ...keyless, open } });
    await expect(it.run()).rejects.toThrow(/Set ANTHROPIC_API_KEY, or models\.providers\.anthropic\.apiKey/);
    const unknown = await begin([apiError(404, "model: claude-x")]);
    await expect(unknown.run()).rejects.toMatchObject({ code: "model_not_found" });
    const nobody = await begin([], {
      model: { ...keyless, open: () => openModel({ provider: "antropic", model: "x" }) },
    });
    await expect(nobody.run()).rejects.toMatchObject({ code: "invalid_arguments" });
    expect(await lastMessage(nobody)).toMatchObject({ stopReason: "error" });
  });

  const abortAtDelta = (it: () => Awaited<ReturnType<typeof begin>>): Partial<TurnOptions> => ({
    with: { emit: (event) => event.type === "delta" && it().abort(new Error("enough")) } as Partial<Turn>,
  });

  test("[LIB11] an aborted answer keeps its text and drops its calls", async () => {
    const it = await begin(
      [[call("a", "read"), ...said("Half"), silent]],
      abortAtDelta(() => it),
    );
    await expect(it.run()).rejects.toThrow("enough");
    expect(await lastMessage(it)).toMatchObject({
      stopReason: "aborted",
      content: [{ type: "text", text: "Half" }],
    });
    expect(it.model.asked[0]?.abortSignal?.aborted).toBe(true);
  });

  test("[LIB11] with a lost fence writes nothing and throws the abort reason; other failures are thrown unchanged", async () => {
    const it = await begin(
      [[...said("Half"), silent]],
      abortAtDelta(() => it),
    );
    it.fenceOff(() => false);
    await expect(it.run()).rejects.toThrow("enough");
    expect(await it.lines()).toEqual(["user: Go"]);
    const full = new SkeinError("write_failed", { file: "f", problem: "full", advice: "make room" });
    const broken = await begin(
      [[...said("Half"), silent]],
      abortAtDelta(() => broken),
    );
    Object.assign(broken.turn, { say: () => Promise.reject(full) });
    await expect(broken.run()).rejects.toBe(full);
  });

  test("[LIB11] writes nothing without any text, and makes no request for a turn aborted before it starts", async () => {
    const it = await begin([[silent]], {});
    const run = it.run();
    setImmediate(() => it.abort(new Error("enough")));
    await expect(run).rejects.toThrow("enough");
    expect(await it.lines()).toEqual(["user: Go"]);
    const before = await begin([says("never")]);
    before.abort(new Error("too late"));
    await expect(before.run()).rejects.toThrow("too late");
    expect(before.model.asked).toHaveLength(0);
  });

  test("[LOP8] gives up on a silent model, whether or not it respects the signal", async () => {
    const it = await begin([[silent], [silent], says("Here.")]);
    const run = it.run();
    while (it.events.filter(({ type }) => type === "retry").length < 2) {
      it.time.hush();
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await run).toMatchObject({ reply: "Here." });
    expect(it.events).toContainEqual(
      expect.objectContaining({
        type: "retry",
        code: "stalled",
        error: "The model sent nothing for 120 seconds.",
      }),
    );
  });
});
