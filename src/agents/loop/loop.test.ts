import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import type { Scene } from "../../../test/support/scripted-model.ts";
import {
  apiError,
  call,
  callsFor,
  finish,
  said,
  says,
  scriptedModel,
} from "../../../test/support/scripted-model.ts";
import type { TurnOptions } from "../../../test/support/turn.ts";
import { openCall, openTurn, text, tool } from "../../../test/support/turn.ts";
import type { Entry } from "../../core/entries.ts";
import { SkeinError } from "../../core/errors.ts";
import { canonicalJson } from "../../core/json.ts";
import type { MessageDraft } from "../../core/seal.ts";
import type { Tool, Turn } from "../contract.ts";
import type { AnswerDraft } from "../models/assistant-message.ts";
import type { AnsweredCall } from "./call-tool.ts";
import { persistedAnswer, RepeatDetector, restoreArguments } from "./loop.ts";

async function begin(scenes: readonly Scene[], options: Partial<TurnOptions> = {}) {
  const model = scriptedModel(scenes);
  const it = await openTurn({ model, ...options });
  await it.say({ role: "user", content: "Go" });
  return { ...it, model };
}

const user = (content: string): MessageDraft => ({ role: "user", content });
const read = callsFor(call("a", "read", { what: "x" }));

describe("the agent loop", () => {
  test("checks, requests, writes and charges each step, and runs the hooks", async () => {
    const order: string[] = [];
    const note = (name: string) => async () => void order.push(name);
    const it = await begin([read, says("Done.")], { tools: [tool("read")] });
    const { say, request, hooks } = it.turn;
    const turn: Partial<Turn> = {
      check: note("check"),
      charge: note("charge"),
      request: () => {
        order.push("request");
        return request();
      },
      say: (message) => {
        order.push(`say ${message.role}`);
        return say(message);
      },
      takeInput: async () => {
        order.push("takeInput");
        return false;
      },
      hooks: {
        ...hooks,
        llmInput: note("llmInput"),
        llmOutput: note("llmOutput"),
        afterToolCall: note("afterToolCall"),
      },
    };
    Object.assign(it.turn, turn);
    const end = await it.run();
    const step = ["check", "request", "llmInput", "charge", "llmOutput", "say assistant"];
    expect(order).toEqual([...step, "check", "afterToolCall", "say toolResult", "takeInput", ...step]);
    const last = (await it.entries()).at(-1);
    expect(end).toEqual({ kind: "answered", reply: "Done.", entryId: last?.id });
  });

  test("writes input once every call is answered; an answer without calls ends the turn", async () => {
    const it = await begin([read, says("Done."), says("Never asked.")], {
      tools: [tool("read")],
      meanwhile: [user("And tea"), user("And cake")],
    });
    expect(await it.run()).toMatchObject({ kind: "answered", reply: "Done." });
    expect(await it.lines()).toEqual([
      "user: Go",
      'assistant toolUse: → read {"what":"x"}',
      'result read: read {"what":"x"}',
      "user: And tea",
      "assistant stop: Done.",
    ]);
  });

  test("compacts first when over the threshold, but not endlessly", async () => {
    const it = await begin([says("Done.")], { over: [true, true, true, true, true] });
    expect(await it.run()).toMatchObject({ kind: "answered" });
    // The port frees space three times. Then the request is sent unchanged.
    expect(it.rooms).toEqual(Array(4).fill("threshold"));
  });

  test("a tool that asks to sleep ends the turn once every call is answered", async () => {
    const nap = (waitFor?: readonly string[]) =>
      tool("nap", async () => ({ ...text("sleeping"), sleep: waitFor === undefined ? {} : { waitFor } }));
    const naps = callsFor(call("a", "nap"), call("b", "read"));
    const it = await begin([naps], { tools: [nap(["r1"]), tool("read")] });
    const end = await it.run();
    const entries = await it.entries();
    expect(end).toEqual({ kind: "yielded", entryId: entries.at(-1)?.id, sleep: { waitFor: ["r1"] } });
    expect((await it.lines()).slice(2)).toEqual(["result nap: sleeping", "result read: read {}"]);
  });

  test("several sleeping tools wait for all; one without names waits for everything; a failed one waits for nothing", async () => {
    const nap = (name: string, sleep: { waitFor?: readonly string[] }, isError = false) =>
      tool(name, async () => ({ ...text("z"), sleep, isError }));
    const naps = callsFor(call("a", "one"), call("b", "two"), call("c", "one"));
    const named = await begin([naps], {
      tools: [nap("one", { waitFor: ["r1"] }), nap("two", { waitFor: ["r2"] })],
    });
    expect(await named.run()).toMatchObject({ sleep: { waitFor: ["r1", "r2"] } });
    const all = await begin([naps], { tools: [nap("one", { waitFor: ["r1"] }), nap("two", {})] });
    expect(await all.run()).toMatchObject({ kind: "yielded", sleep: {} });
    const failed = await begin([callsFor(call("a", "one")), says("Hm.")], { tools: [nap("one", {}, true)] });
    expect(await failed.run()).toMatchObject({ kind: "answered" });
  });

  test.each([[["nap", "slow", "quick"]], [["slow", "nap", "quick"]], [["quick", "slow", "nap"]]])(
    "%j: the exclusive call is made after the others, and its result is written last",
    async (names) => {
      const order: string[] = [];
      const slow = tool("slow", async () => {
        await new Promise((done) => setImmediate(done));
        order.push("slow");
        return text("slow");
      });
      const quick = tool("quick", async () => {
        order.push("quick");
        return text("quick");
      });
      const nap = tool("nap", async () => {
        order.push("nap");
        return { ...text("nap"), sleep: { waitFor: ["r1"] } };
      });
      const calls = callsFor(...names.map((name) => call(`c-${name}`, name)));
      const it = await begin([calls], { tools: [{ ...nap, isLast: true }, slow, quick] });
      expect(await it.run()).toMatchObject({ kind: "yielded", sleep: { waitFor: ["r1"] } });
      expect(order).toEqual(["quick", "slow", "nap"]);
      expect((await it.lines()).slice(2)).toEqual(order.map((name) => `result ${name}: ${name}`));
    },
  );

  test("the exclusive call is made alone, even after failed calls, and not after the run has ended", async () => {
    let naps = 0;
    const nap = tool("nap", async () => text(`nap ${++naps}`));
    const tools = [{ ...nap, isLast: true }, tool("bad", () => Promise.reject(new Error("no")))];
    const failed = await begin([callsFor(call("a", "nap"), call("b", "bad")), says("Hm.")], { tools });
    expect(await failed.run()).toMatchObject({ kind: "answered" });
    expect((await failed.lines()).slice(2, 4)).toEqual(["result bad failed: no", "result nap: nap 1"]);
    const alone = await begin([callsFor(call("a", "nap")), says("Hm.")], { tools });
    expect(await alone.run()).toMatchObject({ kind: "answered" });
    const lost = tool("lost", () => Promise.reject(new SkeinError("fenced", { sessionId: "s" })));
    const ended = await begin([callsFor(call("a", "nap"), call("b", "lost"))], { tools: [...tools, lost] });
    await expect(ended.run()).rejects.toMatchObject({ code: "fenced" });
    expect(naps).toBe(2);
  });

  test("[LIB31] of the calls that a lost owner left open, repeats the safe ones and reports the others", async () => {
    const done: string[] = [];
    const doing = (name: string, replay: Tool["replay"]) =>
      tool(
        name,
        async (_, { entryId }) => {
          done.push(`${name} ${entryId}`);
          return text("again");
        },
        { replay },
      );
    const it = await begin([says("I see.")], { tools: [doing("safe", "safe"), doing("never", "never")] });
    const { entry } = await it.say(
      answerWith(openCall("a", "never"), openCall("b", "safe"), openCall("c", "gone")),
    );
    if (entry === null) throw new Error("refused");
    const calls = [openCall("a", "never"), openCall("b", "safe"), openCall("c", "gone")];
    Object.assign(it.turn, { open: { entryId: entry.id, calls } });
    expect(await it.run()).toMatchObject({ kind: "answered", reply: "I see." });
    expect(done).toEqual([`safe ${entry.id}`]);
    const [gone, never, safe] = (await it.lines()).filter((line) => line.startsWith("result")).toSorted();
    expect(never).toMatch(
      /^result never failed: The run was interrupted .* unknown whether the call took effect/,
    );
    expect(safe).toBe("result safe: again");
    expect(gone).toMatch(/^result gone failed: The run was interrupted/);
  });

  test("[LOP3] makes at most the allowed number of requests, keeps completed work, and the session continues", async () => {
    let count = 0;
    const it = await begin(
      Array.from({ length: 9 }, (_, index) => callsFor(call(`c${index}`, "read"))),
      { tools: [tool("read", async () => text(`result ${++count}`))], limits: { maxSteps: 3 } },
    );
    await expect(it.run()).rejects.toMatchObject({ code: "step_limit" });
    expect(it.model.asked).toHaveLength(3);
    expect(await it.lines()).toHaveLength(7);
    Object.assign(it.model, scriptedModel([says("Done.")]));
    await it.say(user("Stop"));
    expect(await it.run()).toMatchObject({ kind: "answered", reply: "Done." });
  });

  test("[ATG17] ends the turn after the same call with the same result three times in a row, in any field order", async () => {
    const again = [
      callsFor(call("a", "read", { what: "x", from: 1 })),
      callsFor(call("b", "read", { from: 1, what: "x" })),
      callsFor(call("c", "read", { what: "x", from: 1 })),
    ];
    const tools = [tool("read", async () => text("nothing"))];
    const it = await begin([...again, says("never")], { tools });
    await expect(it.run()).rejects.toMatchObject({ code: "repeated_call", details: { tool: "read" } });
    expect((await it.lines()).at(-1)).toBe("result read: nothing");
    const steered = await begin([...again, says("Done.")], { tools, meanwhile: [null, user("Go on"), null] });
    expect(await steered.run()).toMatchObject({ kind: "answered" });
  });

  test("requests an empty answer once more without writing it, and accepts the second", async () => {
    const empty = [finish()];
    const thoughts: Scene = [
      { type: "reasoning-start", id: "1" },
      { type: "reasoning-end", id: "1" },
      finish(),
    ];
    const it = await begin([thoughts, says("Here."), empty, empty, says("never")]);
    expect(await it.run()).toMatchObject({ reply: "Here." });
    expect(await it.lines()).toEqual(["user: Go", "assistant stop: Here."]);
    expect(it.charged).toHaveLength(2);
    expect(await it.run()).toMatchObject({ kind: "answered", reply: "" });
    expect(it.model.asked).toHaveLength(4);
  });

  test("an answer that the guard refuses is not a reply, and its calls are not made", async () => {
    const execute = vi.fn(async () => text("done"));
    const it = await begin([callsFor(...said("I do it."), call("a", "read"))], {
      tools: [tool("read", execute)],
    });
    Object.assign(it.turn, { say: async () => ({ entry: null, refused: "no" }) });
    expect(await it.run()).toEqual({ kind: "answered", reply: "", entryId: "" });
    expect(execute).not.toHaveBeenCalled();
  });

  test("a failed check, an exceeded budget and a lost fence end the turn with their own error", async () => {
    const gone = new SkeinError("fenced", { sessionId: "s" });
    for (const port of ["check", "charge", "request", "takeInput"] as const) {
      const it = await begin([read, says("Done.")], {
        tools: [tool("read")],
        with: { [port]: () => Promise.reject(gone) },
      });
      await expect(it.run()).rejects.toBe(gone);
    }
    const it = await begin([says("Done.")]);
    it.fenceOff(() => false);
    await expect(it.run()).rejects.toMatchObject({ code: "fenced" });
  });

  test("reports how each step ended, even without an answer", async () => {
    const steps = (it: { readonly events: readonly { readonly type: string }[] }) =>
      it.events.filter((event) => event.type === "step");
    const well = await begin([read, says("Done.")], { tools: [tool("read")] });
    await well.run();
    expect(steps(well)).toMatchObject([
      { phase: "asked", step: 1 },
      { phase: "answered", step: 1, finishReason: "toolUse" },
      { phase: "asked", step: 2 },
      { phase: "answered", step: 2, finishReason: "stop" },
    ]);
    const ill = await begin([apiError(401, "Who are you?")]);
    await expect(ill.run()).rejects.toMatchObject({ code: "model_auth" });
    expect(steps(ill)).toMatchObject([
      { phase: "asked", step: 1 },
      { phase: "answered", step: 1, code: "model_auth" },
    ]);
  });

  test("[LOP8] streamed text of a failed attempt is discarded", async () => {
    const broken: Scene = [...said("Half an ans"), { type: "error", error: apiError(500, "Boom") }];
    const it = await begin([broken, says("Whole.")]);
    expect(await it.run()).toMatchObject({ reply: "Whole." });
    expect(await it.lines()).toEqual(["user: Go", "assistant stop: Whole."]);
    expect(it.events.map(({ type }) => type)).toEqual(["step", "delta", "retry", "delta", "step"]);
  });
});

