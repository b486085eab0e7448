import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { TemporaryFolder, Twin } from "../../src/entry-testing.ts";
import { startTwin, temporaryFolder } from "../../src/entry-testing.ts";
import type { Skein, SkeinOptions } from "../../src/index.ts";
import { createSkein, defineAgent, defineTool, HookRegistry } from "../../src/index.ts";
import { assistantMessage } from "../support/session-text.ts";
import { providers } from "../support/twin-providers.ts";

let folder: TemporaryFolder;
let closers: (() => Promise<unknown>)[] = [];

beforeEach(() => {
  folder = temporaryFolder("skein-limits-");
  closers = [];
});
afterEach(async () => {
  for (const close of closers.reverse()) await close();
  folder.remove();
});

const headings = "Goal, Decisions, Open work, Constraints, Pending asks, Exact identifiers, Files touched";
const summary = headings
  .split(", ")
  .map((heading) => `## ${heading}\n- Gardens of Kyoto.`)
  .join("\n");

/** A Skein instance in this process whose agent uses a twin. */
async function start(
  config: object,
  options: SkeinOptions = {},
  { api, provider, model }: (typeof providers)[number] = providers[3],
  window = 100_000,
): Promise<{ readonly twin: Twin; readonly skein: Skein }> {
  const twin = await startTwin({ api, otherwise: () => ({ content: [{ type: "text", text: summary }] }) });
  closers.push(() => twin.close());
  const models = { [model]: { contextWindow: window } };
  const configured = { providers: { [provider]: { baseUrl: twin.url, apiKey: "any", models } } };
  const file = join(folder.path, "skein.yaml");
  writeFileSync(file, JSON.stringify({ models: configured, ...config }));
  const agents = [defineAgent({ id: "main", model: `${provider}/${model}`, deny: ["group:sessions"] })];
  const dir = join(folder.path, "root");
  const skein = await createSkein({ dir, config: file, quiet: true, agents, ...options });
  closers.push(() => skein.close());
  return { twin, skein };
}

const lastBody = ({ requests }: Twin) => JSON.stringify(requests.at(-1)?.body);

describe("the history limit of a channel", () => {
  const inbound = async (skein: Skein, text: string, peer = "U1") => {
    const { runId } = await skein.receive({ channel: "slack", messageId: text, peer, text });
    expect(await skein.ended(runId)).toMatchObject({ outcome: { state: "ok" } });
  };

  test.each(["per-channel-peer", "per-peer", "per-account-channel-peer"])(
    "dmHistoryLimit applies with dmScope %s",
    async (dmScope) => {
      const { twin, skein } = await start({
        session: { dmScope },
        channels: { slack: { dmHistoryLimit: 1, dms: { U2: { historyLimit: 2 } } } },
      });
      for (const peer of ["U1", "U2"])
        for (const text of ["first", "second", "third"]) await inbound(skein, `${text} of ${peer}`, peer);
      expect(lastBody(twin)).toMatch(/second of U2.*third of U2/);
      expect(lastBody(twin)).not.toContain("first of U2");
      const ofFirst = JSON.stringify(twin.requests[2]?.body);
      expect(ofFirst).toContain("third of U1");
      expect(ofFirst).not.toContain("second of U1");
    },
  );

  test("a linked peer has the limit of its ID on the channel", async () => {
    const { twin, skein } = await start({
      session: { dmScope: "per-peer", identityLinks: { ann: ["slack:U1"] } },
      channels: { slack: { dms: { U1: { historyLimit: 1 } } } },
    });
    for (const text of ["first", "second"]) await inbound(skein, text);
    expect(lastBody(twin)).toContain("second");
    expect(lastBody(twin)).not.toContain("first");
  });

  test("a note from Skein to the model is not a user turn", async () => {
    const { twin, skein } = await start({ channels: { slack: { dmHistoryLimit: 1 } } });
    await inbound(skein, "first");
    const tried = { type: "text" as const, text: "I look." };
    twin.enqueue({ content: [tried, { type: "toolCall", name: "read file", arguments: {} }] });
    await inbound(skein, "second");
    expect(lastBody(twin)).toMatch(/second.*read file/);
    expect(lastBody(twin)).not.toContain("first");
  });

  test("a message that is steered into a turn leaves the rest of that turn in the request", async () => {
    const message = (text: string) => ({ channel: "slack", messageId: text, peer: "U1", text });
    const look = defineTool({
      name: "look",
      description: "Looks.",
      parameters: { type: "object", properties: {} },
      execute: async () => {
        await skein.receive(message("third"));
        return "A garden.";
      },
    });
    const { provider, model } = providers[3];
    const deny = ["group:sessions"];
    const { twin, skein } = await start(
      { channels: { slack: { dmHistoryLimit: 1 } }, queue: { mode: "steer" } },
      { agents: [defineAgent({ id: "main", model: `${provider}/${model}`, tools: [look], deny })] },
    );
    await inbound(skein, "first");
    twin.enqueue({ content: [{ type: "toolCall", name: "look", arguments: {} }] });
    await inbound(skein, "second");
    expect(lastBody(twin)).toMatch(/second.*A garden.*third/);
    expect(lastBody(twin)).not.toContain("first");
  });
});

