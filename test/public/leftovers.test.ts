import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createSkein } from "../../src/create-skein.ts";
import type { Skein } from "../../src/sessions/skein/skein.ts";
import type { TemporaryFolder } from "../../src/testing/support/temporary-folder.ts";
import { temporaryFolder } from "../../src/testing/support/temporary-folder.ts";
import { run } from "../support/cli.ts";
import type { StandIn, StandInReply } from "../support/provider-stand-in.ts";
import { startStandIn } from "../support/provider-stand-in.ts";
import { imageData } from "../support/twins.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

let home: TemporaryFolder;
let standIn: StandIn | null = null;
let skein: Skein | null = null;

beforeEach(() => {
  home = temporaryFolder();
});
afterEach(async () => {
  await skein?.close();
  await standIn?.close();
  skein = null;
  standIn = null;
  home.remove();
});

/** Without the shape of any provider's keys: only its value gives it away. */
const key = "gardens-of-kyoto-4711";

describe("[OVF10] a key that a provider repeats in its error is shown nowhere", () => {
  const errors: readonly (readonly [string, number, (said: string) => unknown])[] = [
    ["401", 401, (message) => ({ error: { message } })],
    ["400", 400, (message) => ({ error: { message } })],
    ["400 as text", 400, (message) => ({ error: message })],
    ["404", 404, (message) => ({ message })],
    ["500, after every retry", 500, (message) => ({ error: { message } })],
    ["413", 413, (message) => message],
  ];
  const places = [
    ["the configuration", `apiKey: ${key}`, {}],
    ["a header of the configuration", `apiKey: any-other-key, headers: { x-desk-key: "${key}" }`, {}],
    ["the environment", "", { OPENAI_API_KEY: key }],
  ] as const;
  const cases = places.flatMap(([place, setting, env]) =>
    errors.map(([name, status, body]) => [place, name, setting, env, status, body] as const),
  );

  test.each(cases)("from %s: %s", async (_place, _name, setting, env, status, body) => {
    standIn = await startStandIn("openai", (request): StandInReply => {
      expect(JSON.stringify(request.headers)).toContain(key);
      return {
        status,
        body: body(`Incorrect API key provided: ${key}.`),
        headers: { "retry-after-ms": "1" },
      };
    });
    const config = join(home.path, "skein.yaml");
    const log = join(home.path, "skein.log");
    const fields = [`baseUrl: "${standIn.url}"`, "api: openai-completions", setting].filter(Boolean);
    writeFileSync(
      config,
      `defaults: { model: openai/m }\nmodels: { providers: { openai: { ${fields.join(", ")} } } }\nlogging: { level: debug, file: "${log}" }\n`,
    );
    const dir = join(home.path, "root");
    skein = await createSkein({ dir, config, env, quiet: true });
    const turn = skein.session({ agentId: "main", sessionId: "s" }).send("Hello");
    const events: unknown[] = [];
    for await (const event of turn) events.push(event);
    const error = await turn.result.then(
      () => null,
      (thrown: unknown) => thrown as Error,
    );
    expect(error?.message).toContain("Incorrect API key provided");
    expect(`${error?.message} ${error?.stack}`).not.toContain(key);
    expect(JSON.stringify(events)).not.toContain(key);
    const page = await skein.store.sessions.page({ agentId: "main" }, "s", { along: "all", limit: 100 });
    expect(JSON.stringify(page)).toContain("Incorrect API key provided");
    expect(JSON.stringify(page)).not.toContain(key);
    await skein.close();
    skein = null;
    const logged = readFileSync(log, "utf8");
    expect(logged).toContain("Incorrect API key provided");
    expect(logged).not.toContain(key);
  });
});