function answerWith(...calls: ReturnType<typeof openCall>[]): MessageDraft {
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
  return {
    role: "assistant",
    content: calls,
    provider: "anthropic",
    api: "anthropic-messages",
    model: "claude-sonnet-4-5",
    usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost },
    stopReason: "toolUse",
  };
}

const persisted = (args: Readonly<Record<string, unknown>>) => ({ ...args, what: "(a note)" });

describe("arguments that are stored in another form", () => {
  test("[FAM17] a call is made with the requested arguments and stored in the shortened form", async () => {
    const got: unknown[] = [];
    const put = tool(
      "put",
      async (args) => {
        got.push(args);
        return text("ok");
      },
      { persisted },
    );
    const model = scriptedModel([callsFor(call("a", "put", { what: "large", where: "x" })), says("Done.")]);
    const it = await openTurn({ model, tools: [put] });
    await it.say({ role: "user", content: "Go" });
    const written: (Entry | null)[] = [];
    const { say } = it.turn;
    Object.assign(it.turn, {
      say: async (message: Parameters<typeof say>[0]) => {
        const done = await say(message);
        written.push(done.entry);
        return done;
      },
    });
    await it.run();
    expect(got).toEqual([{ what: "large", where: "x" }]);
    expect(JSON.stringify(written[0])).toContain("(a note)");
    expect(JSON.stringify(written)).not.toContain("large");
  });

  const answer = {
    content: [
      { type: "text", text: "x" },
      { type: "toolCall", id: "a", name: "put", arguments: { what: "large", where: "x" } },
      { type: "toolCall", id: "b", name: "read", arguments: { what: "b" } },
    ],
  } as unknown as AnswerDraft;

  test("an answer that no tool changes is returned unchanged", () => {
    expect(persistedAnswer(answer, [tool("put"), tool("read")])).toBe(answer);
  });

  test("[FAM17] keeps arguments that a hook changed before the write", () => {
    const kept = persistedAnswer(answer, [tool("put", undefined, { persisted }), tool("read")]);
    const written = { type: "toolCall", id: "a", name: "put" } as const;
    const calls = [
      { ...written, arguments: { what: "(a note)", where: "masked" } },
      { ...written, id: "b", name: "read", arguments: { what: "masked" } },
    ];
    expect(restoreArguments(calls, kept, answer).map(({ arguments: args }) => args)).toEqual([
      { what: "large", where: "masked" },
      { what: "masked" },
    ]);
    const masked = [{ ...written, arguments: { what: "masked", where: "x" } }];
    expect(restoreArguments(masked, kept, answer)[0]?.arguments).toEqual({ what: "masked", where: "x" });
  });
});

