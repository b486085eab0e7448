import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readAbout, readSessionId, readSettings } from "./agent-answers.ts";

describe("what an agent answers", () => {
  test("[ARU51] what it says of itself is taken as far as it fits", () => {
    const bare = { canLoad: false, canResume: false, takesSystem: false, prompts: {}, ways: [] };
    expect(readAbout({ protocolVersion: 1 })).toEqual({ protocolVersion: 1, ...bare });
    const odd = { protocolVersion: 1, agentCapabilities: [], authMethods: {} };
    expect(readAbout(odd)).toEqual({ protocolVersion: 1, ...bare });
    const agentCapabilities = {
      loadSession: true,
      promptCapabilities: { image: true },
      sessionCapabilities: { resume: {}, systemPrompt: null },
    };
    const authMethods = [{ id: "k", name: "A key" }, { id: "x" }, null, { name: 1 }];
    expect(readAbout({ protocolVersion: 1, agentCapabilities, authMethods })).toEqual({
      protocolVersion: 1,
      canLoad: true,
      canResume: true,
      takesSystem: false,
      prompts: { image: true },
      ways: ["A key", "x"],
    });
  });

  test.each([
    [null, "it is no object"],
    [{}, "it has no sessionId"],
    [{ sessionId: 7 }, "it has no sessionId"],
    [{ sessionId: "" }, "(0)"],
    [{ sessionId: "a\nb" }, "no name of 1 to 512 printable characters (3)"],
    [{ sessionId: "x".repeat(513) }, "(513)"],
  ])("[ARU51] the id of a session is one that can be named again: %j", (told, problem) => {
    expect(() => readSessionId(told)).toThrow(problem);
    expect(readSessionId({ sessionId: "x".repeat(512) })).toHaveLength(512);
  });

  test("[ARU51] options and modes that cannot be understood are as good as not offered", () => {
    const choice = { value: "a", name: "A" };
    const good = { id: "m", type: "select", currentValue: "a", options: [choice, { options: [choice] }] };
    const odd = [null, 1, { ...good, id: 1 }, { ...good, currentValue: null }, { ...good, options: [1] }];
    const modes = { availableModes: [{ id: "low" }, {}, null], currentModeId: 1 };
    expect(readSettings({ configOptions: [...odd, good], modes })).toEqual({
      configOptions: [good],
      modes: { availableModes: [{ id: "low", name: "low" }], currentModeId: "" },
      models: undefined,
    });
    expect(readSettings({ configOptions: null, modes: null })).toEqual({
      configOptions: [],
      models: undefined,
    });
    expect(() => readSettings({ configOptions: {} })).toThrow("its configOptions are no list");
    expect(() => readSettings({ modes: { availableModes: "all" } })).toThrow(
      "its availableModes are no list",
    );
  });

  test("[ARU51] whatever it is, it is taken or refused in a sentence", () => {
    fc.assert(
      fc.property(fc.anything(), (told) => {
        for (const read of [readAbout, readSessionId, readSettings]) {
          try {
            read(told);
          } catch (error) {
            expect((error as Error).message).toMatch(/^(its?|the) /);
          }
        }
      }),
    );
  });
});