describe("[OVF11] a price names its source", () => {
  test("prices from a list have its address and a date, configured ones replace them, others are unknown", async () => {
    const gateway = await wholeGateway({
      config: `models:
  providers:
    anthropic: { models: { claude-sonnet-4-6: {} } }
    openai: { models: { gpt-5: { price: { input: 7 } } } }
    desk: { baseUrl: "http://127.0.0.1:9/v1", models: { free: { price: { input: 0, output: 0 } }, other: {} } }
`,
    });
    try {
      const { body } = await gateway.rpc("models.list");
      const { models } = body as { models: readonly { model: string; price: unknown }[] };
      const priceOf = (name: string) => models.find(({ model }) => model === name)?.price;
      expect(priceOf("anthropic/claude-sonnet-4-6")).toEqual({
        input: 3,
        output: 15,
        cacheRead: 0.3,
        cacheWrite: 3.75,
        source: expect.stringMatching(/^https:\/\/docs\.claude\.com\//),
        date: expect.stringMatching(/^\d{4}-\d{2}-\d{2}$/),
      });
      expect(priceOf("openai/gpt-5")).toEqual({
        input: 7,
        output: 10,
        cacheRead: 0.125,
        source: "configuration",
      });
      expect(priceOf("desk/free")).toEqual({ input: 0, output: 0, source: "configuration" });
      expect(priceOf("desk/other")).toBe("unknown");
    } finally {
      await gateway.close();
    }
  });

  test.each([
    ["a configured price", "price: { input: 1000, output: 1000 }", /^ +cost +\$\d/m],
    ["no known price", "contextWindow: 100000", /^ +cost +unknown$/m],
  ])("a run of a model with %s shows that", async (_, setting, shown) => {
    standIn = await startStandIn("openai", () => ({
      text: "Hello.",
      usage: { prompt_tokens: 900, completion_tokens: 100, total_tokens: 1000 },
    }));
    const root = join(home.path, "root");
    const config = join(home.path, "skein.yaml");
    writeFileSync(
      config,
      `defaults: { model: desk/m }\nmodels: { providers: { desk: { baseUrl: "${standIn.url}", apiKey: any-key-at-all, models: { m: { ${setting} } } } } }\n`,
    );
    skein = await createSkein({ dir: root, config, env: {}, quiet: true });
    const { runId } = await skein.session({ agentId: "main", sessionId: "s" }).send("Hello").result;
    await skein.close();
    skein = null;
    const { out } = await run(["runs", "show", runId, "--dir", root, "--config", config]);
    expect(out).toMatch(shown);
  });
});

describe("[OVF12] optional packages are not installed by default, and a sentence says how to add one", () => {
  const optional = [
    "@opentelemetry/exporter-trace-otlp-http",
    "@opentelemetry/resources",
    "@opentelemetry/sdk-trace-base",
    "sharp",
  ];

  test.each(optional)("%s", (name) => {
    const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
    const {
      dependencies,
      optionalDependencies = {},
      peerDependencies,
      peerDependenciesMeta,
    } = JSON.parse(text) as Record<string, Record<string, unknown>>;
    expect({ ...dependencies, ...optionalDependencies }).not.toHaveProperty([name]);
    expect(peerDependencies).toHaveProperty([name]);
    expect(peerDependenciesMeta).toHaveProperty([name], { optional: true });
  });

  test("an image that has to be made smaller: the request has the command in its place", async () => {
    vi.doMock("sharp", () => {
      throw new Error("Cannot find package 'sharp'");
    });
    try {
      standIn = await startStandIn("openai", () => ({ text: "I see none." }));
      const config = join(home.path, "skein.yaml");
      writeFileSync(
        config,
        `defaults: { model: desk/m }\nmodels: { providers: { desk: { baseUrl: "${standIn.url}", apiKey: any-key-at-all, models: { m: { vision: true } } } } }\n`,
      );
      skein = await createSkein({ memory: true, config, env: {}, quiet: true });
      const images = [{ data: imageData("png", 4000, 3000), mimeType: "image/png" }];
      await skein.session({ agentId: "main", sessionId: "s" }).send("What is this?", { images }).result;
      expect(standIn.requests[0]?.body).toContain("npm install sharp");
    } finally {
      vi.doUnmock("sharp");
    }
  });

  test("spans to a collector: opening fails with the command", async () => {
    vi.doMock("@opentelemetry/exporter-trace-otlp-http", () => {
      throw new Error("Cannot find package '@opentelemetry/exporter-trace-otlp-http'");
    });
    try {
      const config = join(home.path, "skein.yaml");
      writeFileSync(config, "telemetry: { otlp: 'http://127.0.0.1:9' }\n");
      await expect(createSkein({ memory: true, config, env: {}, quiet: true })).rejects.toThrow(
        /run: npm install @opentelemetry\/sdk-trace-base @opentelemetry\/exporter-trace-otlp-http @opentelemetry\/resources/,
      );
    } finally {
      vi.doUnmock("@opentelemetry/exporter-trace-otlp-http");
    }
  });
});

describe("[OVF13] a frame or body of many megabytes is not parsed in one piece", () => {
  const large = { pad: Array.from({ length: 50_000 }, (_, index) => ({ index, text: "x".repeat(400) })) };

  /** The longest text that JSON.parse was given meanwhile. */
  async function longestParse<T>(work: () => Promise<T>): Promise<{ longest: number; value: T }> {
    const { parse } = JSON;
    let longest = 0;
    JSON.parse = (text, reviver) => {
      longest = Math.max(longest, text.length);
      return parse(text, reviver);
    };
    try {
      const value = await work();
      return { longest, value };
    } finally {
      JSON.parse = parse;
    }
  }

  test("over a socket, and a frame behind it is answered after it", async () => {
    const gateway = await wholeGateway();
    try {
      const client = await gateway.client();
      const { longest, value } = await longestParse(async () => {
        const order: string[] = [];
        const refused = client.call("models.list", large as never).catch((error: unknown) => {
          order.push("large");
          return error as Error & { code: string };
        });
        const small = client.call("models.list", {}).then(({ count }) => {
          order.push("small");
          return count;
        });
        return { error: await refused, count: await small, order };
      });
      expect(value.error).toMatchObject({ code: "invalid_request" });
      expect(value.error).toHaveProperty("message", expect.stringContaining("pad"));
      expect(value.count).toBeGreaterThan(0);
      expect(value.order).toEqual(["large", "small"]);
      expect(longest).toBeLessThan(1024 * 1024);
    } finally {
      await gateway.close();
    }
  });

  test("over HTTP", async () => {
    const gateway = await wholeGateway();
    try {
      const { longest, value } = await longestParse(() => gateway.rpc("models.list", large));
      expect(value).toMatchObject({ status: 400 });
      expect(JSON.stringify(value.body)).toContain("pad");
      expect(longest).toBeLessThan(1024 * 1024);
    } finally {
      await gateway.close();
    }
  });
});
