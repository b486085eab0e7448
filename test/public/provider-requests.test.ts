import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import sharp from "sharp";
import Type from "typebox";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { scriptedModel, signatures, temporaryFolder } from "../../src/entry-testing.ts";
import { defineTool } from "../../src/index.ts";
import { run } from "../support/cli.ts";
import { runSeed } from "../support/run-seed.ts";
import { openRuns } from "../support/run-skein.ts";
import { sessionText, userLine } from "../support/session-text.ts";
import { providers } from "../support/twin-providers.ts";
import { closeTwinSkeins, openTwinSkein } from "../support/twin-skein.ts";
import type { Signer } from "../transcript/conversation.ts";
import { png, toolNames } from "../transcript/conversation.ts";
import { transcriptOf } from "../transcript/generate.ts";

let home: TemporaryFolder;
beforeEach(() => {
  home = temporaryFolder();
});
afterEach(async () => {
  await closeTwinSkeins();
  home.remove();
});

const transcripts = 12;
const tools = toolNames.map((name) =>
  defineTool({ name, description: "Looks.", parameters: Type.Object({}), execute: async () => "found" }),
);
const signer: Signer = {
  thinking: ({ api, model }, thinking) =>
    api === "anthropic-messages" || api === "google-generative-ai"
      ? signatures.sign(api, model, thinking)
      : undefined,
  part: ({ api, model }) =>
    api === "google-generative-ai" ? signatures.sign(api, model, "a part") : undefined,
};

describe.each(providers)("requests to $provider", ({ api }) => {
  test("[TR15] for any imported session, the provider accepts the request", async () => {
    const sources = join(home.path, "sources");
    mkdirSync(sources);
    for (let index = 0; index < transcripts; index++) {
      const { messages } = transcriptOf(runSeed + index, signer);
      const lines = messages.map((message, at) => ({
        ...userLine(`e${at}`, at === 0 ? null : `e${at - 1}`),
        message,
      }));
      writeFileSync(
        join(sources, `s${index}.jsonl`),
        sessionText(...lines).replace('"id":"s"', `"id":"s${index}"`),
      );
    }
    const dir = join(home.path, "root");
    const imported = await run(["sessions", "import", sources, "--dir", dir, "--json"], { cwd: home.path });
    expect(JSON.parse(imported.out).imported).toHaveLength(transcripts);
    const { skein, twin } = await openTwinSkein(api, {
      agent: { tools: tools.filter(({ name }) => name !== "sessions_list") },
      options: { dir },
    });
    for (let index = 0; index < transcripts; index++) {
      twin.enqueue({ content: [{ type: "text", text: "Noted." }] });
      await skein.session({ sessionKey: `agent:main:session:s${index}` }).send("Go on").result;
    }
    expect(twin.requests.map(({ refusal }) => refusal)).toEqual(Array(transcripts).fill(null));
  });

  test("[CNV8] each request starts with the previous one", async () => {
    const call = { type: "toolCall" as const, name: "read", arguments: { path: "a.txt" } };
    const { send, twin, body } = await openTwinSkein(api, {
      agent: { tools: tools.slice(0, 2), system: "You plan trips." },
      replies: [
        { content: [{ type: "text", text: "Gladly." }] },
        { content: [call] },
        { content: [{ type: "text", text: "Two temples." }] },
        { content: [{ type: "text", text: "Done." }] },
      ],
    });
    for (const text of ["Plan a trip", "Look it up", "Thanks"]) await send(text);
    const requests = twin.requests.map((_, index) => splitRequest(body(index)));
    expect(requests).toHaveLength(4);
    for (const [index, { list, rest }] of requests.slice(1).entries()) {
      expect(rest).toBe(requests[0]?.rest);
      expect(list.startsWith(requests[index]?.list ?? "none")).toBe(true);
    }
  });
});

/**
 * Returns a request's messages without the end of their list, along with everything else in the request, both without
 * cache marks.
 */
function splitRequest(body: Record<string, unknown>): { readonly list: string; readonly rest: string } {
  const field = ["messages", "contents", "input"].find((name) => Array.isArray(body[name])) ?? "";
  const { [field]: list, ...rest } = body;
  const encode = (value: unknown) =>
    JSON.stringify(value, (key, inner: unknown) => (key === "cache_control" ? undefined : inner));
  return { list: encode(list).slice(0, -1), rest: encode(rest) };
}

describe("the body that skein context prints", () => {
  const wire = async (lines: readonly object[], model: string) => {
    const file = join(home.path, "session.jsonl");
    writeFileSync(file, sessionText(...lines));
    const { out } = await run(["context", file, "--model", model, "--wire", "--json"], { cwd: home.path });
    return JSON.parse(out);
  };

  test.each([
    ["openai/gpt-5", "low", { reasoning: { effort: "low" } }],
    ["openai/gpt-5", "xhigh", { reasoning: { effort: "high" } }],
    ["openai/o3-mini", "minimal", { reasoning: { effort: "low" } }],
    ["mistral/mistral-small-latest", "off", { reasoning_effort: "none" }],
    ["mistral/mistral-medium-latest", "low", { reasoning_effort: "high" }],
  ])("[CNV13] %s at %s requests the nearest effort", async (model, thinkingLevel, expected) => {
    const level = {
      ...userLine("t", null),
      type: "thinking_level_change",
      thinkingLevel,
      message: undefined,
    };
    const { wire: body } = await wire([level, userLine("a", "t")], model);
    expect(body).toMatchObject(expected);
  });

  test("[IMG7] an image larger than the provider accepts is scaled down", async () => {
    const wide = sharp({ create: { width: 9000, height: 20, channels: 3, background: "red" } }).png();
    const data = (await wide.toBuffer()).toString("base64");
    const message = { role: "user", content: [{ type: "image", data, mimeType: "image/png" }] };
    const { wire: body, changes } = await wire(
      [{ ...userLine("a", null), message }],
      "anthropic/claude-sonnet-4-5",
    );
    expect(changes).toMatchObject([{ kind: "image_shrunk" }]);
    const [{ source }] = body.messages[0].content as [{ source: { data: string } }];
    const { width = 0 } = await sharp(Buffer.from(source.data, "base64")).metadata();
    expect(width).toBeGreaterThan(100);
    expect(width).toBeLessThanOrEqual(8000);
  });
});

test("[CNV1] messages of the AI SDK return to the model unchanged", async () => {
  const model = scriptedModel(() => ({ text: "Yes." }));
  const { skein } = await openRuns({ model });
  const text = (words: string) => ({ type: "text" as const, text: words });
  const prompt = [
    {
      role: "user",
      content: [
        text("Look: 京都 😀"),
        { type: "file", mediaType: "image/png", data: { type: "data", data: png } },
      ],
    },
    {
      role: "assistant",
      content: [
        text("I look."),
        { type: "tool-call", toolCallId: "call00001", toolName: "find", input: { deep: [1, null, "x"] } },
      ],
    },
    {
      role: "tool",
      content: [
        {
          type: "tool-result",
          toolCallId: "call00001",
          toolName: "find",
          output: { type: "text", value: "Ryoan-ji" },
        },
      ],
    },
    { role: "assistant", content: [text("A garden.")] },
  ];
  const session = skein.session({ sessionId: "s" });
  expect((await session.append(prompt as never)).refused).toEqual([]);
  await session.send("Thanks").result;
  const sent = model.requests.at(-1)?.prompt.filter(({ role }) => role !== "system");
  expect(sent).toEqual([...prompt, { role: "user", content: [text("Thanks")] }]);
  await skein.close();
});
