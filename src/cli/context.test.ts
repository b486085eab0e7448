import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import sharp from "sharp";
import { Check } from "typebox/value";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { anyEntry, damagedEntry } from "../../test/support/arbitraries.ts";
import { run, withoutFigures } from "../../test/support/cli.ts";
import { assistantMessage, sessionText, userLine } from "../../test/support/session-text.ts";
import { png } from "../../test/transcript/conversation.ts";
import { createStore } from "../app/folder.ts";
import { ContextPayloadSchema, RefusalSchema } from "../protocol/session-views.ts";

let folder = "";

const assistantLine = (id: string, parentId: string, fields: object = {}) => ({
  ...userLine(id, parentId),
  message: { ...assistantMessage("Hi."), ...fields },
});

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "skein-context-"));
  const write = (name: string, ...lines: object[]) =>
    writeFileSync(join(folder, name), sessionText(...lines));
  write("nobody.jsonl", userLine("a", null, "Hello"));
  write(
    "failed.jsonl",
    userLine("a", null),
    assistantLine("b", "a", { stopReason: "error" }),
    userLine("c", "b"),
  );
  write(
    "proxy.jsonl",
    userLine("a", null),
    assistantLine("b", "a", { provider: "proxy" }),
    userLine("c", "b"),
  );
  const wide = sharp({ create: { width: 2000, height: 20, channels: 3, background: "red" } });
  const data = (await wide.png().toBuffer()).toString("base64");
  const image = { type: "image", data, mimeType: "image/png" };
  write("wide.jsonl", { ...userLine("a", null), message: { role: "user", content: [image] } });
  const call = { type: "toolCall", id: "toolu_1", name: "read", arguments: {} };
  const done = { role: "toolResult", toolCallId: "toolu_1", toolName: "read", content: [], isError: false };
  write("calls.jsonl", userLine("a", null), assistantLine("b", "a", { content: [call] }), {
    ...userLine("c", "b"),
    message: { ...done, timestamp: 1 },
  });
  write("long.jsonl", userLine("a", null, "gardens and food ".repeat(8000)));
  const evil = "\u001b[2J\u001b]0;owned\u0007 \u202eevil\r\n";
  write("hostile.jsonl", userLine("a", null, evil), userLine("b", "a", evil));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const inFolder = (...args: string[]) => run(["context", ...args], { cwd: folder });
const payload = async (...args: string[]) => JSON.parse((await inFolder(...args, "--json")).out);

