import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import type { Server } from "node:http";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Check as CheckSchema } from "typebox/schema";
import { Check } from "typebox/value";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { run } from "../../test/support/cli.ts";
import { defaultModel } from "../config/default-model.ts";
import { configJsonSchema } from "../config/json-schema.ts";
import { loadConfig } from "../config/load.ts";
import { InitSchema } from "../protocol/command-payloads.ts";
import type { Terminal } from "./output/terminal.ts";

let home = "";
let folder = "";
let count = 0;
/** The response from the loopback server, or `null` if it never responds. */
let answering: { status: number; body: string } | null = null;
let asked: (string | undefined)[] = [];
let server: Server;
let nobody = "";
let ollamaHost = "";

const tags = (...names: readonly unknown[]) => ({
  status: 200,
  body: JSON.stringify({ models: names.map((name) => ({ name, size: 1 })) }),
});

async function listen(): Promise<{ server: Server; host: string }> {
  const made = createServer((request, response) => {
    asked.push(request.url);
    if (answering !== null) response.writeHead(answering.status).end(answering.body);
  });
  await new Promise<void>((resolve) => made.listen(0, "127.0.0.1", resolve));
  return { server: made, host: `127.0.0.1:${(made.address() as AddressInfo).port}` };
}

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "skein-cli-init-"));
  const gone = await listen();
  await new Promise((resolve) => gone.server.close(resolve));
  nobody = gone.host;
  ({ server, host: ollamaHost } = await listen());
});
beforeEach(() => {
  folder = join(home, `f-${count++}`);
  mkdirSync(folder);
  answering = tags();
  asked = [];
});
afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  rmSync(home, { recursive: true, force: true });
});

type Env = Record<string, string>;
const init = (args: string[] = [], env: Env = {}, more: Partial<Terminal> = {}) =>
  run(["init", ...args], { cwd: folder, env: { OLLAMA_HOST: nobody, ...env }, ...more });

async function initJson(args: string[] = [], env: Env = {}) {
  const { out, err, exit } = await init(["--json", ...args], env);
  const payload = JSON.parse(out);
  expect({ fits: Check(InitSchema, payload), err, exit }).toEqual({ fits: true, err: "", exit: 0 });
  return payload;
}

const written = () => readFileSync(join(folder, "skein.yaml"), "utf8");
const load = (env: Env) => loadConfig({ cwd: folder, env: { HOME: home, ...env } });

const variables = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "MISTRAL_API_KEY"];
const providers = ["anthropic", "openai", "google", "mistral"];
const subsets = Array.from({ length: 16 }, (_, bits) => variables.filter((_, at) => (bits >> at) & 1));

