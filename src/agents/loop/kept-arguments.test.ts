import { describe, expect, test } from "vitest";
import { call, callsFor, says, scriptedModel } from "../../../test/support/scripted-model.ts";
import { openTurn, text, tool } from "../../../test/support/turn.ts";
import type { Entry } from "../../core/entries.ts";
import type { AnswerDraft } from "../ai-sdk/from-response.ts";
import { asKept, madeCalls } from "./kept-arguments.ts";

const persisted = (args: Readonly<Record<string, unknown>>) => ({ ...args, what: "(a note)" });

describe("arguments that the transcript keeps in another form", () => {
  test("[SPN15] a call is made with what was asked for, and written with what is kept", async () => {
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

  test("an answer that no tool wants otherwise is the very same", () => {
    expect(asKept(answer, [tool("put"), tool("read")])).toBe(answer);
  });

  test("[SPN15] what somebody has changed on its way into the transcript stays changed", () => {
    const kept = asKept(answer, [tool("put", undefined, { persisted }), tool("read")]);
    const written = { type: "toolCall", id: "a", name: "put" } as const;
    const calls = [
      { ...written, arguments: { what: "(a note)", where: "masked" } },
      { ...written, id: "b", name: "read", arguments: { what: "masked" } },
    ];
    expect(madeCalls(calls, kept, answer).map(({ arguments: args }) => args)).toEqual([
      { what: "large", where: "masked" },
      { what: "masked" },
    ]);
    const masked = [{ ...written, arguments: { what: "masked", where: "x" } }];
    expect(madeCalls(masked, kept, answer)[0]?.arguments).toEqual({ what: "masked", where: "x" });
  });
});
