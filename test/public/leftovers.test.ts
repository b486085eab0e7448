import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import type { Socket } from "node:net";
import { connect as connectSocket } from "node:net";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { SkeinClient } from "../../src/entry-client.ts";
import { connect } from "../../src/entry-client.ts";
import { createStore } from "../../src/entry-store.ts";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import type { Skein } from "../../src/index.ts";
import { createSkein } from "../../src/index.ts";
import { closeAfterEach, lines, skeinWith } from "../support/acp/opened.ts";
import { run } from "../support/cli.ts";
import { eventFrame, GatewayPeer, goodToken } from "../support/gateway-peer.ts";
import { supportProgram } from "../support/programs.ts";
import type { StandIn, StandInReply } from "../support/provider-stand-in.ts";
import { startStandIn } from "../support/provider-stand-in.ts";
import { imageData } from "../support/twins.ts";
import { signatureOf } from "../support/webhook-signature.ts";
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

/** Does not match any provider's key format, so only its value identifies it. */
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
  test("listed prices have an address and a date, configured ones replace them, others are unknown", async () => {
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

describe("while a body or frame of 24 MB is parsed, another connection's call is answered", () => {
  const size = 24_000_000;
  const contents: readonly (readonly [string, () => unknown])[] = [
    [
      "many small objects",
      () => Array.from({ length: 57_000 }, (_, index) => ({ index, text: "x".repeat(400) })),
    ],
    ["one long string", () => "x".repeat(size - 100)],
    ["one long string of quotes", () => '"'.repeat(size / 2 - 100)],
  ];

  /** The gateway's side of the connection that `open` creates. */
  async function withServerSide<T>(open: () => Promise<T>): Promise<{ opened: T; server: Socket }> {
    const accepted = Promise.withResolvers<Socket>();
    const take = (message: unknown) => accepted.resolve((message as { socket: Socket }).socket);
    subscribe("net.server.socket", take);
    try {
      const opened = await open();
      return { opened, server: await accepted.promise };
    } finally {
      unsubscribe("net.server.socket", take);
    }
  }

  /**
   * Waits until the gateway has read the last byte. It parses, or starts to parse, in the same tick of the event loop.
   */
  async function untilRead(server: Socket, bytes: number): Promise<void> {
    while (server.bytesRead < bytes) await new Promise((resolve) => setImmediate(resolve));
  }

  test.each(contents)("over HTTP: %s", async (_, content) => {
    const gateway = await wholeGateway();
    const client = await gateway.client();
    const body = JSON.stringify({ pad: content() });
    const { hostname, port } = new URL(gateway.url);
    const socket = connectSocket(Number(port), hostname);
    try {
      const { server } = await withServerSide(() => once(socket, "connect"));
      const head = `POST /rpc/models.list HTTP/1.1\r\nhost: ${hostname}:${port}\r\nauthorization: Bearer ${gateway.admin}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
      const order: string[] = [];
      const refused = once(socket, "data").then(([data]) => {
        order.push("large");
        return String(data);
      });
      socket.write(head + body);
      await untilRead(server, head.length + body.length);
      await client.call("models.list", {});
      order.push("small");
      expect(await refused).toMatch(/^HTTP\/1\.1 400 /);
      expect(order).toEqual(["small", "large"]);
    } finally {
      socket.destroy();
      await gateway.close();
    }
  });

  test.each(contents)("over a socket: %s", async (_, content) => {
    const gateway = await wholeGateway();
    const client = await gateway.client();
    try {
      const { opened: sender, server } = await withServerSide(() => gateway.client());
      const before = server.bytesRead;
      const params = { pad: content() };
      const order: string[] = [];
      const refused = sender.call("models.list", params as never).catch((error: unknown) => {
        order.push("large");
        return error;
      });
      await untilRead(server, before + JSON.stringify(params).length);
      await client.call("models.list", {});
      order.push("small");
      expect(await refused).toMatchObject({ code: "invalid_request" });
      expect(order).toEqual(["small", "large"]);
    } finally {
      await gateway.close();
    }
  });
});

describe("[OVF12] optional packages are not installed by default, and the error explains how to add one", () => {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  const packages = JSON.parse(text) as Record<string, Record<string, unknown>>;
  const { dependencies, optionalDependencies = {}, peerDependencies, peerDependenciesMeta } = packages;
  const installed = Object.keys({ ...dependencies, ...optionalDependencies });
  const optional = Object.keys(peerDependencies ?? {});

  test.each(optional)("%s", (name) => {
    expect(installed).not.toContain(name);
    expect(peerDependenciesMeta).toHaveProperty([name], { optional: true });
  });

  test("only the OpenTelemetry API, without an SDK and without sending anything, is part of Skein", () => {
    expect(installed.filter((name) => name.startsWith("@opentelemetry/"))).toEqual(["@opentelemetry/api"]);
    const lock = JSON.parse(readFileSync(new URL("../../package-lock.json", import.meta.url), "utf8")) as {
      packages: Record<string, { dev?: boolean }>;
    };
    const resolved = Object.entries(lock.packages).filter(
      ([path, { dev }]) => /@opentelemetry\/|sharp/.test(path) && dev !== true,
    );
    expect(resolved.map(([path]) => path)).toEqual(["node_modules/@opentelemetry/api"]);
    const needed = ["exporter-trace-otlp-http", "resources", "sdk-trace-base"].map(
      (name) => `@opentelemetry/${name}`,
    );
    expect(optional).toEqual(expect.arrayContaining([...needed, "pg", "sharp"]));
  });

  test("an image that must be shrunk: the request has the install command in its place", async () => {
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

  test("spans to a collector: opening fails with the install command", async () => {
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

describe("a message of many megabytes is not parsed in one piece", () => {
  const large = { pad: Array.from({ length: 50_000 }, (_, index) => ({ index, text: "x".repeat(400) })) };
  const mebi = 1024 * 1024;

  /** The longest text passed to JSON.parse during this time. */
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

  describe("by the gateway", () => {
    test("over a socket, and a later frame is answered after it", async () => {
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
        expect(longest).toBeLessThan(mebi);
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
        expect(longest).toBeLessThan(mebi);
      } finally {
        await gateway.close();
      }
    });

    test("to a webhook", async () => {
      const secret = "a-secret-of-the-desk-channel";
      const gateway = await wholeGateway({
        config: `channels: { desk: { type: webhook, secret: ${secret} } }\n`,
      });
      try {
        const body = JSON.stringify({ text: "Hello", peer: "ann", ...large });
        const timestamp = String(Math.floor(Date.now() / 1000));
        const { longest, value } = await longestParse(() =>
          fetch(`${gateway.url}/channels/desk/inbound`, {
            method: "POST",
            headers: {
              "content-type": "application/json",
              "x-skein-timestamp": timestamp,
              "x-skein-message-id": "m1",
              "x-skein-signature": signatureOf(secret, { timestamp, messageId: "m1", body }),
            },
            body,
          }),
        );
        expect(value.status).toBe(400);
        expect(await value.json()).toMatchObject({
          code: "invalid_arguments",
          problems: [{ path: "pad" }],
        });
        expect(longest).toBeLessThan(mebi);
      } finally {
        await gateway.close();
      }
    });

    test.each([
      ["revision 2025-11-25", {}, "}", -32000],
      ["revision 2026-07-28", { "io.modelcontextprotocol/protocolVersion": "2026-07-28" }, "}", -32602],
      ["no revision, cut off", {}, "", -32700],
    ])("to /mcp, of %s", async (_revision, meta, end, code) => {
      const gateway = await wholeGateway();
      try {
        const params = { name: "agents_list", arguments: {}, _meta: meta, ...large };
        const whole = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
        const { longest, value } = await longestParse(() =>
          fetch(`${gateway.url}/mcp`, {
            method: "POST",
            headers: {
              authorization: `Bearer ${gateway.admin}`,
              accept: "application/json, text/event-stream",
              "content-type": "application/json",
            },
            body: whole.slice(0, -1) + end,
          }),
        );
        // Neither request started with a handshake.
        expect(value.status).toBe(400);
        const { error } = (await value.json()) as { error: { code: number } };
        expect(error.code).toBe(code);
        expect(longest).toBeLessThan(mebi);
      } finally {
        await gateway.close();
      }
    });
  });

  describe("by skein/client", () => {
    let peer: GatewayPeer;
    let client: SkeinClient;
    /** The arrival of the first large frame and the number of event loop ticks since then. */
    let seen: { turns: number; isOver: boolean; readonly arrival: PromiseWithResolvers<void> };

    /** Starts counting before the client reads the frame. */
    class CountedSocket extends WebSocket {
      constructor(url: string) {
        super(url);
        const mine = seen;
        this.addEventListener("message", ({ data }) => {
          if (String(data).length < mebi) return;
          mine.arrival.resolve();
          setImmediate(function count() {
            mine.turns += 1;
            if (!mine.isOver) setImmediate(count);
          });
        });
      }
    }

    beforeEach(async () => {
      seen = { turns: 0, isOver: false, arrival: Promise.withResolvers() };
      peer = new GatewayPeer();
      await peer.listen();
    });
    afterEach(async () => {
      seen.isOver = true;
      await client.close();
      await peer.close();
    });

    const open = async (url = peer.url, token = goodToken) => {
      client = await connect(url, { token, WebSocket: CountedSocket, reconnect: false });
    };

    test("a response of a gateway", async () => {
      const dir = join(home.path, "root");
      skein = await createSkein({ dir, config: null, env: {}, quiet: true });
      const session = skein.session({ sessionId: "long" });
      for (let count = 0; count < 25; count++)
        await session.append([{ role: "user", content: `${'"quoted" '.repeat(40_000)}` }]);
      await skein.close();
      skein = null;
      const gateway = await wholeGateway({ folder: home });
      try {
        await open(gateway.url, gateway.admin);
        const { longest, value } = await longestParse(() =>
          client.call("sessions.export", { key: "agent:main:session:long", format: "jsonl" }),
        );
        expect(value.content?.length).toBeGreaterThan(8 * mebi);
        expect(seen.turns).toBeGreaterThan(10);
        expect(longest).toBeLessThan(mebi);
      } finally {
        await client.close();
        await gateway.close();
      }
    });

    test("a response or event after a long one is delivered after it", async () => {
      await open();
      const stream = client.events({});
      await stream.ready;
      const [calls, events] = [peer.asked("sessions.list"), [] as number[]];
      expect(calls).toEqual([]);
      for (const socket of peer.sockets) {
        socket.send(eventFrame("run.ended", 1, large));
        socket.send(eventFrame("run.ended", 2));
      }
      const { longest } = await longestParse(async () => {
        for await (const { seq } of stream) {
          events.push(seq);
          if (seq === 2) break;
        }
      });
      expect(events).toEqual([1, 2]);
      expect(longest).toBeLessThan(mebi);

      peer.answer = ({ method, ok }) => (method === "models.list" ? ok(large) : ok({}));
      const order: string[] = [];
      await Promise.all(
        (["models.list", "agents.list"] as const).map((method) =>
          client.call(method, {}).then(() => void order.push(method)),
        ),
      );
      expect(order).toEqual(["models.list", "agents.list"]);
      expect(seen.turns).toBeGreaterThan(10);
    });

    test("a response that arrived before the socket was closed is returned", async () => {
      await open();
      peer.answer = ({ ok, socket }) => {
        ok(large);
        socket.close(1001);
      };
      const { pad } = (await client.call("models.list", {})) as unknown as typeof large;
      expect(pad.at(-1)).toEqual(large.pad.at(-1));
    });

    test("a client that is closed meanwhile rejects the call, and stops reading", async () => {
      await open();
      peer.answer = ({ ok }) => ok(large);
      const call = client.call("models.list", {}).then(
        () => "answered",
        (error: unknown) => (error as { code: string }).code,
      );
      await seen.arrival.promise;
      await client.close();
      expect(await call).toBe("unavailable");
    });

    test("a long invalid frame breaks the connection like a short one", async () => {
      await open();
      peer.answer = ({ id, socket }) => {
        const text = JSON.stringify({ type: "res", id, ok: true, payload: large });
        socket.send(text.slice(0, -1));
      };
      await expect(client.call("models.list", {})).rejects.toMatchObject({ code: "unavailable" });
    });
  });

  describe("by a process on a pipe", () => {
    closeAfterEach();

    test("an update of an ACP agent, and later updates follow it", async () => {
      const acp = await skeinWith({ script: { turns: [[{ longLine: 12 * mebi }, { say: "Behind it." }]] } });
      const session = await acp.session();
      const { longest, value } = await longestParse(() => acp.say(session, "Go"));
      expect(value.outcome?.state).toBe("ok");
      expect((await lines(acp, session)).at(-1)?.slice(-13)).toBe("xxxBehind it.");
      expect(longest).toBeLessThan(mebi);
    });

    test("messages of an ACP agent from before its end are written", async () => {
      const acp = await skeinWith({ script: { turns: [[{ longLine: 12 * mebi }, { exit: 3 }]] } });
      const session = await acp.session();
      const { longest, value } = await longestParse(() => acp.say(session, "Go"));
      expect(value.outcome).toMatchObject({ state: "error", code: "acp_failed" });
      expect((await lines(acp, session)).at(-1)?.slice(0, 100)).toContain("xxx");
      expect(longest).toBeLessThan(mebi);
    });

    async function openWithServer() {
      const config = {
        mcpServers: { shop: { command: process.execPath, args: [supportProgram("mcp-stdio")] } },
        defaults: { model: "rehearsal/basic" },
      };
      skein = await createSkein({ memory: true, config, env: {}, quiet: true });
      await skein.session({ sessionId: "s" }).send("Hello").result;
      return skein;
    }

    test("a result of an MCP server, and a later one follows it", async () => {
      const opened = await openWithServer();
      const order: number[] = [];
      const { longest, value } = await longestParse(() =>
        Promise.all(
          [10 * mebi, 1].map(async (length) => {
            const { isError } = await opened.invokeTool("shop__long", { length }, { sessionId: "s" });
            order.push(length);
            return isError;
          }),
        ),
      );
      expect(value).toEqual([false, false]);
      expect(order).toEqual([10 * mebi, 1]);
      expect(longest).toBeLessThan(mebi);
    });

    test("the result of an MCP server that exits afterwards is returned", async () => {
      const opened = await openWithServer();
      const args = { length: 10 * mebi, isLast: true };
      const { longest, value } = await longestParse(() =>
        opened.invokeTool("shop__long", args, { sessionId: "s" }),
      );
      expect(value.isError).toBe(false);
      expect(longest).toBeLessThan(mebi);
    });

    /** Returns the lines that a command prints in response to its input, up to a given number. */
    async function speak(command: string, messages: readonly object[], count: number) {
      const input = new PassThrough();
      const answers: string[] = [];
      const { promise: answered, resolve } = Promise.withResolvers<void>();
      const ended = run([command, "--dir", join(home.path, "root")], {
        cwd: home.path,
        input: () => ({ stream: input, typed: false }),
        out: (text) => {
          answers.push(...text.split("\n").filter(Boolean));
          if (answers.length >= count) resolve();
        },
      });
      for (const message of messages) input.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
      await Promise.race([answered, ended]);
      input.end();
      const { exit } = await ended;
      return { exit, answers: answers.map((text) => JSON.parse(text) as { id: number; error?: object }) };
    }

    test("a message of an editor, and a later one is answered after it", async () => {
      const initialize = { protocolVersion: 1, clientCapabilities: {} };
      const { longest, value } = await longestParse(() =>
        speak(
          "acp",
          [
            { id: 0, method: "initialize", params: initialize },
            { id: 1, method: "nobody/knows", params: large },
            { id: 2, method: "nobody/knows" },
          ],
          3,
        ),
      );
      expect(value).toMatchObject({
        exit: 0,
        answers: [{ id: 0 }, { id: 1, error: { code: -32601 } }, { id: 2, error: { code: -32601 } }],
      });
      expect(longest).toBeLessThan(mebi);
    });

    test("a message of an MCP client, and a later one is answered after it", async () => {
      const clientInfo = { name: "test", version: "1" };
      const initialize = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo };
      const { longest, value } = await longestParse(() =>
        speak(
          "mcp",
          [
            { id: 0, method: "initialize", params: initialize },
            { method: "notifications/initialized" },
            { id: 1, method: "ping", params: { _meta: large } },
            { id: 2, method: "ping" },
          ],
          3,
        ),
      );
      expect(value).toMatchObject({ exit: 0, answers: [{ id: 0 }, { id: 1 }, { id: 2 }] });
      expect(longest).toBeLessThan(mebi);
    });
  });
});

test.runIf(process.platform === "linux")("a store that cannot be opened leaves no file open", async () => {
  const dir = home.path;
  const openFiles = () => {
    const files = readdirSync("/proc/self/fd").map((fd) => {
      try {
        return readlinkSync(join("/proc/self/fd", fd));
      } catch {
        return "closed meanwhile";
      }
    });
    return files.filter((file) => file.startsWith(dir));
  };
  const store = await createStore({ dir });
  await store.sessions.create({ agentId: "main" }, { key: "agent:main:main", cwd: "/" });
  await store.close();
  rmSync(join(dir, "index.db"));
  const report = () => {
    throw new Error("the caller's mistake");
  };
  await expect(createStore({ dir, report })).rejects.toThrow("the caller's mistake");
  expect(openFiles()).toEqual([]);
});