describe("what init writes", () => {
  test.each(
    subsets.flatMap((keys) => ["no Ollama", "an empty one", "a full one"].map((how) => ({ keys, how }))),
  )("$keys and $how: loads without mistakes and matches the schema", async ({ keys, how }) => {
    const env: Env = Object.fromEntries(keys.map((name) => [name, "hunter2"]));
    if (how === "a full one") answering = tags("nomic-embed-text:latest", "qwen3:8b", "hf.co/a/b:Q4_K_M");
    const local: Env = how === "no Ollama" ? {} : { OLLAMA_HOST: ollamaHost };
    const payload = await initJson([], { ...env, ...local });
    const text = written();
    expect(CheckSchema(configJsonSchema(), parse(text))).toBe(true);
    expect(text).not.toContain("hunter2");
    expect(readdirSync(folder)).toEqual(["skein.yaml"]);
    const { config, variable } = await load(env);
    expect(config.agents.main?.model ?? defaultModel(variable, config)).toBe(payload.model);
    const expected = keys.map((name) => providers[variables.indexOf(name)]);
    expect(Object.keys(config.models.providers)).toEqual([
      ...expected,
      ...(how === "no Ollama" ? [] : ["local"]),
    ]);
    if (keys.length > 0) expect(payload.model.split("/")[0]).toBe(expected[0]);
    else expect(payload.model).toBe(how === "a full one" ? "local/qwen3:8b" : "rehearsal/basic");
  });

  test("the commented settings are valid when uncommented", async () => {
    await initJson();
    const text = written().replace(/^( *)# (?= *[a-z][a-zA-Z]*:(?: |$))/gm, "$1");
    writeFileSync(join(folder, "skein.yaml"), text);
    const env: Env = Object.fromEntries(
      [...variables, "GOOGLE_GENERATIVE_AI_API_KEY"].map((name) => [name, "k"]),
    );
    const { config } = await load(env);
    expect(Object.keys(config.models.providers)).toEqual([...providers, "local"]);
    expect(config.agents.main).toMatchObject({ thinking: "low", tools: { allow: ["*"] } });
    expect([config.budget.costUsd, config.mcpServers.files?.command]).toEqual([5, "npx"]);
    expect([Object.keys(config.acp.agents), config.acp.defaultAgent]).toEqual([
      ["claude", "gemini"],
      "claude",
    ]);
    expect(CheckSchema(configJsonSchema(), parse(text))).toBe(true);
  });

  test("--dir selects the folder and creates it if needed; --config is a usage error", async () => {
    const { file } = await initJson(["--dir", "deep/er"]);
    expect(file).toBe(join(folder, "deep/er/skein.yaml"));
    expect(existsSync(file)).toBe(true);
    const usageError = await init(["--config", "x.yaml"]);
    expect([usageError.exit, usageError.err]).toEqual([
      2,
      expect.stringContaining("use --dir to specify the folder"),
    ]);
  });

  test("prints what was written, what was found, and what to do next", async () => {
    answering = tags("qwen3:8b");
    const { out, exit } = await init([], { OLLAMA_HOST: ollamaHost, OPENAI_API_KEY: "hunter2" });
    expect(exit).toBe(0);
    expect(out).toBe(
      `wrote ${join(folder, "skein.yaml")}\n  keys    OPENAI_API_KEY (environment)\n` +
        `  ollama  http://${ollamaHost}/v1: qwen3:8b\n  model   openai/gpt-5.4\nTo check the configuration: skein doctor\n`,
    );
  });
});

describe("what init detects", () => {
  test("reads keys of .env below the real environment, ignoring blank ones", async () => {
    writeFileSync(
      join(folder, ".env"),
      "ANTHROPIC_API_KEY=hunter2\nOPENAI_API_KEY=hunter2\nGOOGLE_GENERATIVE_AI_API_KEY=' '\nGEMINI_API_KEY=hunter2\n",
    );
    const { keys, model } = await initJson([], { ANTHROPIC_API_KEY: "", GEMINI_API_KEY: "hunter2" });
    expect(keys).toEqual([
      { provider: "openai", variable: "OPENAI_API_KEY", from: ".env" },
      { provider: "google", variable: "GEMINI_API_KEY", from: "environment" },
    ]);
    expect(model).toBe("openai/gpt-5.4");
    expect(written()).not.toContain("hunter2");
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the configuration's own placeholder
    expect(written()).toContain('    google: { apiKey: "${GEMINI_API_KEY}" }\n');
  });

  test("without keys, explains how to add one, and a key added later is used", async () => {
    const { keys, ollama, next } = await initJson();
    expect([keys, ollama]).toEqual([[], undefined]);
    expect(next[0]).toContain("ANTHROPIC_API_KEY=…");
    writeFileSync(join(folder, ".env"), "MISTRAL_API_KEY=k\n");
    const { config, variable } = await load({});
    expect(defaultModel(variable, config)).toMatch(/^mistral\//);
  });

  test("omits model names that cannot be written to a file, and duplicates", async () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the configuration's own placeholder
    answering = tags("qwen3:8b", "qwen3:8b", '"\n', "${HOME}", "__proto__", 5, "a b", "");
    const { ollama } = await initJson([], { OLLAMA_HOST: ollamaHost });
    expect(ollama).toEqual({ baseUrl: `http://${ollamaHost}/v1`, models: ["qwen3:8b"] });
    expect(asked).toEqual(["/api/tags"]);
    await load({});
  });

  test.each([
    ["an error", { status: 500, body: '{"models":[]}' }],
    ["no JSON", { status: 200, body: "<html>" }],
    ["something else", { status: 200, body: '{"models":5}' }],
    ["null", { status: 200, body: "null" }],
    ["far too much", { status: 200, body: JSON.stringify({ models: [], more: "x".repeat(2_000_000) }) }],
    ["no response at all", null],
  ])("a server that answers with %s is not Ollama", async (_, answer) => {
    answering = answer;
    expect((await initJson([], { OLLAMA_HOST: ollamaHost })).ollama).toBeUndefined();
    expect(asked).toEqual(["/api/tags"]);
  });
});

describe("what init leaves unchanged", () => {
  test.each(["skein.yaml", "skein.yml", "skein.json"])("%s is not replaced without --force", async (name) => {
    writeFileSync(join(folder, name), "{}\n");
    const { err, exit } = await init(["--yes"]);
    expect([exit, err]).toEqual([
      1,
      expect.stringContaining(`${join(folder, name)} could not be written: it already exists`),
    ]);
    expect(err).toContain("--force");
    expect(readdirSync(folder)).toEqual([name]);
    const { backups } = await initJson(["--force"]);
    expect(backups).toEqual([expect.stringContaining(`${join(folder, name)}.bak-`)]);
    expect(readFileSync(backups[0], "utf8")).toBe("{}\n");
    expect(readdirSync(folder)).toHaveLength(2);
    await load({});
  });

  test("asks before it replaces a file on a terminal, unless --yes is given", async () => {
    writeFileSync(join(folder, "skein.yaml"), "{}\n");
    const questions: string[] = [];
    const ask = (reply: string) => async (question: string) => {
      questions.push(question);
      return reply;
    };
    expect((await init(["--force"], {}, { ask: ask("n") })).exit).toBe(2);
    expect(written()).toBe("{}\n");
    expect((await init(["--force", "--yes"], {}, { ask: ask("n") })).exit).toBe(0);
    expect((await init(["--force"], {}, { ask: ask("y") })).exit).toBe(0);
    expect(questions).toHaveLength(2);
    expect(written()).toContain("agents:");
  });

  test("reports a folder with the file's name, and a file in place of the folder", async () => {
    mkdirSync(join(folder, "skein.yaml"));
    const there = await init(["--force"]);
    expect([there.exit, there.err]).toEqual([1, expect.stringContaining("could not be written")]);
    writeFileSync(join(folder, "plain"), "");
    const within = await init(["--dir", "plain"]);
    expect([within.exit, within.err]).toEqual([1, expect.stringContaining("could not be written")]);
  });
});
