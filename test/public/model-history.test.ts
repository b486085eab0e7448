import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { guardedAppend } from "../../src/entry-store.ts";
import type { ScriptedReply, TemporaryFolder } from "../../src/entry-testing.ts";
import { startTwin, temporaryFolder } from "../../src/entry-testing.ts";
import type { MessageDraft } from "../../src/index.ts";
import { defineTool, HookRegistry } from "../../src/index.ts";
import { acpInside } from "../support/acp-client.ts";
import { run } from "../support/cli.ts";
import { usesDatabases } from "../support/empty-store.ts";
import type { TwinProvider } from "../support/twin-providers.ts";
import { providers } from "../support/twin-providers.ts";
import { closeTwinSkeins, openTwinSkein, sessionId } from "../support/twin-skein.ts";
import { imageData } from "../support/twins.ts";
import { signatureOf } from "../support/webhook-signature.ts";
import type { WholeGateway } from "../support/whole-gateway.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

afterEach(closeTwinSkeins);

const apis = providers.map(({ api }) => api);
const parameters = { type: "object" as const, properties: {} };
const current = defineTool({
  name: "current_tool",
  description: "Still offered.",
  parameters,
  execute: async () => "done",
});
const says = (text: string): ScriptedReply => ({ content: [{ type: "text", text }] });
const user = (content: string): MessageDraft => ({ role: "user", content, timestamp: 1 });
const answer = (content: unknown[], by: Partial<TwinProvider> = {}): MessageDraft =>
  ({
    role: "assistant",
    content,
    api: by.api ?? "anthropic-messages",
    provider: by.provider ?? "anthropic",
    model: by.model ?? "claude-sonnet-4-5",
    stopReason: "stop",
    usage: {
      input: 1,
      output: 1,
      cacheRead: 0,
      cacheWrite: 0,
      totalTokens: 2,
      cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
    },
    timestamp: 2,
  }) as unknown as MessageDraft;
const call = (name: string, id = "toolu_01") => ({
  type: "toolCall",
  id,
  name,
  arguments: { path: "plan-7.txt" },
});
const result = (toolName: string, text: string, more: object = {}): MessageDraft =>
  ({
    role: "toolResult",
    toolCallId: "toolu_01",
    toolName,
    content: [{ type: "text", text }],
    isError: false,
    timestamp: 3,
    ...more,
  }) as unknown as MessageDraft;

const long = (characters: number) => `${"word ".repeat(characters / 5)}LAST`;

const calledBefore = (name: string) => [
  user("Read the plan"),
  answer([call(name)]),
  result(name, "Depart at nine."),
  answer([{ type: "text", text: "At nine." }]),
];

