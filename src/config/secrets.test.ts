import { expect, test } from "vitest";
import { defaultConfig } from "./load.ts";
import { secretValues } from "./secrets.ts";

test("every secret of a configuration is known to the redactor, and nothing else", () => {
  const config = defaultConfig("/root");
  expect(secretValues(config)).toEqual([]);
  const provider = {
    ...config.models,
    providers: { local: { apiKey: "sk-one", headers: { "x-key": "two" } } },
  };
  const server = { files: { command: "run", args: ["three"], env: { TOKEN: "four" }, url: null } };
  const channels = { desk: { type: "webhook", secret: "five", url: "https://example.test" } };
  const full = { ...config, models: provider, mcpServers: server, channels } as unknown as typeof config;
  expect(secretValues(full).toSorted()).toEqual(["five", "four", "sk-one", "two"]);
});
