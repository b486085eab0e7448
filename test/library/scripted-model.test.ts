import { APICallError } from "@ai-sdk/provider";
import { generateText } from "ai";
import { describe, expect, test } from "vitest";
import { scriptedModel, testClock } from "../../src/entry-testing.ts";
import { asked, collected, streamed, told, user } from "../support/rehearsal.ts";

const hello = asked("hello");

describe("the scripted model", () => {
  test("[REH12] plays one step per request, the same whole or streamed, and records the requests", async () => {
    const step = {
      thinking: "Hm.",
      text: "Good morning, all.",
      calls: [{ name: "weather", arguments: { city: "Kyoto" } }],
    };
    const model = scriptedModel([step, step, { text: "Bye." }]);
    const whole = await told(model, hello);
    expect(whole).toMatchObject({
      finish: "tool-calls",
      text: "Good morning, all.",
      calls: [{ name: "weather", id: "call_1" }],
    });
    expect(collected(await streamed(model, asked([user("again")])))).toEqual(whole.content);
    expect(model.requests.map(({ prompt }) => prompt)).toEqual([hello.prompt, [user("again")]]);
    const { text } = await generateText({ model, prompt: "bye" });
    expect(text).toBe("Bye.");
  });

  test("[REH12] an exhausted script is an error; a function never ends", async () => {
    const model = scriptedModel([{ text: "Once." }]);
    await told(model, hello);
    await expect(told(model, hello)).rejects.toMatchObject({
      code: "invalid_arguments",
      message: expect.stringContaining("1 steps"),
    });
    const endless = scriptedModel(({ prompt }, index) => ({ text: `${prompt.length} ${index}` }));
    expect([(await told(endless, hello)).text, (await told(endless, hello)).text]).toEqual(["1 0", "1 1"]);
  });

  test("[REH12] usage, finish reason and IDs are as scripted", async () => {
    const model = scriptedModel([
      {
        text: "Cut",
        finish: "length",
        usage: { input: 100, output: 7, cacheRead: 50 },
        calls: [{ name: "x", id: "mine" }],
      },
    ]);
    const { finish, usage, calls } = await told(model, hello);
    expect({ finish, calls }).toMatchObject({ finish: "length", calls: [{ id: "mine", arguments: {} }] });
    expect(usage.inputTokens).toMatchObject({ total: 150, noCache: 100, cacheRead: 50 });
    expect(usage.outputTokens.total).toBe(7);
  });

  test.each([
    [{ status: 529, message: "Overloaded" }, true],
    [{ status: 400, message: "Bad" }, false],
    [{ status: 400, message: "Bad", retryable: true }, true],
    [{ message: "Network" }, true],
  ])("[REH12] fails as scripted: %j", async (error, isRetryable) => {
    const model = scriptedModel(() => ({ error }));
    for (const asking of [model.doGenerate(hello), model.doStream(hello)]) {
      const thrown = await Promise.resolve(asking).then(null, (reason: unknown) => reason);
      expect(APICallError.isInstance(thrown)).toBe(true);
      expect(thrown).toMatchObject({ message: error.message, isRetryable });
    }
  });

  test("[REH12] text before an error or a cut is streamed", async () => {
    const model = scriptedModel([
      { text: "So far", error: { status: 500, message: "Gone", retryAfter: "2" } },
      { text: "So far", cut: true },
    ]);
    const failed = await streamed(model, hello);
    expect(collected(failed)).toEqual([{ type: "text", text: "So far" }]);
    expect(failed.at(-1)).toMatchObject({
      type: "error",
      error: { responseHeaders: { "retry-after": "2" } },
    });
    expect((await streamed(model, hello)).at(-1)?.type).toBe("text-end");
  });

  test("[REH12] a stall lasts until it is aborted, or the reader leaves", async () => {
    const model = scriptedModel(() => ({ text: "So", stall: true }));
    const stop = new AbortController();
    const stalling = expect(streamed(model, { ...hello, abortSignal: stop.signal })).rejects.toThrow(
      "enough",
    );
    const whole = expect(told(model, { ...hello, abortSignal: stop.signal })).rejects.toThrow("enough");
    stop.abort(new Error("enough"));
    await Promise.all([stalling, whole]);
    const reader = (await model.doStream(hello)).stream.getReader();
    await reader.read();
    await reader.cancel();
    expect((await reader.read()).done).toBe(true);
  });

  test("[REH12] parts are delayed as scripted", async () => {
    const clock = testClock();
    const model = scriptedModel([{ text: "a b", delayMs: 100 }], clock);
    const all = streamed(model, hello);
    await clock.advance(399);
    expect(clock.timers).toBe(1);
    await clock.advance(1);
    expect(collected(await all)).toEqual([{ type: "text", text: "a b" }]);
  });
});