describe("calls of tools that are not offered now", () => {
  test.each(apis)("[HKP1] %s gets the call and its result in its own form", async (api) => {
    const { append, send, body, twin } = await openTwinSkein(api, { agent: { tools: [current] } });
    await append(...calledBefore("retired_tool"));
    await send("And when do we return?");
    expect(twin.requests.map(({ refusal }) => refusal)).toEqual([null]);
    const sent = JSON.stringify(body());
    expect(sent).toContain('"retired_tool"');
    expect(sent).toContain("plan-7.txt");
    expect(sent).toContain("Depart at nine.");
  });

  test("[HKP1] the calls of an MCP server that is down stay", async () => {
    const config = 'mcpServers: { notes: { url: "http://127.0.0.1:9/mcp" } }\n';
    const { append, send, body } = await openTwinSkein("anthropic-messages", { config });
    await append(...calledBefore("notes__find"));
    await send("And when do we return?");
    expect(body().tools).not.toContainEqual(expect.objectContaining({ name: "notes__find" }));
    expect(JSON.stringify(body().messages)).toContain('"notes__find"');
    expect(JSON.stringify(body().messages)).toContain("Depart at nine.");
  });

  test.each(apis)("[HKP1] %s gets the calls of a tool that the app has since renamed", async (api) => {
    const calling = {
      content: [
        { type: "toolCall", id: "call_000001", name: "read_plan", arguments: { path: "plan-7.txt" } },
      ],
    } as const;
    const named = (name: string) =>
      defineTool({ name, description: "Reads a plan.", parameters, execute: async () => "Depart at nine." });
    const before = await openTwinSkein(api, {
      agent: { tools: [named("read_plan")] },
      replies: [calling, says("At nine.")],
    });
    await before.send("Read the plan");
    await before.skein.close();
    const { send, body, twin } = await openTwinSkein(api, {
      agent: { tools: [named("open_plan")] },
      options: { dir: before.dir },
    });
    await send("And when do we return?");
    expect(twin.requests.map(({ refusal }) => refusal)).toEqual([null]);
    expect(JSON.stringify(body().tools)).toContain('"open_plan"');
    expect(JSON.stringify(body().tools)).not.toContain('"read_plan"');
    const sent = JSON.stringify(body());
    for (const part of ['"read_plan"', "plan-7.txt", "Depart at nine."]) expect(sent).toContain(part);
  });

  test.each(["anthropic-messages", "openai-responses", "google-generative-ai"] as const)(
    "[HKP1] %s gets the calls of an imported Claude Code transcript",
    async (api) => {
      const { skein, body, dir, twin } = await openTwinSkein(api, { agent: { tools: [current] } });
      const file = join(import.meta.dirname, "../golden/interchange/claude-code.jsonl");
      const surroundings = { env: { SKEIN_DIR: dir }, cwd: dir, home: dir };
      const { exit } = await run(["sessions", "import", file, "--label", "shop"], surroundings);
      expect(exit).toBe(0);
      const page = await skein.store.sessions.list({ agentId: "main" }, {});
      const imported = page.sessions[0]?.sessionId ?? "";
      await skein.session({ sessionId: imported }).send("Go on").result;
      expect(twin.requests.map(({ refusal }) => refusal)).toEqual([null]);
      const sent = JSON.stringify(body());
      for (const part of ['"Task"', "Compare the texts", "Two headings differ."])
        expect(sent).toContain(part);
    },
  );

  test("[HKP2] a provider that refuses calls without tools gets call and result as text", async () => {
    const agent = { tools: [], deny: ["*"] };
    const { append, send, body, twin } = await openTwinSkein("anthropic-messages", { agent });
    await append(...calledBefore("retired_tool"));
    await send("And when do we return?");
    expect(twin.requests.map(({ refusal }) => refusal)).toEqual([null]);
    expect(body().tools).toBeUndefined();
    const sent = JSON.stringify(body());
    expect(sent).not.toContain("tool_use");
    for (const part of ["retired_tool", "plan-7.txt", "Depart at nine."]) expect(sent).toContain(part);
  });

  test("[TR2] a call that can never be valid is dropped, and listed by the X-ray", async () => {
    const { append, send, body, dir } = await openTwinSkein("anthropic-messages", {
      agent: { tools: [current] },
    });
    await append(...calledBefore("has space"), ...calledBefore("retired_tool"));
    await send("And when do we return?");
    expect(JSON.stringify(body())).not.toContain("has space");
    const printed = await run(["context", sessionId, "--json", "--model", "anthropic/claude-sonnet-4-5"], {
      env: { SKEIN_DIR: dir },
      cwd: dir,
      home: dir,
    });
    const { changes } = JSON.parse(printed.out);
    const removed = changes.filter(({ kind }: { kind: string }) => kind === "call_removed");
    expect(removed).toHaveLength(1);
    expect(removed[0].note).toContain("has space");
  });
});

