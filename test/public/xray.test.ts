import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Result } from "../../src/entry-client.ts";
import type { Scripted, ScriptedReply, TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import type { EntryDraft, RuntimeContext, Skein, SkeinOptions } from "../../src/index.ts";
import { createSkein, defineAgent, defineTool, HookRegistry } from "../../src/index.ts";
import { run } from "../support/cli.ts";
import { desk } from "../support/family.ts";
import type { GatedTwin } from "../support/gated-twin.ts";
import { startGatedTwin } from "../support/gated-twin.ts";
import { startHttpToolServer } from "../support/mcp-http.ts";
import { assistantMessage } from "../support/session-text.ts";
import type { TwinProvider } from "../support/twin-providers.ts";
import { providers } from "../support/twin-providers.ts";
import { imageData } from "../support/twins.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

let folder: TemporaryFolder;
let closers: (() => Promise<unknown>)[] = [];
/** The request that each twin received and the X-ray taken before the twin answered. */
let requests: { readonly body: string; readonly xray: string }[] = [];
/** The session to show, in a Skein instance in this process. */
let shown: RuntimeContext = {};

beforeEach(() => {
  shown = { sessionKey: "agent:main:session:s" };
  folder = temporaryFolder("skein-xray-");
  closers = [];
  requests = [];
});
afterEach(async () => {
  for (const close of closers.reverse()) await close();
  folder.remove();
});

type TakeXray = () => Promise<string>;
const text = (reply: string): Scripted => ({ content: [{ type: "text", text: reply }] });
const toolCall = (name: string, args: Record<string, unknown> = {}): ScriptedReply => ({
  content: [{ type: "toolCall", name, arguments: args }],
});
const [anthropic, , openai] = providers;
const nameOf = ({ provider, model }: TwinProvider) => `${provider}/${model}`;

/** Starts a twin of each provider. Requests to it wait until `takeXray` has shown the running session. */
async function startTwins(takeXray: TakeXray): Promise<Map<TwinProvider, GatedTwin>> {
  const gates = new Map<TwinProvider, GatedTwin>();
  for (const each of providers) {
    const gate = await startGatedTwin({ api: each.api }, async (body) => {
      requests.push({ body, xray: await takeXray().catch(String) });
    });
    closers.push(() => gate.close());
    gates.set(each, gate);
  }
  return gates;
}

const providerConfig = (gates: ReadonlyMap<TwinProvider, GatedTwin>, window = 200_000) => ({
  providers: Object.fromEntries(
    [...gates].map(([{ provider, model }, { url }]) => [
      provider,
      { baseUrl: url, apiKey: "any", models: { [model]: { contextWindow: window } } },
    ]),
  ),
});

const asYaml = (config: object) =>
  Object.entries(config)
    .map(([section, value]) => `${section}: ${JSON.stringify(value)}\n`)
    .join("");

/** A gateway in this process, and a command line that uses it. */
async function startGateway(config: object) {
  const takeXray: TakeXray = async () => {
    const { sessions } = await call("sessions.list", {});
    const [running, ...more] = sessions.filter(({ status }) => status === "running");
    if (running === undefined || more.length > 0) throw new Error("not one running session");
    const { out, err } = await skein("context", running.key, "--wire");
    return out === "" ? err : JSON.stringify(JSON.parse(out));
  };
  const gates = await startTwins(takeXray);
  const whole = { models: providerConfig(gates), ...config };
  const gateway = await wholeGateway({ folder, config: asYaml(whole) });
  closers.push(() => gateway.close());
  const skein = (...args: string[]) =>
    run(args, { cwd: folder.path, home: folder.path, env: { SKEIN_DIR: gateway.root } });
  const call = async <
    M extends "sessions.list" | "sessions.patch" | "sessions.context" | "agent" | "agent.wait",
  >(
    method: M,
    params: object,
  ) => {
    const { status, body } = await gateway.rpc(method, params);
    expect([status, body]).toEqual([200, expect.anything()]);
    return body as Result<M>;
  };
  return { gates, gateway, skein, call };
}

/** A Skein instance in this process with its own agents. */
async function startLibrary(config: object, options: SkeinOptions, window?: number) {
  const takeXray: TakeXray = async () => {
    const { wire } = await opened.xray(shown, { wire: true });
    return JSON.stringify(wire);
  };
  const gates = await startTwins(takeXray);
  const file = join(folder.path, "skein.yaml");
  writeFileSync(file, JSON.stringify({ models: providerConfig(gates, window), ...config }));
  const opened = await createSkein({ dir: join(folder.path, "root"), config: file, quiet: true, ...options });
  closers.push(() => opened.close());
  return { gates, skein: opened, session: opened.session({ sessionKey: "agent:main:session:s" }) };
}

const bodies = () => requests.map(({ body }) => body);
function expectSame(count: number): void {
  expect(requests.map(({ xray }) => xray)).toEqual(bodies());
  expect(requests).toHaveLength(count);
}

/** The fields with which each wire format requests thinking. */
function thinkingIn(model: string, level: "high" | "low"): object {
  const tokens = level === "high" ? 16_384 : 2048;
  const fields: Record<TwinProvider["provider"], object> = {
    anthropic: { thinking: { type: "enabled", budget_tokens: tokens } },
    google: { generationConfig: { thinkingConfig: { includeThoughts: true, thinkingBudget: tokens } } },
    openai: { reasoning: { effort: level } },
    local: { reasoning_effort: level },
    // Magistral has no thinking levels, so the output limit leaves room for its thinking.
    mistral: { max_tokens: 16_384 + tokens },
  };
  const [provider = ""] = model.split("/");
  return fields[provider as TwinProvider["provider"]];
}

describe("the X-ray of a session over a gateway is the request that its provider receives", () => {
  const settings: [string, object, { readonly says?: string; readonly thinks?: "high" | "low" }][] = [
    ["an agent without settings", { agents: { main: {} } }, {}],
    ["defaults.system", { defaults: { system: "You plan journeys." } }, { says: "You plan journeys." }],
    ["defaults.thinking", { defaults: { thinking: "high" } }, { thinks: "high" }],
    [
      "the agent's own system prompt, thinking and tools",
      { agents: { main: { system: "You garden.", thinking: "low", tools: { allow: ["sessions_list"] } } } },
      { says: "You garden.", thinks: "low" },
    ],
  ];
  test.each(providers.flatMap((provider) => settings.map((each) => [nameOf(provider), ...each] as const)))(
    "[XRW1] %s, %s",
    async (model, _, config, { says = "", thinks }) => {
      const { defaults = {}, ...rest } = config as { defaults?: object };
      const { gates, skein } = await startGateway({
        agents: { main: {} },
        ...rest,
        defaults: { ...defaults, model },
      });
      const gate = [...gates].find(([each]) => nameOf(each) === model)?.[1];
      const thought = { type: "thinking", thinking: "Which are there?" } as const;
      const first = toolCall("sessions_list", {});
      const begin = thinks === undefined ? first : { content: [thought, ...first.content] };
      gate?.twin.enqueue(begin, text("There is one."), text("Good night."));
      expect(await skein("send", "main", "Which sessions are there?")).toMatchObject({ exit: 0 });
      expect(await skein("send", "main", "Thank you")).toMatchObject({ exit: 0 });
      expectSame(3);
      for (const body of bodies()) {
        expect(body).toContain(says);
        if (thinks !== undefined) expect(JSON.parse(body)).toMatchObject(thinkingIn(model, thinks));
      }
    },
  );

  test("[XRW1] the block of a sub-agent", async () => {
    const { skein } = await startGateway({
      defaults: { model: nameOf(anthropic), system: "You plan journeys." },
    });
    expect(await skein("spawn", "Find the gardens of Kyoto")).toMatchObject({ exit: 0 });
    expectSame(requests.length);
    expect(bodies()[0]).toContain("Find the gardens of Kyoto");
    expect(JSON.parse(bodies()[0] ?? "").system[0].text).toMatch(/^You plan journeys\.\n\n./);
  });

  test("[XRW1] tools from an MCP server", async () => {
    const server = await startHttpToolServer();
    closers.push(() => server.close());
    const { gates, skein } = await startGateway({
      defaults: { model: nameOf(openai) },
      mcpServers: { notes: { url: server.url } },
    });
    gates.get(openai)?.twin.enqueue(toolCall("notes__echo", { say: "hello" }), text("It says hello."));
    expect(await skein("send", "main", "Say hello")).toMatchObject({ exit: 0 });
    expectSame(2);
    expect(bodies()[0]).toContain("notes__echo");
    expect(bodies()[1]).toContain("function_call_output");
  });

  test("[XRW2] the model, thinking and prompts of one run", async () => {
    const { call, skein } = await startGateway({
      defaults: { model: nameOf(anthropic), system: "You plan." },
    });
    const given = { model: nameOf(openai), thinking: "high", extraSystemPrompt: "It is Sunday." };
    const { runId } = await call("agent", {
      sessionKey: "main",
      message: "Hello",
      idempotencyKey: "one",
      ...given,
    });
    expect(await call("agent.wait", { runId, timeoutMs: 60_000 })).toMatchObject({ state: "ok" });
    await skein("send", "main", "And now without");
    expectSame(2);
    expect(JSON.parse(bodies()[0] ?? "")).toMatchObject({ model: "gpt-5", reasoning: { effort: "high" } });
    expect(bodies()[0]).toContain("You plan.\\n\\nIt is Sunday.");
    expect(JSON.parse(bodies()[1] ?? "")).toMatchObject({ model: "claude-sonnet-4-5" });
  });

  test("[XRW3] names the model of the next request after a switch", async () => {
    const { gates, call, skein } = await startGateway({
      defaults: { model: nameOf(anthropic), thinking: "high" },
    });
    gates.get(anthropic)?.twin.enqueue({
      content: [
        { type: "thinking", thinking: "A greeting." },
        { type: "text", text: "Hello, Ann." },
      ],
    });
    await skein("send", "main", "Hello");
    await call("sessions.patch", { key: "main", model: nameOf(openai) });
    expect(await call("sessions.context", { key: "main" })).toMatchObject({
      request: { provider: "openai", model: "gpt-5" },
    });
    await skein("send", "main", "Hello again");
    expectSame(2);
    expect(JSON.parse(bodies()[1] ?? "")).toMatchObject({ model: "gpt-5" });
  });
});

describe("the X-ray of a library session is the request that its provider receives", () => {
  const find = defineTool({
    name: "find",
    description: "Finds gardens.",
    parameters: { type: "object", properties: { where: { type: "string" } } },
    execute: () => "Ryoan-ji",
  });

  test("[XRW1] with hooks, custom tools and a schema for the answer", async () => {
    const hooks = new HookRegistry();
    let day = 0;
    hooks.on("before_prompt_build", ({ system }) => ({ system: `${system} It is day ${++day}.` }));
    hooks.on("before_agent_start", () => ({ prependContext: "The user is Ann." }));
    const agent = defineAgent({
      id: "main",
      model: nameOf(openai),
      system: "You plan journeys.",
      tools: [find],
      maxOutputTokens: 500,
    });
    const { gates, session } = await startLibrary({}, { agents: [agent], hooks });
    gates.get(openai)?.twin.enqueue(toolCall("find", { where: "Kyoto" }), text('{"garden":"Ryoan-ji"}'));
    const schema = { type: "object", properties: { garden: { type: "string" } } };
    const { output } = await session.send("Which garden?", { schema }).result;
    expect(output).toEqual({ garden: "Ryoan-ji" });
    expectSame(2);
    expect(bodies()[1]).toContain("You plan journeys. It is day 1.");
    expect(bodies()[1]).toContain("The user is Ann.");
  });

  test("[XRW2] with the system prompt and the tools of one run", async () => {
    const agent = defineAgent({ id: "main", model: nameOf(openai), system: "You plan.", tools: [find] });
    const { session, skein } = await startLibrary({}, { agents: [agent] });
    await session.send("Hello", { system: "You garden.", tools: ["find"], thinking: "low" }).result;
    expectSame(1);
    expect(JSON.parse(bodies()[0] ?? "")).toMatchObject({
      tools: [{ name: "find" }],
      reasoning: { effort: "low" },
    });
    expect(bodies()[0]).toContain("You garden.");
    const { request } = await skein.xray({ sessionKey: "agent:main:session:s" });
    expect(request).toMatchObject({ system: "You plan.", thinkingLevel: "off" });
    expect(request.tools?.length).toBeGreaterThan(1);
  });

  test("[XRW1] with old tool results pruned, from the second step of a turn on", async () => {
    const agent = defineAgent({ id: "main", model: nameOf(openai), tools: [find], deny: ["group:sessions"] });
    const pruning = { contextPruning: { mode: "cache-ttl", ttl: "5m" } };
    const { gates, session, skein } = await startLibrary(pruning, { agents: [agent] }, 30_000);
    const { sessionId } = await skein.store.sessions.create(
      { agentId: "main" },
      { key: "agent:main:session:s", cwd: folder.path },
    );
    const drafts = Array.from({ length: 8 }, (_, turn) => [
      { role: "user" as const, content: `Question ${turn}` },
      {
        ...assistantMessage(""),
        content: [{ type: "toolCall" as const, id: `c${turn}`, name: "find", arguments: {} }],
        stopReason: "toolUse" as const,
      },
      {
        role: "toolResult" as const,
        toolCallId: `c${turn}`,
        toolName: "find",
        content: [{ type: "text" as const, text: `${turn} garden `.repeat(1200) }],
        isError: false,
        timestamp: 2,
      },
      assistantMessage(`Answer ${turn}`),
    ]).flat();
    await skein.store.sessions.append(
      { agentId: "main" },
      sessionId,
      drafts.map((message) => ({ draft: { type: "message" as const, message } })),
    );
    gates.get(openai)?.twin.enqueue(toolCall("find"), text("Done."));
    await session.send("And now?").result;
    expectSame(2);
    for (const body of bodies()) expect(body).toContain("characters of an old tool result left out");
  });
});

describe("the X-ray is the request for every kind of session and every provider", () => {
  type Drafts = readonly (EntryDraft | object)[];
  interface Opened {
    readonly skein: Skein;
    readonly gate: GatedTwin | undefined;
    /** Appends messages and entries to the session being shown. */
    append(...drafts: Drafts): Promise<void>;
    send(message: string): Promise<unknown>;
  }
  const said = (content: unknown) => ({ role: "user", content, timestamp: 1 });
  const calledTool = [
    said("Read the plan"),
    {
      ...assistantMessage(""),
      content: [{ type: "toolCall", id: "c1", name: "retired_tool", arguments: { path: "plan-7" } }],
      stopReason: "toolUse",
    },
    {
      role: "toolResult",
      toolCallId: "c1",
      toolName: "retired_tool",
      content: [{ type: "text", text: "Depart at nine." }],
      isError: false,
      timestamp: 2,
    },
    assistantMessage("At nine."),
  ];

  /** The session's content before its last message, including a text that must be in the request. */
  const kinds: Record<string, (opened: Opened) => Promise<string>> = {
    "with images": async ({ append }) => {
      const image = { type: "image", mimeType: "image/png", data: imageData("png", 60, 40) };
      await append(said([{ type: "text", text: "The map" }, image]), assistantMessage("Seen."));
      return "The map";
    },
    "with a tool that is not offered now": async ({ append }) => {
      await append(...calledTool);
      return "Depart at nine.";
    },
    "with thinking": async ({ gate, send }) => {
      const thought = { type: "thinking", thinking: "A greeting." } as const;
      gate?.twin.enqueue({ content: [thought, { type: "text", text: "Hello, Ann." }] });
      await send("Hello");
      return "Hello, Ann.";
    },
    "with a compaction": async ({ skein, append }) => {
      await append(said("One"), assistantMessage("First"), said("Two"), assistantMessage("Second"));
      const { sessionId = "" } = (await skein.session(shown).record()) ?? {};
      const page = await skein.store.sessions.page({}, sessionId, { along: "branch", limit: 10 });
      const firstKeptEntryId = page?.entries[2]?.id ?? "";
      await append({ type: "compaction", summary: "They chose Kyoto.", firstKeptEntryId, tokensBefore: 9 });
      return "They chose Kyoto.";
    },
    "with custom and system entries": async ({ append }) => {
      await append(
        said("One"),
        assistantMessage("First"),
        { type: "custom_message", customType: "app.note", content: "It is Sunday.", display: true },
        { role: "system", content: "Be brief.", timestamp: 3 },
        { type: "custom", customType: "app.state", data: { page: 1 } },
      );
      return "It is Sunday.";
    },
    imported: async ({ skein }) => {
      const file = join(import.meta.dirname, "../golden/interchange/claude-code.jsonl");
      const dir = join(folder.path, "root");
      const where = { env: { SKEIN_DIR: dir }, cwd: folder.path, home: folder.path };
      expect(await run(["sessions", "import", file], where)).toMatchObject({ exit: 0 });
      const { sessions } = await skein.sessions.list();
      shown = { sessionKey: sessions[0]?.key ?? "" };
      return "Two headings differ.";
    },
    "of a group": async ({ skein }) => {
      shown = { userId: "team", sessionKey: "agent:main:desk:group:team" };
      const { runId } = await skein.receive({
        channel: "desk",
        group: "team",
        peer: "u1",
        peerName: "Ann",
        messageId: "m1",
        text: "Hello all",
      });
      await skein.ended(runId);
      return "Ann: Hello all";
    },
  };
  const corpus = providers.flatMap((provider) =>
    Object.entries(kinds).map(([kind, prepare]) => [nameOf(provider), kind, provider, prepare] as const),
  );

  test.each(corpus)("[XRW1] %s, a session %s", async (model, _, provider, prepare) => {
    const agent = defineAgent({ id: "main", model, system: "You plan journeys.", thinking: "low" });
    const settings = { channels: { desk: { user: "team" } } };
    const options = { agents: [agent], channels: [desk().channel] };
    const { gates, skein } = await startLibrary(settings, options);
    const send = (message: string) => skein.session(shown).send(message).result;
    const append = async (...drafts: Drafts) => {
      const { sessionId } = await skein.session(shown).open();
      const items = drafts.map((draft) => ({
        draft: ("role" in draft ? { type: "message", message: draft } : draft) as EntryDraft,
      }));
      await skein.store.sessions.append({}, sessionId, items);
    };
    const expected = await prepare({ skein, gate: gates.get(provider), append, send });
    await send("And now?");
    expectSame(requests.length);
    expect(bodies().at(-1)).toContain(expected);
    expect(bodies().at(-1)).toContain("And now?");
  });
});
