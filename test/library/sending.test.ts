import Type from "typebox";
import { afterEach, describe, expect, test } from "vitest";
import { defineTool, RunError } from "../../src/index.ts";
import { answering, closeAll, newFolder, withScript } from "../support/skein.ts";

afterEach(closeAll);

const weather = defineTool({
  name: "weather",
  description: "The weather of a city.",
  parameters: Type.Object({ city: Type.String() }),
  execute: async ({ city }) => `It rains in ${city}.`,
});

describe("sending", () => {
  test("[LIB1] a turn reports its events in order, and its result", async () => {
    const steps = [
      { thinking: "Look first.", calls: [{ name: "weather", arguments: { city: "Kyoto" }, id: "c1" }] },
      { text: "Take an umbrella." },
    ];
    const { skein, lines } = await withScript(steps, { tools: [weather] });
    const turn = skein.session({ userId: "alice", sessionId: "trip" }).send("What do I need?");
    const seen: string[] = [];
    let text = "";
    for await (const event of turn) {
      if (event.type === "text") text += event.delta;
      if (seen.at(-1) !== event.type) seen.push(event.type);
    }
    expect(seen).toEqual([
      "entry",
      "thinking",
      "entry",
      "tool_call",
      "tool_result",
      "entry",
      "text",
      "entry",
      "end",
    ]);
    expect(text).toBe("Take an umbrella.");
    const result = await turn.result;
    expect(result).toMatchObject({
      runId: turn.runId,
      sessionKey: "agent:main:session:trip",
      sessionId: "trip",
      reply: "Take an umbrella.",
    });
    expect(result.usage.totalTokens).toBeGreaterThan(0);
    expect(await lines("trip", "alice")).toEqual([
      "user: What do I need?",
      "assistant: (weather)",
      "result: It rains in Kyoto.",
      "assistant: Take an umbrella.",
    ]);
  });

  test("[LIB2] runs whether it is read or not, and leaving the loop does not abort it", async () => {
    const { skein, lines } = await withScript(answering());
    const unread = skein.session({ sessionId: "a" }).send("One");
    const left = skein.session({ sessionId: "b" }).send("Two");
    for await (const _ of left) break;
    expect((await unread.result).reply).toContain("Yes.");
    expect((await left.result).reply).toContain("Yes.");
    expect(await lines("b")).toHaveLength(2);
    const again: string[] = [];
    for await (const { type } of left) again.push(type);
    expect(again.at(-1)).toBe("end");
  });

  test("[LIB3] a failed run rejects with its code, without an unhandled rejection", async () => {
    const heard: unknown[] = [];
    const listen = (error: unknown) => heard.push(error);
    process.on("unhandledRejection", listen);
    const { skein, lines } = await withScript([
      { error: { status: 401, message: "invalid x-api-key" } },
      { text: "Better." },
    ]);
    const failing = skein.session({ sessionId: "a" }).send("Hello");
    const states: string[] = [];
    for await (const event of failing) if (event.type === "end") states.push(event.state);
    expect(states).toEqual(["error"]);
    await new Promise((resolve) => setImmediate(resolve));
    process.off("unhandledRejection", listen);
    expect(heard).toEqual([]);
    await expect(failing.result).rejects.toThrow(RunError);
    await expect(failing.result).rejects.toMatchObject({
      code: "model_auth",
      state: "error",
      runId: failing.runId,
    });
    expect((await skein.session({ sessionId: "a" }).send("Again").result).reply).toBe("Better.");
    expect((await lines("a"))[0]).toBe("user: Hello");
  });

  test("[LIB4] a repeated idempotency key returns the same run, also after a restart", async () => {
    const dir = newFolder();
    const first = await withScript(answering(), {}, { dir });
    const session = first.skein.session({ userId: "alice", sessionId: "a" });
    const one = session.send("Order one", { idempotencyKey: "order-1" });
    const two = session.send("Order one", { idempotencyKey: "order-1" });
    expect(two.runId).toBe(one.runId);
    expect((await one.result).reply).toBe((await two.result).reply);
    await first.skein.close();
    const second = await withScript(answering("No."), {}, { dir });
    const three = second.skein
      .session({ userId: "alice", sessionId: "a" })
      .send("Order one", { idempotencyKey: "order-1" });
    expect(three.runId).toBe(one.runId);
    expect((await three.result).reply).toContain("Yes.");
    expect(await second.lines("a", "alice")).toHaveLength(2);
    const other = second.skein
      .session({ userId: "bob", sessionId: "a" })
      .send("Hello", { idempotencyKey: "order-1" });
    expect(other.runId).not.toBe(one.runId);
    expect((await other.result).reply).toContain("No.");
  });

  test("[LIB5] with a schema the answer is a matching value, or the run fails", async () => {
    const schema = Type.Object({ days: Type.Number() });
    const steps = [{ text: "three" }, { text: '{"days": 3}' }, { text: "a" }, { text: "b" }, { text: "c" }];
    const { skein } = await withScript(steps);
    const session = skein.session({ sessionId: "a" });
    expect((await session.send("How long?", { schema }).result).output).toEqual({ days: 3 });
    await expect(session.send("And now?", { schema }).result).rejects.toMatchObject({
      code: "invalid_output",
    });
  });

  test("[LIB6] a schema that cannot be checked is refused, and no model is called", async () => {
    const { skein, model } = await withScript(answering());
    const session = skein.session({ sessionId: "a" });
    const schema = Type.Object({ city: Type.Optional(Type.Unsafe({ type: "string", pattern: "(?i)rome" })) });
    await expect(session.send("Where?", { schema }).result).rejects.toMatchObject({
      code: "invalid_arguments",
      message: expect.stringContaining("Invalid regular expression"),
    });
    expect(model.requests).toEqual([]);
  });

  test("[LIB6] an empty message, an invalid key and an unknown agent are refused, and nothing is created", async () => {
    const { skein } = await withScript(answering());
    await expect(skein.session({ sessionId: "a" }).send("  ").result).rejects.toMatchObject({
      code: "invalid_arguments",
    });
    expect(await skein.session({ sessionId: "a" }).record()).toBeNull();
    await expect(skein.session({ sessionKey: "nonsense key" }).send("x").result).rejects.toMatchObject({
      code: "invalid_key",
    });
    const turn = skein.session({ agentId: "nobody" }).send("Hello");
    await expect(turn.result).rejects.toMatchObject({ code: "not_found" });
    expect((await skein.store.sessions.list({}, {})).sessions).toEqual([]);
    const other = await withScript(answering());
    await other.skein.close();
    await expect(other.skein.session({}).send("Hello").result).rejects.toMatchObject({ code: "unavailable" });
    const rehearsal = skein.session({ sessionId: "c" }).send("Hello", { model: "rehearsal/nope" });
    await expect(rehearsal.result).rejects.toMatchObject({ code: "model_not_found" });
    expect(await skein.runs.get("no-such-run")).toBeNull();
    await expect(skein.runs.abort("no-such-run")).rejects.toMatchObject({ code: "not_found" });
  });

  test("[LIB7] one user's runs are not visible to another", async () => {
    const { skein } = await withScript(answering());
    const turn = skein.session({ userId: "alice", sessionId: "a" }).send("Secret");
    await turn.result;
    expect(await skein.runs.get(turn.runId, "alice")).toMatchObject({ state: "ok" });
    expect(await skein.runs.get(turn.runId, "bob")).toBeNull();
    expect(await skein.runs.get(turn.runId, null)).toBeNull();
    expect(await skein.runs.list({}, "bob")).toEqual([]);
    await expect(skein.runs.abort(turn.runId, "bob")).rejects.toMatchObject({ code: "not_found" });
  });
});