describe("an answer whose calls are all invalid", () => {
  const invalid: ScriptedReply = {
    content: [
      { type: "toolCall", name: "read file", arguments: { path: "a" } },
      { type: "toolCall", name: "delete!", arguments: {} },
    ],
  };
  const options = { agent: { tools: [current] }, replies: [invalid, says("Corrected.")] };

  test("[HKP4] the model learns which calls and why, and the turn continues", async () => {
    const { send, body, skein } = await openTwinSkein("openai-completions", options);
    expect(await send("Read it")).toBe("Corrected.");
    const sent = JSON.stringify(body());
    expect(sent).toContain("read file");
    expect(sent).toContain("delete!");
    const page = await skein.store.sessions.page({ agentId: "main" }, sessionId, {
      along: "branch",
      limit: 50,
    });
    const told = page?.entries.filter(({ type }) => type === "custom_message") ?? [];
    expect(told).toHaveLength(1);
    expect(told[0]).toMatchObject({ customType: "skein.invalid_calls" });
    expect(JSON.stringify(told[0])).toMatch(/read file.*name does not match.*delete!/);
  });

  test("[HKP5] a change by the guard is an event, a log line and a line of `runs show`", async () => {
    const opened = await openTwinSkein("openai-completions", {
      ...options,
      config: "logging: { file: skein.log }\n",
    });
    const { skein, dir, events } = opened;
    const { runId } = await skein.session({ sessionId }).send("Read it").result;
    const notes = events.filter(({ type }) => type === "run.note");
    expect(notes).toMatchObject([
      { runId, kind: "call_removed", note: expect.stringContaining("read file") },
      { runId, kind: "call_removed", note: expect.stringContaining("delete!") },
    ]);
    const surroundings = { env: { SKEIN_DIR: dir }, cwd: dir, home: dir };
    const shown = await run(["runs", "show", runId], surroundings);
    expect(shown.out).toMatch(/changed .*read file/);
    const json = JSON.parse((await run(["runs", "show", runId, "--json"], surroundings)).out);
    expect(json.notes).toMatchObject([{ kind: "call_removed" }, { kind: "call_removed" }]);
    expect(readFileSync(join(dir, "..", "skein.log"), "utf8")).toContain("read file");
  });
});

test("[HKP5] an unread image that a message names is an event and a line of `runs show`", async () => {
  const { skein, dir, events } = await openTwinSkein("anthropic-messages");
  const { runId } = await skein.session({ sessionId }).send("Look at gone.png", { origin: "console" }).result;
  const leftOut = {
    kind: "image_left_out",
    note: expect.stringContaining("gone.png was not attached: no such file exists"),
  };
  expect(events.filter(({ type }) => type === "run.note")).toMatchObject([{ runId, ...leftOut }]);
  const surroundings = { env: { SKEIN_DIR: dir }, cwd: dir, home: dir };
  const json = JSON.parse((await run(["runs", "show", runId, "--json"], surroundings)).out);
  expect(json.notes).toMatchObject([leftOut]);
  expect((await run(["runs", "show", runId], surroundings)).out).toMatch(
    /changed +gone\.png was not attached/,
  );
});

describe("long messages", () => {
  test("[HKP6] user text over the limit of a tool result reaches the model completely", async () => {
    const { send, body } = await openTwinSkein("google-generative-ai");
    const text = long(500_000);
    await send(text);
    const contents = body().contents as { parts: { text: string }[] }[];
    expect(contents.at(-1)?.parts[0]?.text).toBe(text);
  });

  test("[HKP7] user text larger than the window is refused with both numbers", async () => {
    const { send, twin, skein } = await openTwinSkein("anthropic-messages");
    await expect(send(long(2_000_000))).rejects.toThrow(/about [\d,]{6,} tokens.* 200,?000/);
    expect(twin.requests).toEqual([]);
    expect(await skein.store.sessions.get({ agentId: "main" }, sessionId)).toBeNull();
  });
});

