import type { SessionConfigOption } from "@agentclientprotocol/sdk/unstable";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  readInitializeResponse,
  readSessionId,
  readSessionResponse,
  settingChanges,
} from "./agent-responses.ts";

describe("responses of an agent", () => {
  test("[ARU51] its self-description is used as far as it is valid", () => {
    const bare = {
      ...{ name: null, version: null, takesSystem: false, promptCapabilities: {}, authMethods: [] },
      ...{ canLoad: false, canResume: false, canFork: false, canList: false },
    };
    expect(readInitializeResponse({ protocolVersion: 1 })).toEqual({ protocolVersion: 1, ...bare });
    const odd = { protocolVersion: 1, agentCapabilities: [], authMethods: {} };
    expect(readInitializeResponse(odd)).toEqual({ protocolVersion: 1, ...bare });
    const agentCapabilities = {
      loadSession: true,
      promptCapabilities: { image: true },
      sessionCapabilities: { resume: {}, systemPrompt: null },
    };
    const authMethods = [{ id: "k", name: "A key" }, { id: "x" }, null, { name: 1 }];
    expect(readInitializeResponse({ protocolVersion: 1, agentCapabilities, authMethods })).toEqual({
      protocolVersion: 1,
      ...bare,
      canLoad: true,
      canResume: true,
      promptCapabilities: { image: true },
      authMethods: ["A key", "x"],
    });
  });

  test.each([
    [null, "it is not an object"],
    [{}, "it has no sessionId"],
    [{ sessionId: 7 }, "it has no sessionId"],
    [{ sessionId: "" }, "(0)"],
    [{ sessionId: "a\nb" }, "not a name of 1 to 512 printable characters (3)"],
    [{ sessionId: "x".repeat(513) }, "(513)"],
  ])("[ARU51] requires a session ID that can be used again: %j", (told, problem) => {
    expect(() => readSessionId(told)).toThrow(problem);
    expect(readSessionId({ sessionId: "x".repeat(512) })).toHaveLength(512);
  });

  test("[ARU51] ignores options and modes that cannot be understood", () => {
    const choice = { value: "a", name: "A" };
    const good = { id: "m", type: "select", currentValue: "a", options: [choice, { options: [choice] }] };
    const odd = [null, 1, { ...good, id: 1 }, { ...good, currentValue: null }, { ...good, options: [1] }];
    const modes = { availableModes: [{ id: "low" }, {}, null], currentModeId: 1 };
    expect(readSessionResponse({ configOptions: [...odd, good], modes })).toEqual({
      configOptions: [good],
      modes: { availableModes: [{ id: "low", name: "low" }], currentModeId: "" },
      models: undefined,
    });
    expect(readSessionResponse({ configOptions: null, modes: null })).toEqual({
      configOptions: [],
      models: undefined,
    });
    expect(() => readSessionResponse({ configOptions: {} })).toThrow("its configOptions are not a list");
    expect(() => readSessionResponse({ modes: { availableModes: "all" } })).toThrow(
      "its availableModes are not a list",
    );
  });

  test("[ARU51] accepts any value or refuses it with a sentence", () => {
    fc.assert(
      fc.property(fc.anything(), (told) => {
        for (const read of [readInitializeResponse, readSessionId, readSessionResponse]) {
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

const model: SessionConfigOption = {
  id: "m",
  name: "Model",
  category: "model",
  type: "select",
  currentValue: "small",
  options: [
    {
      group: "g",
      name: "All",
      options: [
        { value: "small", name: "Small one" },
        { value: "large", name: "Large one" },
      ],
    },
  ],
};
const modes = {
  currentModeId: "low",
  availableModes: [
    { id: "low", name: "Low" },
    { id: "deep", name: "High" },
  ],
};
const models = {
  currentModelId: "small",
  availableModels: [
    { modelId: "small", name: "Small one" },
    { modelId: "large", name: "Large one" },
    "odd",
    {},
  ],
};
const freedoms = {
  currentModeId: "default",
  availableModes: [
    { id: "default", name: "Ask" },
    { id: "yolo", name: "Everything" },
  ],
};
const nothing = { model: null, thinking: null };

describe("the model and thinking level of an agent's session", () => {
  test.each([
    ["no setting is wanted", nothing, {}, []],
    [
      "by its value",
      { ...nothing, model: "large" },
      { configOptions: [model] },
      [{ set: "option", configId: "m", value: "large" }],
    ],
    [
      "by its name, whatever the case",
      { ...nothing, model: "large ONE" },
      { configOptions: [model] },
      [{ set: "option", configId: "m", value: "large" }],
    ],
    ["it is set already", { ...nothing, model: "small" }, { configOptions: [model] }, []],
    [
      "through the list of older agents",
      { ...nothing, model: "Large one" },
      { models },
      [{ set: "model", value: "large" }],
    ],
    ["it is set already in the list of older agents", { ...nothing, model: "small" }, { models }, []],
    [
      "through its option, even if it has a list too",
      { ...nothing, model: "large" },
      { configOptions: [model], models },
      [{ set: "option", configId: "m", value: "large" }],
    ],
    ["a level that is a mode", { ...nothing, thinking: "high" }, { modes }, [{ set: "mode", value: "deep" }]],
  ] as const)("[ARU4] %s", (_, wanted, told, changes) => {
    expect(settingChanges("twin", wanted, told)).toEqual(changes);
  });

  test.each([
    [
      "an unknown model",
      { ...nothing, model: "huge" },
      { configOptions: [model] },
      /no model "huge".*Use one of: small, large/,
    ],
    [
      "a model, if it offers no choice",
      { ...nothing, model: "large" },
      { modes },
      /its model cannot be set.*Omit model/,
    ],
    [
      "a model that is not in the list of older agents",
      { ...nothing, model: "huge" },
      { models },
      /no model "huge".*Use one of: small, large/,
    ],
    [
      "a model, if the list is invalid",
      { ...nothing, model: "x" },
      { models: "x" },
      /its model cannot be set/,
    ],
    [
      "a level that grants permissions",
      { ...nothing, thinking: "yolo" },
      { modes: freedoms },
      /its thinking level cannot be set/,
    ],
    [
      "a permission mode among levels",
      { ...nothing, thinking: "everything" },
      { modes: { ...freedoms, availableModes: [...freedoms.availableModes, ...modes.availableModes] } },
      /no thinking level "everything".*Use one of: low, deep/,
    ],
    [
      "thinking, if it offers no choice",
      { ...nothing, thinking: "high" },
      {},
      /its thinking level cannot be set.*Omit thinking/,
    ],
  ])("[ARU4] refuses %s", (_, wanted, told, words) => {
    expect(() => settingChanges("twin", wanted, told)).toThrow(words);
  });

  test("leaves a resumed session's setting unchanged if the agent no longer offers it", () => {
    const wanted = { model: "large", thinking: "high" };
    expect(settingChanges("twin", wanted, {}, true)).toEqual([]);
    expect(settingChanges("twin", wanted, { configOptions: [model] }, true)).toEqual([
      { set: "option", configId: "m", value: "large" },
    ]);
    expect(() =>
      settingChanges("twin", { ...nothing, model: "huge" }, { configOptions: [model] }, true),
    ).toThrow('it has no model "huge"');
    expect(() => settingChanges("twin", wanted, {})).toThrow("its model cannot be set");
  });
});
