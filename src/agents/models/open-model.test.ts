import { describe, expect, test, vi } from "vitest";
import { present } from "../../core/present.ts";
import { modelInfo, parseModel } from "../../transcript/model-table.ts";
import { apiOf } from "../../transcript/policy.ts";
import { captureWire, openModel } from "./open-model.ts";

describe("models", () => {
  test.each([
    ["anthropic/claude-sonnet-4-5", "anthropic", "claude-sonnet-4-5"],
    ["local/qwen/qwen3:8b", "local", "qwen/qwen3:8b"],
    ["my.server-2/m", "my.server-2", "m"],
  ])("%s has a provider and a model", (text, provider, model) => {
    expect(parseModel(text)).toEqual({ provider, model });
  });

  test.each(["", "claude", "/claude", "anthropic/", "anthropic/ ", "a b/c", "anthropic/a b", "-x/y"])(
    "%j does not name a model",
    (text) => {
      expect(() => parseModel(text)).toThrow(/is not a valid model name\. Use provider\/model format/);
    },
  );

  const budget = { contextWindow: 200_000, maxOutput: 64_000, vision: true, thinking: "budget" };
  test.each([
    ["anthropic", "claude-sonnet-4-5-20250929", budget],
    ["anthropic", "claude-sonnet-4-20250514", budget],
    ["anthropic", "claude-opus-4-1-20250805", { maxOutput: 32_000, thinking: "budget" }],
    ["anthropic", "claude-opus-5-5", { contextWindow: 1_000_000, thinking: "levels" }],
    ["openai", "gpt-4o-mini", { contextWindow: 128_000, thinking: "none", vision: true }],
    ["openai", "gpt-4-0613", { contextWindow: 8192, vision: false }],
    ["openai", "gpt-5-mini", { contextWindow: 400_000, thinking: "levels" }],
    ["google-vertex", "gemini-2.5-pro", { contextWindow: 1_048_576, thinking: "budget" }],
    ["mistral", "codestral-latest", { vision: false }],
  ])("knows the properties of %s/%s", (provider, model, expected) => {
    expect(modelInfo(provider, model, apiOf(provider))).toMatchObject(expected);
  });

  test.each([
    ["openai", "claude-sonnet-4-5"],
    ["anthropic", "claude"],
    ["local", "qwen3"],
    ["constructor", "name"],
  ])("knows nothing about %s/%s", (provider, model) => {
    expect(modelInfo(provider, model, apiOf(provider))).toBeUndefined();
  });

  test.each([
    [{ provider: "anthropic", model: "claude-sonnet-4-5" }, {}, "anthropic.messages"],
    [{ provider: "openai", model: "gpt-5" }, {}, "openai.responses"],
    [{ provider: "openai", model: "gpt-5", api: "openai-completions" }, {}, "openai.chat"],
    [{ provider: "google", model: "gemini-2.5-pro" }, {}, "google.generative-ai"],
    [{ provider: "mistral", model: "mistral-small-latest" }, {}, "mistral.chat"],
    [{ provider: "local", model: "qwen3" }, { baseUrl: "http://127.0.0.1:1/v1" }, "local.chat"],
    [
      { provider: "local", model: "qwen3", api: "openai-responses" },
      { baseUrl: "http://127.0.0.1:1/v1" },
      "openai.responses",
    ],
    [{ provider: "proxy", model: "claude-x" }, { type: "anthropic" as const }, "anthropic.messages"],
    [{ provider: "proxy", model: "gpt-5" }, { type: "openai" as const }, "openai.responses"],
  ])("%j is opened by its package", async (ref, options, provider) => {
    const model = await openModel(ref, { apiKey: "none", ...options });
    expect(model.modelId).toBe(ref.model);
    expect(model.provider).toBe(provider);
  });

  const at = "http://127.0.0.1:9/v1";
  test.each([
    [{ provider: "google-vertex", model: "gemini-2.5-pro" }, undefined, /\/models\/gemini-2.5-pro:stream/],
    [{ provider: "proxy", model: "m", api: "anthropic-messages" }, undefined, /\/v1\/messages$/],
    [{ provider: "proxy", model: "m", api: "mistral-conversations" }, undefined, /\/v1\/chat\/completions$/],
    [{ provider: "proxy", model: "m", api: "openai-responses" }, "openai-compatible", /\/v1\/responses$/],
    [{ provider: "proxy", model: "m", api: "anthropic-messages" }, "openai-compatible", /\/v1\/messages$/],
    [{ provider: "openai", model: "m", api: "openai-completions" }, undefined, /\/v1\/chat\/completions$/],
    [{ provider: "anthropic", model: "m" }, "openai-compatible", /\/v1\/chat\/completions$/],
  ] as const)("%j of type %s is posted to the path of its format", async (ref, type, url) => {
    const urls: string[] = [];
    const fetch: typeof globalThis.fetch = async (input) => {
      urls.push(String(input));
      return new Response("", { headers: { "content-type": "text/event-stream" } });
    };
    const options = { prompt: [{ role: "user" as const, content: [{ type: "text" as const, text: "Hi" }] }] };
    const model = await openModel(ref, { apiKey: "none", baseUrl: at, fetch, ...present({ type }) });
    await model.doStream(options);
    const wire = await captureWire(options, ref, type);
    expect(urls).toEqual([wire.url]);
    expect(wire.url).toMatch(url);
  });

  test("a key is never sent to the vendor of a format that another provider uses", async () => {
    for (const api of ["anthropic-messages", "openai-responses", "mistral-conversations"]) {
      const opened = openModel({ provider: "proxy", model: "m", api }, { apiKey: "k" });
      await expect(opened).rejects.toMatchObject({ code: "invalid_arguments" });
    }
  });

  test("an unknown provider needs a base URL", async () => {
    await expect(openModel({ provider: "antropic", model: "claude-x" })).rejects.toMatchObject({
      code: "invalid_arguments",
      message: expect.stringMatching(/antropic.*Known providers are anthropic, openai, google, mistral/),
    });
  });

  test("the key, address and headers reach the server", async () => {
    const fetch = vi.fn(async () => new Response("", { headers: { "content-type": "text/event-stream" } }));
    const model = await openModel(
      { provider: "local", model: "qwen3" },
      { apiKey: "key", baseUrl: "http://h/v1", headers: { "x-team": "a" }, fetch: fetch as never },
    );
    await model.doStream({ prompt: [{ role: "user", content: [{ type: "text", text: "Hello" }] }] });
    const [url, init] = fetch.mock.calls[0] as unknown as [string, { headers: Record<string, string> }];
    expect(url).toBe("http://h/v1/chat/completions");
    expect(init.headers).toMatchObject({ authorization: "Bearer key", "x-team": "a" });
  });
});