describe("user text larger than the window", () => {
  const secret = "a-secret-of-the-desk-channel";
  const message = long(40_000);
  /** The text that the sender reads. It is the same for every entry point. */
  const refusal = /about (\d,?)+ tokens.* 8,?000/s;
  interface Place {
    readonly gateway: WholeGateway;
    readonly folder: TemporaryFolder;
  }
  const rpc =
    (method: string, to: object) =>
    async ({ gateway }: Place) => {
      const { status, body } = await gateway.rpc(method, { ...to, message, idempotencyKey: "one" });
      expect(status).toBe(413);
      return JSON.stringify(body);
    };
  const doors: Record<string, (place: Place) => Promise<string>> = {
    "chat.send": rpc("chat.send", { sessionKey: "main" }),
    agent: rpc("agent", { sessionKey: "main" }),
    "sessions.send": rpc("sessions.send", { key: "main" }),
    "skein send, through the gateway": async ({ gateway, folder }) => {
      const where = { cwd: folder.path, home: folder.path, env: { SKEIN_DIR: gateway.root } };
      const { exit, err } = await run(["send", "main", message], where);
      expect(exit).toBe(1);
      return err;
    },
    "skein send, on the folder": async ({ gateway, folder }) => {
      await gateway.stop();
      const where = { cwd: folder.path, home: folder.path, env: { SKEIN_DIR: gateway.root } };
      const { exit, err } = await run(["send", "main", message], where);
      expect(exit).toBe(1);
      return err;
    },
    "a webhook": async ({ gateway }) => {
      const body = JSON.stringify({ text: message, peer: "ann" });
      const timestamp = String(Math.floor(Date.now() / 1000));
      const answer = await fetch(`${gateway.url}/channels/desk/inbound`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          "x-skein-timestamp": timestamp,
          "x-skein-message-id": "m1",
          "x-skein-signature": signatureOf(secret, { timestamp, messageId: "m1", body }),
        },
        body,
      });
      expect(answer.status).toBe(413);
      return answer.text();
    },
    "skein acp": async ({ gateway, folder }) => {
      const { editor, leave } = await acpInside(folder.path, ["--dir", gateway.root]);
      const id = await editor.create(folder.path);
      const error = await editor.prompt(id, message).then(
        () => null,
        (thrown: unknown) => thrown as Error & { data?: unknown },
      );
      await leave();
      return `${error?.message} ${JSON.stringify(error?.data)}`;
    },
  };

  // Without a gateway, commands do not use a database.
  const usable = Object.entries(doors).filter(
    ([name]) => !usesDatabases() || !name.endsWith("on the folder"),
  );

  test.each(usable)("[HKP7] is refused with both numbers: %s", async (_, send) => {
    const folder = temporaryFolder("skein-large-");
    const twin = await startTwin({ api: "openai-completions" });
    const config = `models: { providers: { local: { baseUrl: "${twin.url}", models: { qwen3: { contextWindow: 8000 } } } } }
defaults: { model: local/qwen3 }
channels: { desk: { type: webhook, secret: ${secret} } }
`;
    const gateway = await wholeGateway({ folder, config });
    try {
      expect(await send({ gateway, folder })).toMatch(refusal);
      expect(twin.requests).toEqual([]);
    } finally {
      await gateway.close();
      await twin.close();
      folder.remove();
    }
  });
});

/** An image that is large enough to be stored as a blob. */
const image = () => {
  const data = Buffer.concat([Buffer.from(imageData("png", 600, 400), "base64"), Buffer.alloc(1 << 20)]);
  return { type: "image" as const, mimeType: "image/png", data: data.toString("base64") };
};