describe("the context for a model", () => {
  test("[IMG7] a large image is sent smaller", async () => {
    const { request, changes } = await payload("wide.jsonl", "--model", "openai/gpt-5");
    expect(request.messages[0].content).toMatchObject([{ type: "image" }]);
    expect(changes).toMatchObject([{ kind: "image_shrunk" }]);
  });

  test("[XRW3] prints the messages to be sent, their tokens by part, and the changes by step", async () => {
    const plain = await run(["context", "main.jsonl", "--model", "openai/gpt-5"]);
    expect(plain.out).toMatch(/^tokens {4}about \d+ of 400k \(<1%\)\n( {10}\w+ +\d+ {2}█+\n)+\n/m);
    await expect(withoutFigures(plain.out)).toMatchFileSnapshot(
      "../../test/golden/cli/family-context-openai.txt",
    );
    const told = await run(["context", "main.jsonl", "--model", "anthropic/claude-sonnet-4-5", "--explain"]);
    await expect(withoutFigures(told.out)).toMatchFileSnapshot(
      "../../test/golden/cli/family-context-explained.txt",
    );
    expect(told.out).toContain("changes   2\n");
    const narrow = await run(["context", "main.jsonl", "--model", "openai/gpt-5"], { columns: 40 });
    for (const line of narrow.out.split("\n")) expect(line.length).toBeLessThanOrEqual(40);
  });

  test("[XRW3] --json prints the payload with every change", async () => {
    const seen = await payload("failed.jsonl", "--model", "mistral/mistral-small-latest");
    expect(Check(ContextPayloadSchema, seen)).toBe(true);
    expect(seen).toMatchObject({
      request: { provider: "mistral", api: "mistral-conversations", model: "mistral-small-latest" },
      changes: [
        { step: "normalizeContext", kind: "failed_answer", entryId: "b" },
        { kind: "unanswered_joined" },
      ],
      tokens: { window: 131_072 },
    });
    expect(seen).not.toHaveProperty("wire");
  });

  test("[XRW3] without --model uses the session's own, however the session was addressed", async () => {
    expect((await payload("failed.jsonl")).request).toMatchObject({
      provider: "anthropic",
      model: "claude-x",
    });
    const own = await payload("proxy.jsonl", "--wire");
    expect(own.request).toMatchObject({ provider: "proxy", api: "anthropic-messages" });
    expect(own.wire).toHaveProperty("max_tokens");
  });

  test("[XRW3] without a known model, prints the unchanged context and a hint", async () => {
    const { out, exit } = await inFolder("nobody.jsonl");
    expect(exit).toBe(0);
    expect(out).toContain("model     unknown");
    expect(out).toContain("skein context nobody.jsonl --model anthropic/claude-sonnet-4-5\n");
    const seen = await payload("nobody.jsonl");
    expect(Check(ContextPayloadSchema, seen)).toBe(true);
    expect(seen.request).toEqual({
      thinkingLevel: "off",
      messages: [{ role: "user", content: "Hello", timestamp: 1 }],
    });
    expect(seen.tokens).toMatchObject({ user: seen.tokens.total });
  });

  test("[XRW1] --wire prints only the body, and adds it to the payload", async () => {
    const { out, err, exit } = await inFolder("nobody.jsonl", "--model", "openai/gpt-5", "--wire");
    const body = JSON.parse(out);
    expect([err, exit]).toEqual(["", 0]);
    expect(body).toMatchObject({ model: "gpt-5", store: false, input: [{ role: "user" }], stream: true });
    expect((await payload("nobody.jsonl", "--model", "openai/gpt-5", "--wire")).wire).toEqual(body);
    const both = await inFolder(
      "nobody.jsonl",
      "--model",
      "google/gemini-3-pro-preview",
      "--wire",
      "--explain",
    );
    expect(both.out).toMatch(/^model .*\n[\s\S]*\nwireBody\n[\s\S]*\nwire\n\{\n/);
  });

  test("[XRW1] an unknown server is used at its address", async () => {
    const args = ["nobody.jsonl", "--model", "local/qwen/qwen3", "--base-url", "http://127.0.0.1:1/v1"];
    expect(await payload(...args, "--wire")).toMatchObject({
      request: { provider: "local", api: "openai-completions", model: "qwen/qwen3" },
      wire: { model: "qwen/qwen3", messages: [{ role: "user", content: "Hello" }] },
    });
  });

  test.each([
    [["nobody.jsonl", "--model", "gpt-5"], "is not a valid model name"],
    [["nobody.jsonl", "--model", "antropic/claude-x"], "--base-url <url>"],
    [["nobody.jsonl", "--model", ""], "is not a valid model name"],
    [["nobody.jsonl", "--model", "local/q", "--base-url", "notaurl"], "http:// or https://"],
    [
      ["nobody.jsonl", "--model", "local/q", "--base-url", "ftp://h/v1"],
      '"ftp://h/v1" is not a valid server URL',
    ],
    [["nobody.jsonl", "--model", "local/q", "--base-url", "http://"], "is not a valid server URL"],
    [["nobody.jsonl", "--explain"], "The session does not name a model"],
    [["nobody.jsonl", "--wire"], "--model <provider/model>"],
    [["missing.jsonl", "--model", "nonsense"], "is not a valid model name"],
  ])("%j is a usage error with a remedy", async (args, text) => {
    const { out, err, exit } = await inFolder(...args);
    expect([out, exit]).toEqual(["", 2]);
    expect(err).toContain(text);
    const refusal = await payload(...args);
    expect(Check(RefusalSchema, refusal)).toBe(true);
  });

  test("[XRW3] unsupported settings of the model are reported, with and without --wire", async () => {
    const explained = ["nobody.jsonl", "--model", "openai/o3-mini", "--explain"];
    for (const more of [[], ["--wire"]]) {
      const { out } = await inFolder(...explained, ...more);
      expect(out).toMatch(/\nmodelRequest\n {2}thinking_left_on: This model always thinks/);
      expect(out.includes("\nwire\n{\n")).toBe(more.length === 1);
      expect(out).not.toContain('"effort"');
    }
  });

  test("[XRW3] calls of unknown tools are reported in a line", async () => {
    const { out } = await inFolder("calls.jsonl", "--model", "anthropic/claude-sonnet-4-5");
    expect(out).toMatch(/\nTools are not included, because .*\n$/);
    const explained = await inFolder("calls.jsonl", "--model", "anthropic/claude-sonnet-4-5", "--explain");
    expect(explained.out).toContain("tools_unknown: The history contains tool calls");
    const wire = await inFolder("calls.jsonl", "--model", "anthropic/claude-sonnet-4-5", "--wire");
    expect(JSON.parse(wire.out)).toHaveProperty("messages");
    expect((await inFolder("nobody.jsonl", "--model", "openai/gpt-5")).out).not.toContain("tools are");
  });

  test("[XRW3] a request over the window says what a run would do", async () => {
    const { out } = await inFolder("long.jsonl", "--model", "openai/gpt-4-0613");
    expect(out).toMatch(
      /of 8\.2k \(\d{3}%\)\n {10}exceeds the context window; a run would compact the session first\n/,
    );
    expect((await inFolder("nobody.jsonl", "--model", "openai/gpt-5")).out).not.toContain("compact");
  });

  test("[ATK18] explanations and request bodies cannot control the terminal", async () => {
    for (const more of [["--explain"], ["--wire"], ["--json", "--wire"]]) {
      const { out } = await inFolder("hostile.jsonl", "--model", "anthropic/claude-sonnet-4-5", ...more);
      expect(out).toContain("owned");
      // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not be there
      expect(out).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/);
    }
  });

  test("prints any file for any model", async () => {
    const file = join(folder, "any.jsonl");
    const models = ["anthropic/claude-opus-5-5", "openai/gpt-5", "google/gemini-2.5-pro", "mistral/m"];
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(anyEntry, damagedEntry), { maxLength: 6 }),
        fc.constantFrom(...models),
        async (entries, model) => {
          const lines = entries.map((entry, index) => ({
            ...entry,
            id: Reflect.get(entry, "id") ?? `e${index}`,
          }));
          writeFileSync(file, sessionText(...lines));
          const seen = await payload(file, "--model", model, "--wire");
          expect(Check(ContextPayloadSchema, seen)).toBe(true);
          expect(seen).toHaveProperty("wire");
          expect(await inFolder(file, "--model", model, "--explain")).toMatchObject({ exit: 0, err: "" });
        },
      ),
    );
  });

  test("respects the configured addresses, windows, policies, agents and limits", async () => {
    const home = join(folder, "configured");
    const dir = join(home, ".skein");
    mkdirSync(home);
    writeFileSync(
      join(home, "skein.yaml"),
      `
store: files:${dir}
agents: { main: { model: local/qwen3, system: You plan journeys. } }
models:
  providers:
    local:
      baseUrl: http://127.0.0.1:1/v1
      models: { qwen3: { contextWindow: 32768, maxOutput: 1000, policy: { toolCallIds: strict9 } } }
    mine: { type: anthropic, baseUrl: "http://127.0.0.1:1/v1" }
channels: { irc: { historyLimit: 1 } }
`,
    );
    const store = await createStore({ dir });
    const scope = { agentId: "main" };
    const { sessionId } = await store.sessions.create(scope, { key: "agent:main:irc:group:42", cwd: "/w" });
    const said = (content: string) => ({
      type: "message" as const,
      message: { role: "user" as const, content },
    });
    const answered = {
      type: "message" as const,
      message: { ...assistantMessage("Hi."), provider: "", model: "" },
    };
    const drafts = [said("first"), answered, said("second")];
    await store.sessions.append(
      scope,
      sessionId,
      drafts.map((draft) => ({ draft })),
    );
    await store.close();
    const seen = async (...args: string[]) =>
      JSON.parse((await run(["context", sessionId, "--json", ...args], { cwd: home })).out);
    expect(await seen("--wire")).toMatchObject({
      request: {
        provider: "local",
        api: "openai-completions",
        model: "qwen3",
        system: "You plan journeys.",
        messages: [{ content: "second" }],
      },
      tokens: { window: 32_768 },
      changes: [{ step: "limitHistory" }],
      wire: { max_tokens: 1000, messages: [{ role: "system" }, { content: "second" }] },
    });
    expect(await seen("--model", "local/other")).toMatchObject({ request: { model: "other" } });
    expect(await seen("--model", "mine/claude-x", "--wire")).toMatchObject({
      request: { api: "anthropic-messages" },
      wire: { system: [{ text: "You plan journeys." }] },
    });
    writeFileSync(join(home, "lone.jsonl"), sessionText(userLine("a", null, "Hello")));
    const lone = await run(["context", "lone.jsonl", "--model", "local/qwen3", "--json"], { cwd: home });
    expect(JSON.parse(lone.out)).toMatchObject({ tokens: { window: 32_768 } });
    expect(JSON.parse(lone.out).request).not.toHaveProperty("system");
  });

  test("the agent's thinking level applies unless the session has one, and its model must be reachable", async () => {
    const home = join(folder, "levels");
    const dir = join(home, ".skein");
    mkdirSync(home);
    const configure = (model: string) =>
      writeFileSync(
        join(home, "skein.yaml"),
        `store: files:${dir}\nagents: { main: { model: ${model}, thinking: high } }\n`,
      );
    const store = await createStore({ dir });
    const scope = { agentId: "main" };
    const said = { type: "message" as const, message: { role: "user" as const, content: "Hello" } };
    const made = async (key: string, ...levels: string[]) => {
      const { sessionId } = await store.sessions.create(scope, {
        key: `agent:main:session:${key}`,
        cwd: "/w",
      });
      const drafts = [
        ...levels.map((thinkingLevel) => ({ type: "thinking_level_change" as const, thinkingLevel })),
        said,
      ];
      const batch = drafts.map((draft) => ({ draft }));
      await store.sessions.append(scope, sessionId, batch);
      return sessionId;
    };
    const [silent, low, off, set] = [
      await made("silent"),
      await made("low", "low"),
      await made("off"),
      await made("set", "low"),
    ];
    await store.sessions.patch(scope, off, { thinkingLevel: "off" });
    await store.sessions.patch(scope, set, { thinkingLevel: "medium" });
    await store.close();
    configure("openai/gpt-5");
    const seen = async (name: string) => run(["context", name, "--json"], { cwd: home });
    const level = async (name: string) => JSON.parse((await seen(name)).out).request.thinkingLevel;
    expect([await level(silent), await level(low), await level(off), await level(set)]).toEqual([
      "high",
      "low",
      "off",
      "medium",
    ]);
    configure("local/q");
    const { out, exit } = await seen(silent);
    expect([JSON.parse(out).code, exit]).toEqual(["invalid_arguments", 2]);
    expect(out).toContain("models.providers.local.baseUrl");
  });

  test("[XRW1] an image stored as a blob is in the body, and a standalone file's is a text", async () => {
    const dir = join(folder, "seen");
    const store = await createStore({ dir });
    const scope = { agentId: "main" };
    const bytes = Buffer.from(png, "base64");
    const sha256 = await store.blobs.put(scope, bytes);
    const { sessionId } = await store.sessions.create(scope, { key: "agent:main:main", cwd: "/w" });
    const skein = { blob: { sha256, bytes: bytes.length, mimeType: "image/png", was: "image" } };
    const message = { role: "user" as const, content: [{ type: "text" as const, text: "[image]", skein }] };
    await store.sessions.append(scope, sessionId, [{ draft: { type: "message", message } }]);
    await store.close();
    const body = async (name: string) =>
      (await run(["context", name, "--dir", dir, "--model", "openai/gpt-5", "--wire"], { cwd: folder })).out;
    expect(await body("main")).toContain(png);
    writeFileSync(join(folder, "lone.jsonl"), sessionText({ ...userLine("a", null), message }));
    expect(await body("lone.jsonl")).not.toContain("input_image");
  });
});