const done = (name: string, args: Record<string, unknown>, said: string, isError = false): AnsweredCall => ({
  call: openCall("c", name, args),
  result: {
    role: "toolResult",
    toolCallId: "c",
    toolName: name,
    content: [{ type: "text", text: said }],
    isError,
  },
});
const same = done("read", { a: 1 }, "x");

describe("repeated calls", () => {
  test.each<[string, AnsweredCall[][], boolean]>([
    ["the same three times", [[same], [same], [same]], true],
    ["twice", [[same], [same]], false],
    ["three times in one message", [[same, same, same], [same]], false],
    ["another call in between", [[same], [same], [done("find", {}, "x")], [same], [same]], false],
    ["another result", [[same], [same], [done("read", { a: 1 }, "y")]], false],
    ["a result that failed", [[same], [same], [done("read", { a: 1 }, "x", true)]], false],
    ["other arguments", [[same], [same], [done("read", { a: 2 }, "x")]], false],
    [
      "a pair, in any order",
      [
        [same, done("b", {}, "")],
        [done("b", {}, ""), same],
        [same, done("b", {}, "")],
      ],
      true,
    ],
    ["together with a new call each time", [1, 2, 3].map((at) => [same, done("work", { at }, "ok")]), false],
  ])("[ATG17] %s", (_, steps, isLoop) => {
    const repeats = new RepeatDetector();
    expect(steps.map((step) => repeats.add(step)).at(-1)).toBe(isLoop);
  });

  test("[ATG17] equal values have equal text in any field order, and different values differ", () => {
    const shuffled = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(shuffled);
      if (typeof value !== "object" || value === null) return value;
      return Object.fromEntries(
        Object.entries(value)
          .toReversed()
          .map(([name, each]) => [name, shuffled(each)]),
      );
    };
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const parsed = JSON.parse(JSON.stringify(value)) as unknown;
        return canonicalJson(parsed) === canonicalJson(shuffled(parsed));
      }),
    );
    expect(canonicalJson({ a: 1 })).not.toBe(canonicalJson({ a: 2 }));
    expect(canonicalJson({ a: 1 })).not.toBe(canonicalJson([["a", 1]]));
  });
});
