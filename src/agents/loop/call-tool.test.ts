import { describe, expect, test, vi } from "vitest";
import type { Scene } from "../../../test/support/scripted-model.ts";
import { call, callsFor, says, scriptedModel } from "../../../test/support/scripted-model.ts";
import type { TurnOptions } from "../../../test/support/turn.ts";
import { openTurn, text, tool } from "../../../test/support/turn.ts";
import { HookStop, SkeinError } from "../../core/errors.ts";
import { RunStopped } from "../../runs/worker.ts";
import type { ToolOutput, Turn } from "../contract.ts";

async function begin(scenes: readonly Scene[], options: Partial<TurnOptions> = {}) {
  const it = await openTurn({ model: scriptedModel([...scenes, says("Done.")]), ...options });
  await it.say({ role: "user", content: "Go" });
  return it;
}

const calling = (input: unknown = { what: "x" }) => callsFor(call("a", "read", input));
const read = (execute?: () => Promise<ToolOutput>, more = {}) => tool("read", execute, more);
const hooked = (it: Awaited<ReturnType<typeof begin>>, hooks: Partial<Turn["hooks"]>) =>
  Object.assign(it.turn, { hooks: { ...it.turn.hooks, ...hooks } });

describe("a tool call", () => {
  test.each<[string, Partial<TurnOptions>, unknown, RegExp]>([
    [
      "an unknown tool",
      { tools: [tool("find"), tool("look")] },
      {},
      /There is no tool "read"\. The available tools are: find, look\./,
    ],
    ["no tools at all", {}, {}, /No tools are available\./],
    [
      "arguments that are not JSON",
      { tools: [read()] },
      '{"what": ',
      /not a JSON object: \{"what": \nCall read again/,
    ],
    ["arguments that are a list", { tools: [read()] }, "[1]", /not a JSON object: \[1\]/],
    [
      "arguments that do not match",
      { tools: [read(undefined, { check: async () => ({ problem: "/what must be text" }) })] },
      {},
      /The arguments for read are invalid: \/what must be text/,
    ],
    [
      "a tool that throws",
      { tools: [read(() => Promise.reject(new Error("The disk is full.")))] },
      {},
      /^result read failed: The disk is full\.$/,
    ],
    [
      "a tool that throws a non-error synchronously",
      {
        tools: [
          read(() => {
            throw { toString: () => "odd" };
          }),
        ],
      },
      {},
      /^result read failed: odd$/,
    ],
    [
      "a tool that reports a failure",
      { tools: [read(async () => ({ ...text("No."), isError: true }))] },
      {},
      /failed: No\.$/,
    ],
  ])("[KIL6] %s is a failed result, and the run continues", async (_, options, input, line) => {
    const it = await begin([calling(input)], options);
    expect(await it.run()).toMatchObject({ kind: "answered", reply: "Done." });
    const said = (await it.lines())[2] ?? "";
    expect(said).toMatch(line);
    expect(said).toContain("failed");
    expect(said).not.toContain(".ts:");
  });

  test("[KIL6] a hook may change the arguments, or block the call with a reason", async () => {
    const it = await begin([calling()], { tools: [read()] });
    const after: unknown[] = [];
    hooked(it, {
      beforeToolCall: async () => ({ arguments: { what: "y" }, block: null }),
      afterToolCall: async (made, result) => void after.push([made.arguments, result]),
    });
    await it.run();
    expect((await it.lines())[2]).toBe('result read: read {"what":"y"}');
    expect(after).toMatchObject([[{ what: "y" }, { role: "toolResult", toolCallId: "a" }]]);
    const execute = vi.fn(async () => text("done"));
    const blocked = await begin([calling()], { tools: [read(execute)] });
    hooked(blocked, {
      beforeToolCall: async (made) => ({ arguments: made.arguments, block: "not on Sundays" }),
    });
    await blocked.run();
    expect((await blocked.lines())[2]).toBe("result read failed: This call was blocked: not on Sundays");
    expect(execute).not.toHaveBeenCalled();
  });

  test("[KIL6] a call that needs approval is made only when approved", async () => {
    const execute = vi.fn(async () => text("done"));
    const tools = [read(execute, { needsApproval: () => true })];
    const asked = vi.fn(async () => ({ approved: false, note: "Ann said no." }));
    const it = await begin([calling()], { tools, with: { approve: asked } });
    await it.run();
    expect((await it.lines())[2]).toBe("result read failed: This call was not approved. Ann said no.");
    expect([asked.mock.calls.length, execute.mock.calls.length]).toEqual([1, 0]);
    const approved = await begin([calling()], { tools });
    await approved.run();
    expect((await approved.lines())[2]).toBe("result read: done");
  });

  test.each<[string, ToolOutput]>([
    ["no blocks", { content: [] }],
    ["a blank text", { content: [{ type: "text", text: " \n" }] }],
  ])("[KIL6] %s is reported as no output", async (_, output) => {
    const it = await begin([calling()], { tools: [read(async () => output)] });
    await it.run();
    expect((await it.lines())[2]).toBe("result read: (no output)");
  });

  test("[KIL6] details are kept with the result, and the tool gets the context of the call", async () => {
    const about: unknown[] = [];
    const it = await begin([calling()], {
      tools: [
        tool("read", async (_, { whileWaiting, signal, ...context }) => {
          about.push(context, await whileWaiting(["r"], async () => 7), signal.aborted);
          return { ...text("x"), details: { lines: 3 } };
        }),
      ],
    });
    await it.run();
    const entries = await it.entries();
    expect(about).toEqual([
      { about: it.turn.about, toolCallId: "a", entryId: entries[1]?.id, state: {} },
      { entered: true, value: 7 },
      false,
    ]);
    expect(entries[2]).toMatchObject({ message: { details: { lines: 3 }, isError: false } });
  });

  test("[LIB11] a tool that never returns is abandoned when the turn is aborted, and nothing more is written", async () => {
    let isAborted = false;
    const it = await begin([callsFor(call("a", "hang"), call("b", "read"))], {
      tools: [
        read(),
        tool("hang", (_, { signal }) => {
          signal.addEventListener("abort", () => {
            isAborted = true;
          });
          queueMicrotask(() => it.abort(new Error("enough")));
          return new Promise(() => undefined);
        }),
      ],
    });
    await expect(it.run()).rejects.toThrow("enough");
    expect(isAborted).toBe(true);
    expect(await it.lines()).toHaveLength(2);
  });

  test("[LIB11] an abort does not wait for a hook, a check or a person", async () => {
    const never = () => {
      queueMicrotask(() => current.abort(new Error("enough")));
      return new Promise<never>(() => undefined);
    };
    let current = await begin([calling()], { tools: [read()] });
    hooked(current, { beforeToolCall: never });
    await expect(current.run()).rejects.toThrow("enough");
    current = await begin([calling()], { tools: [read(undefined, { check: never })] });
    await expect(current.run()).rejects.toThrow("enough");
    current = await begin([calling()], {
      tools: [read(undefined, { needsApproval: () => true })],
      with: { approve: never },
    });
    await expect(current.run()).rejects.toThrow("enough");
    expect(await current.lines()).toHaveLength(2);
  });

  test("[LOP9] an early result does not wait for a slower call, and a rejected write ends the run", async () => {
    const written: string[] = [];
    const gone = new SkeinError("fenced", { sessionId: "s" });
    let free: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      free = resolve;
    });
    const tools = [
      tool("slow", async () => {
        await held;
        return text("slow");
      }),
      tool("fast", async () => text("fast")),
    ];
    const it = await begin([callsFor(call("a", "slow"), call("b", "fast"))], { tools });
    const { say } = it.turn;
    Object.assign(it.turn, {
      say: async (message: Parameters<Turn["say"]>[0]) => {
        if (message.role !== "toolResult") return say(message);
        written.push(message.toolName);
        if (message.toolName === "slow") throw gone;
        free();
        return { entry: null, refused: null };
      },
    });
    await expect(it.run()).rejects.toBe(gone);
    expect(written).toEqual(["fast", "slow"]);
  });

  test("[LOP9] a failed check ends the run at once, and a tool that finishes later writes nothing", async () => {
    const gone = new SkeinError("fenced", { sessionId: "s" });
    let free: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      free = resolve;
    });
    const slow = tool("slow", async () => {
      await held;
      return text("slow");
    });
    const it = await begin([callsFor(call("a", "slow"), call("b", "slow"))], { tools: [slow] });
    let checks = 0;
    Object.assign(it.turn, { check: async () => (++checks === 3 ? Promise.reject(gone) : undefined) });
    await expect(it.run()).rejects.toBe(gone);
    const say = vi.spyOn(it.turn, "say");
    free();
    await new Promise((resolve) => setImmediate(resolve));
    expect(say).not.toHaveBeenCalled();
    expect(await it.lines()).toHaveLength(2);
  });

  test("[KIL6] a write under a lost fence inside a tool ends the run", async () => {
    const gone = new SkeinError("fenced", { sessionId: "s" });
    const it = await begin([calling()], { tools: [read(() => Promise.reject(gone))] });
    await expect(it.run()).rejects.toBe(gone);
  });

  test("a hook that stops the run, and a close during an approval, end the run without a result", async () => {
    const stop = new HookStop("enough");
    const stopped = await begin([calling()], { tools: [read()] });
    hooked(stopped, { beforeToolCall: () => Promise.reject(stop) });
    await expect(stopped.run()).rejects.toBe(stop);
    const closing = new RunStopped("closing");
    let isClosing = false;
    const asked = await begin([calling()], {
      tools: [read(undefined, { needsApproval: () => true })],
      with: {
        check: () => (isClosing ? Promise.reject(closing) : Promise.resolve()),
        approve: async () => {
          isClosing = true;
          return { approved: true, note: "" };
        },
      },
    });
    await expect(asked.run()).rejects.toBe(closing);
    for (const it of [stopped, asked]) expect(await it.lines()).toHaveLength(2);
  });
});