describe("compaction.maxHistoryShare", () => {
  test.each([0.1, 0.3, 0.9])("[XRW10] a summary request fills at most %s of the window", async (share) => {
    const window = 40_000;
    const compaction = { mode: "safeguard", maxHistoryShare: share };
    const { twin, skein } = await start({ compaction }, {}, providers[3], window);
    const { sessionId } = await skein.store.sessions.create(
      { agentId: "main" },
      { key: "agent:main:session:s", cwd: folder.path },
    );
    const messages = Array.from({ length: 60 }, (_, turn) => [
      { role: "user" as const, content: `Question ${turn}: ${"which garden is quiet? ".repeat(60)}` },
      assistantMessage(`Answer ${turn}: ${"the garden behind the temple. ".repeat(60)}`),
    ]).flat();
    await skein.store.sessions.append(
      { agentId: "main" },
      sessionId,
      messages.map((message) => ({ draft: { type: "message" as const, message } })),
    );
    expect(await skein.session({ sessionKey: "agent:main:session:s" }).compact()).toMatchObject({
      done: true,
    });
    const sizes = twin.requests.map(({ body }) => {
      const { messages: sent } = body as { messages: { content: string }[] };
      return sent.reduce((sum, { content }) => sum + content.length, 0) / 4;
    });
    expect(sizes.length).toBeGreaterThan(0);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(share * window);
    if (share < 0.5) expect(sizes.length).toBeGreaterThan(1);
  });
});

describe("hooks before a run", () => {
  test.each(providers)(
    "[XRW6] $provider: prependContext and the prompt are sent as one text",
    async (provider) => {
      const hooks = new HookRegistry();
      hooks.on("before_agent_start", () => ({ prependContext: "The user is Ann." }));
      const { twin, skein } = await start({}, { hooks }, provider);
      const session = skein.session({ sessionId: "s" });
      await session.send("Who am I?").result;
      expect(lastBody(twin)).toContain(JSON.stringify("The user is Ann.\n\nWho am I?"));
      const record = await session.record();
      const context = await skein.store.sessions.context({ agentId: "main" }, record?.sessionId ?? "");
      expect(context?.messages).toMatchObject([
        { role: "custom", content: "The user is Ann." },
        { role: "user", content: "Who am I?" },
        { role: "assistant" },
      ]);
    },
  );

  test("[XRW7] before_agent_start sees the history as the model does", async () => {
    const hooks = new HookRegistry();
    const seen: unknown[] = [];
    hooks.on("before_agent_start", ({ prompt, messages }) => {
      seen.push({ prompt, messages });
      return undefined;
    });
    const { skein } = await start({}, { hooks });
    const { sessionId } = await skein.store.sessions.create(
      { agentId: "main" },
      { key: "agent:main:session:s", cwd: folder.path },
    );
    const result = { role: "toolResult" as const, toolName: "find", isError: false, timestamp: 3 };
    const content = [{ type: "text" as const, text: "Ryoan-ji" }];
    const call = { type: "toolCall" as const, id: "c1", name: "find", arguments: {} };
    const messages = [
      { role: "user" as const, content: "Which garden?" },
      { ...assistantMessage("Half an"), stopReason: "error" as const },
      { ...assistantMessage(""), content: [call], stopReason: "toolUse" as const },
      { ...result, toolCallId: "c1", content, details: { secret: 1 } },
      { ...result, toolCallId: "nobody", content },
      assistantMessage("Ryoan-ji."),
    ];
    await skein.store.sessions.append(
      { agentId: "main" },
      sessionId,
      messages.map((message) => ({ draft: { type: "message" as const, message } })),
    );
    await skein.session({ sessionKey: "agent:main:session:s" }).send("Thanks").result;
    expect(seen).toEqual([{ prompt: "Thanks", messages: expect.anything() }]);
    const [{ messages: cleaned }] = seen as [{ messages: { role: string }[] }];
    expect(cleaned.map(({ role }) => role)).toEqual(["user", "assistant", "toolResult", "assistant"]);
    expect(JSON.stringify(cleaned)).not.toContain("secret");
  });

  test("[XRW8] agent_end gets the messages that the run added", async () => {
    const hooks = new HookRegistry();
    const ended: unknown[] = [];
    const both = Promise.withResolvers<void>();
    hooks.on("agent_end", ({ outcome, messages }) => {
      if (ended.push({ outcome, messages }) === 2) both.resolve();
    });
    const { twin, skein } = await start({}, { hooks });
    twin.enqueue(
      { content: [{ type: "text", text: "Ryoan-ji." }] },
      { content: [{ type: "text", text: "You are welcome." }] },
    );
    const session = skein.session({ sessionId: "s" });
    await session.send("Which garden?").result;
    await session.send("Thanks").result;
    await both.promise;
    expect(ended).toMatchObject([
      { outcome: "ok", messages: [{ role: "user", content: "Which garden?" }, { role: "assistant" }] },
      {
        outcome: "ok",
        messages: [
          { role: "user", content: "Thanks" },
          { role: "assistant", content: [{ text: "You are welcome." }] },
        ],
      },
    ]);
  });
});
