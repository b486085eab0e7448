import { describe, expect, test } from "vitest";
import { minContextWindow } from "../transcript/compaction/limits.ts";
import { resolveTranscriptPolicy } from "../transcript/policy.ts";
import { modelSettings, providerType } from "./model-settings.ts";
import { parseConfigText } from "./parse-yaml.ts";
import { readTree } from "./read-tree.ts";
import type { Config } from "./sections/all.ts";
import { sections } from "./sections/all.ts";

const place = { folder: "/p", home: "/home/ann", root: "/r" };

function modelsOf(text: string): Config["models"] {
  const { root } = parseConfigText(text, "/p/skein.yaml", () => undefined);
  const { value, problems } = readTree(sections, root === null ? [] : [root], () => place, place);
  expect(problems).toEqual([]);
  return (value as Config).models;
}

describe("models", () => {
  test.each([
    ["anthropic", null, "anthropic"],
    ["openai", null, "openai"],
    ["google", null, "google"],
    ["mistral", null, "mistral"],
    ["local", null, "openai-compatible"],
    ["constructor", null, "openai-compatible"],
    ["openai", "openai-compatible", "openai-compatible"],
    ["mine", "anthropic", "anthropic"],
  ] as const)("the provider %s of type %s is used as %s", (name, given, type) => {
    expect(providerType(name, given)).toBe(type);
  });

  const models = modelsOf(`
models:
  providers:
    local:
      baseUrl: http://127.0.0.1:11434/v1
      api: openai-responses
      apiKey: sk-1
      models:
        qwen3:8b: { contextWindow: 32768, vision: false, price: { input: 0.5, output: 2 }, policy: { toolCallIds: strict9, repairToolPairing: false } }
        seeing: { vision: true, maxOutput: 100 }
`);

  test("the smallest window that can be compacted is accepted", () => {
    const written = `models: { providers: { local: { models: { q: { contextWindow: ${minContextWindow} } } } } }`;
    expect(modelSettings(modelsOf(written), "local", "q")).toMatchObject({ contextWindow: minContextWindow });
  });

  test("configured properties of a model count, and the rest comes from the model table", () => {
    const said = { type: "openai-compatible", api: "openai-responses", baseUrl: "http://127.0.0.1:11434/v1" };
    expect(modelSettings(models, "local", "qwen3:8b")).toEqual({
      ...said,
      contextWindow: 32_768,
      maxOutput: null,
      vision: false,
      price: { input: 0.5, output: 2, cacheRead: null, cacheWrite: null },
      overrides: { toolCallIds: "strict9", repairToolPairing: false, images: null },
    });
    expect(modelSettings(models, "local", "seeing")).toMatchObject({
      maxOutput: 100,
      vision: true,
      overrides: {},
    });
    expect(modelSettings(models, "local", "toString")).toMatchObject({ ...said, contextWindow: null });
    expect(modelSettings(models, "anthropic", "claude")).toEqual({
      type: "anthropic",
      api: null,
      baseUrl: null,
      contextWindow: null,
      maxOutput: null,
      vision: null,
      price: { input: null, output: null, cacheRead: null, cacheWrite: null },
      overrides: {},
    });
  });

  test("a policy uses them unchanged", () => {
    const { overrides } = modelSettings(models, "local", "qwen3:8b");
    const policy = resolveTranscriptPolicy({ provider: "local", model: "qwen3:8b", overrides });
    expect(policy).toMatchObject({
      toolCallIds: "strict9",
      repairToolPairing: false,
      images: null,
      turns: "any",
    });
  });
});