describe("a message that begins with a stored image", () => {
  /** Returns the content of the last request's first user message, with images shortened. */
  const firstMessage = ({ messages }: Record<string, unknown>) => {
    const [{ content }] = messages as [{ content: { type: string; text?: string }[] }];
    return content.map(({ type, text }) => text ?? type);
  };

  test("[TLK11] the model reads the sender in a group", async () => {
    const { skein, body } = await openTwinSkein("anthropic-messages");
    const from = { channel: "desk", peer: "u1", peerName: "Ann", group: "G1" };
    const { runId } = await skein.receive({ ...from, messageId: "m1", text: "", images: [image()] });
    expect(await skein.ended(runId)).toMatchObject({ outcome: { state: "ok" } });
    expect(firstMessage(body())).toEqual(["Ann:", "image"]);
  });

  test("[TR4] the model reads the source session", async () => {
    const { skein, append, send, body } = await openTwinSkein("anthropic-messages");
    await append({ type: "session_info", name: "Trip" });
    const content = [image(), { type: "text" as const, text: "Look" }];
    const provenance = { kind: "inter_session", sourceSessionKey: "agent:b:main" };
    const scope = { agentId: "main" };
    await guardedAppend({ store: skein.store }, scope, sessionId, { role: "user", content, provenance });
    await send("What is it?");
    expect(firstMessage(body()).slice(0, 3)).toEqual([
      "[Inter-session message] sourceSession=agent:b:main",
      "image",
      "```\nLook\n```",
    ]);
  });

  test("[XRW6] the model reads the context that hooks prepend", async () => {
    const hooks = new HookRegistry();
    hooks.on("before_agent_start", () => ({ prependContext: "The user is Ann." }));
    const { skein, body } = await openTwinSkein("anthropic-messages", { options: { hooks } });
    await skein.session({ sessionId }).send("", { images: [image()] }).result;
    expect(firstMessage(body())).toEqual(["The user is Ann.", "image"]);
  });
});

describe("the byte budget", () => {
  const details = { details: { raw: "x".repeat(1 << 20) } };
  const custom = { type: "custom", customType: "app.state", data: { raw: "x".repeat(3 << 20) } } as const;
  const pictures = [1, 2, 3].flatMap((at): MessageDraft[] => [
    {
      role: "user",
      content: [{ type: "text", text: `Picture ${at}` }, image()],
      timestamp: at,
    } as MessageDraft,
    answer([{ type: "text", text: "Seen." }]),
  ]);

  test.each([
    [
      "two tool results with 1 MB of details",
      [
        user("Read the plan"),
        answer([call("current_tool"), call("current_tool", "toolu_02")]),
        result("current_tool", "Depart at nine.", details),
        result("current_tool", "Return at six.", { ...details, toolCallId: "toolu_02" }),
        answer([{ type: "text", text: "Done." }]),
      ],
    ],
    ["three inline images", [user("Read the plan"), ...pictures]],
    ["a custom entry of 3 MB", [user("Read the plan"), answer([{ type: "text", text: "Done." }]), custom]],
  ])("[HKP8] a session continues after %s", async (_, drafts) => {
    const { append, send, body } = await openTwinSkein("anthropic-messages", {
      agent: { tools: [current] },
      replies: [says("Onward.")],
    });
    await append(...(drafts as MessageDraft[]));
    expect(await send("Go on")).toBe("Onward.");
    expect(JSON.stringify(body())).toContain("Read the plan");
  });

  test("[HKP8] a session continues after three inline images from sessions import", async () => {
    const { skein, dir, body } = await openTwinSkein("anthropic-messages", { replies: [says("Onward.")] });
    const folder = dirname(dir);
    const timestamp = "2026-01-02T03:04:05.000Z";
    const entries = [user("Read the plan"), answer([{ type: "text", text: "Read." }]), ...pictures].map(
      (message, at) => ({
        type: "message",
        id: `e${at}`,
        parentId: at === 0 ? null : `e${at - 1}`,
        timestamp,
        message,
      }),
    );
    const header = { type: "session", version: 3, id: "imported", timestamp, cwd: folder };
    const file = join(folder, "imported.jsonl");
    writeFileSync(file, [header, ...entries].map((line) => `${JSON.stringify(line)}\n`).join(""));
    const { exit, err } = await run(["sessions", "import", file], {
      env: { SKEIN_DIR: dir },
      cwd: folder,
      home: folder,
    });
    expect([exit, err]).toEqual([0, expect.any(String)]);
    const { reply } = await skein.session({ sessionId: "imported" }).send("Go on").result;
    expect(reply).toBe("Onward.");
    expect(JSON.stringify(body())).toContain("Read the plan");
    expect(JSON.stringify(body())).toContain("Picture 3");
  });
});
