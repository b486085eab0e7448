import type { SessionConfigOption } from "@agentclientprotocol/sdk/unstable";
import { describe, expect, test } from "vitest";
import { settingChanges } from "./session-settings.ts";

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

describe("model and thinking of an agent's session", () => {
  test.each([
    ["nothing is wanted", nothing, {}, []],
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
    ["it is so already", { ...nothing, model: "small" }, { configOptions: [model] }, []],
    [
      "by the list of older agents",
      { ...nothing, model: "Large one" },
      { models },
      [{ set: "model", modelId: "large" }],
    ],
    ["it is so by the list of older agents", { ...nothing, model: "small" }, { models }, []],
    [
      "by its option, where it has a list too",
      { ...nothing, model: "large" },
      { configOptions: [model], models },
      [{ set: "option", configId: "m", value: "large" }],
    ],
    [
      "a level that is a mode",
      { ...nothing, thinking: "high" },
      { modes },
      [{ set: "mode", modeId: "deep" }],
    ],
  ] as const)("[ARU4] %s", (_, wanted, told, changes) => {
    expect(settingChanges("twin", wanted, told)).toEqual(changes);
  });

  test.each([
    [
      "a model that it does not know",
      { ...nothing, model: "huge" },
      { configOptions: [model] },
      /no model "huge".*Name one of: small, large/,
    ],
    [
      "a model, where it has none to choose",
      { ...nothing, model: "large" },
      { modes },
      /its model cannot be set.*Leave model out/,
    ],
    [
      "a model that is not in the list of older agents",
      { ...nothing, model: "huge" },
      { models },
      /no model "huge".*Name one of: small, large/,
    ],
    [
      "a model, where the list is none",
      { ...nothing, model: "x" },
      { models: "x" },
      /its model cannot be set/,
    ],
    [
      "a level that says what the agent may do unasked",
      { ...nothing, thinking: "yolo" },
      { modes: freedoms },
      /its thinking level cannot be set/,
    ],
    [
      "a freedom among levels",
      { ...nothing, thinking: "everything" },
      { modes: { ...freedoms, availableModes: [...freedoms.availableModes, ...modes.availableModes] } },
      /no thinking level "everything".*Name one of: low, deep/,
    ],
    [
      "thinking, where it has none to choose",
      { ...nothing, thinking: "high" },
      {},
      /its thinking level cannot be set.*Leave thinking out/,
    ],
  ])("[ARU4] refuses %s", (_, wanted, told, words) => {
    expect(() => settingChanges("twin", wanted, told)).toThrow(words);
  });

  test("[ARU55] of a session that was set before, what is not offered now stays as it is", () => {
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
