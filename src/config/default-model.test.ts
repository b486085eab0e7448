import { describe, expect, test } from "vitest";
import { modelInfo } from "../transcript/model-table.ts";
import { defaultModel, keyedProviders, keyVariable } from "./default-model.ts";
import { parseConfigText } from "./parse-yaml.ts";
import { readTree } from "./read-tree.ts";
import type { Config } from "./sections/all.ts";
import { sections } from "./sections/all.ts";

const place = { folder: "/p", home: "/home/ann", root: "/r" };

function modelOf(env: Readonly<Record<string, string>>, text = ""): string {
  const { root } = parseConfigText(text, "/p/skein.yaml", () => undefined);
  const { value, problems } = readTree(sections, root === null ? [] : [root], () => place, place);
  expect(problems).toEqual([]);
  return defaultModel((name) => env[name], value as Config);
}

const [anthropic, openai, google, mistral] = keyedProviders.map((each) => `${each.provider}/${each.model}`);
const groq = "{ apiKey: k, baseUrl: 'https://x.org/v1', models: { one: {}, two: {} } }";

describe("the default model", () => {
  test.each<[string, Record<string, string>, string, string | undefined]>([
    ["no key", {}, "", "rehearsal/basic"],
    ["blank keys", { ANTHROPIC_API_KEY: "", OPENAI_API_KEY: " \t" }, "", "rehearsal/basic"],
    [
      "a provider without a key",
      {},
      "models: { providers: { local: { models: { q: {} } } } }",
      "rehearsal/basic",
    ],
    ["Anthropic's", { ANTHROPIC_API_KEY: "k" }, "", anthropic],
    ["OpenAI's", { OPENAI_API_KEY: "k" }, "", openai],
    ["Google's", { GOOGLE_GENERATIVE_AI_API_KEY: "k" }, "", google],
    ["Gemini's", { GEMINI_API_KEY: "k" }, "", google],
    ["Mistral's", { MISTRAL_API_KEY: "k" }, "", mistral],
    ["several", { MISTRAL_API_KEY: "k", GEMINI_API_KEY: "k", OPENAI_API_KEY: "k" }, "", openai],
    ["a blank one first", { ANTHROPIC_API_KEY: " ", MISTRAL_API_KEY: "k" }, "", mistral],
    ["one in the file", {}, "models: { providers: { mistral: { apiKey: k } } }", mistral],
    ["a blank one in the file", {}, "models: { providers: { mistral: { apiKey: ' ' } } }", "rehearsal/basic"],
    [
      "file and environment",
      { OPENAI_API_KEY: "k" },
      "models: { providers: { anthropic: { apiKey: k } } }",
      anthropic,
    ],
    ["a server's key", {}, `models: { providers: { groq: ${groq} } }`, "groq/one"],
    [
      "a server's key next to a known one",
      { MISTRAL_API_KEY: "k" },
      `models: { providers: { groq: ${groq} } }`,
      mistral,
    ],
    [
      "one of a known type",
      {},
      "models: { providers: { mine: { type: openai, apiKey: k } } }",
      "mine/gpt-5.4",
    ],
    ["one that names a model", {}, `models: { providers: { a: { apiKey: k }, groq: ${groq} } }`, "groq/one"],
  ])("[CFG19] %s", (_, env, text, expected) => {
    expect(modelOf(env, text)).toBe(expected);
  });

  test("[CFG19] a key for a provider with unknown models is reported, and the rehearsal model is not used", () => {
    expect(() => modelOf({}, "models: { providers: { groq: { apiKey: k } } }")).toThrow(
      'Skein does not know which models the provider groq offers. Set one in the configuration, for example defaults: { model: "groq/<model>" }',
    );
    const elsewhere =
      "models: { providers: { openai: { type: openai-compatible, baseUrl: 'http://x.org' } } }";
    expect(() => modelOf({ OPENAI_API_KEY: "k" }, elsewhere)).toThrow(
      "which models the provider openai offers",
    );
  });

  test("[CFG19] the default models are known", () => {
    for (const { provider, model } of keyedProviders) expect(modelInfo(provider, model)).toBeDefined();
  });

  test("[CFG19] the key comes from the first variable that is not blank", () => {
    const known = keyedProviders.find(({ provider }) => provider === "google");
    const env = { GOOGLE_GENERATIVE_AI_API_KEY: " ", GEMINI_API_KEY: "k" };
    expect(known && keyVariable(known, (name) => env[name as keyof typeof env])).toBe("GEMINI_API_KEY");
    expect(known && keyVariable(known, () => undefined)).toBeNull();
  });
});