describe("the digest of a call that needs approval", () => {
  async function digestsOf(calls: readonly object[], entryId: string) {
    const digests: unknown[] = [];
    const approve: Turn["approve"] = async (_, { callDigest, isReplay } = {}) => {
      digests.push(callDigest);
      return { approved: isReplay === true, note: "" };
    };
    const persisted = ({ note: _, ...args }: Readonly<Record<string, unknown>>) => args;
    const tools = [read(undefined, { needsApproval: () => true, replay: "safe", persisted })];
    const it = await begin([], { tools, with: { approve } });
    const open = calls.map((args) => ({ type: "toolCall", id: "a", name: "read", arguments: args }));
    Object.assign(it.turn, { open: { entryId, calls: open } });
    await it.run();
    return digests;
  }

  test("[LIB13] depends on its answer and its arguments, but not on arguments that the log does not hold", async () => {
    const [first, noted, other] = await digestsOf(
      [{ what: "x" }, { what: "x", note: 1 }, { what: "y" }],
      "e1",
    );
    expect(noted).toBe(first);
    expect(other).not.toBe(first);
    expect((await digestsOf([{ what: "x" }], "e1"))[0]).toBe(first);
    expect((await digestsOf([{ what: "x" }], "e2"))[0]).not.toBe(first);
  });
});
