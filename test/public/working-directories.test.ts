import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import type { Server } from "node:http";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join, relative } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import type { Skein, SkeinOptions } from "../../src/index.ts";
import { createSkein, defineAgent, defineTool } from "../../src/index.ts";
import { acpInside } from "../support/acp-client.ts";
import { run as runCommand } from "../support/cli.ts";
import { connected } from "../support/mcp-client.ts";
import { signatureOf } from "../support/webhook-signature.ts";
import type { WholeGateway } from "../support/whole-gateway.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

const secret = "a secret of sixteen bytes and more";
const channels = `channels: { desk: { type: webhook, secret: "${secret}", url: "http://127.0.0.1:9/", users: { "17": ann, "18": bob } } }\n`;

/** Runs a command in this process, from a given folder, on a gateway's root folder. */
async function cli(home: string, ...args: readonly string[]): Promise<Record<string, unknown>> {
  const place = { cwd: home, env: {}, home };
  const { out, err, exit } = await runCommand([...args, "--json", "--dir", join(home, "root")], place);
  expect({ exit, err }).toEqual({ exit: 0, err: "" });
  return JSON.parse(out) as Record<string, unknown>;
}

/** Returns a session's working directory as an operator sees it. */
async function cwdIn(gateway: WholeGateway, key: string, userId?: string): Promise<string> {
  const { status, body } = await gateway.rpc("sessions.get", {
    key,
    ...(userId === undefined ? {} : { userId }),
  });
  expect({ status, body }).toMatchObject({ status: 200 });
  return (body as { cwd: string }).cwd;
}

async function untilEnded(gateway: WholeGateway, runId: string, userId?: string): Promise<void> {
  const params = { runId, timeoutMs: 150_000, ...(userId === undefined ? {} : { userId }) };
  const { body } = await gateway.rpc("agent.wait", params);
  expect(body).toMatchObject({ finished: true, state: "ok" });
}

async function sendInbound(gateway: WholeGateway, peer: string, text: string): Promise<string> {
  const body = JSON.stringify({ text, peer });
  const [timestamp, messageId] = [String(Math.floor(Date.now() / 1000)), randomUUID()];
  const answer = await fetch(`${gateway.url}/channels/desk/inbound`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "x-skein-timestamp": timestamp,
      "x-skein-message-id": messageId,
      "x-skein-signature": signatureOf(secret, { timestamp, messageId, body }),
    },
    body,
  });
  expect(answer.status).toBe(202);
  return ((await answer.json()) as { runId: string }).runId;
}

/** Every way to create a session for a user. Returns the session's key. */
const doors: Record<string, (gateway: WholeGateway, userId: "ann" | "bob") => Promise<string>> = {
  "sessions.create": async (gateway, userId) => {
    const token = await gateway.token({ scopes: ["write"], userId });
    const { body } = await gateway.rpc("sessions.create", { key: "agent:main:session:made" }, token);
    return (body as { key: string }).key;
  },
  "sessions new": async (gateway, userId) =>
    String((await cli(dirname(gateway.root), "sessions", "new", "typed", "--user", userId)).key),
  "chat.send": async (gateway, userId) => {
    const token = await gateway.token({ scopes: ["write"], userId });
    const chat = {
      sessionKey: "agent:main:session:sent",
      message: "repeat hello",
      idempotencyKey: randomUUID(),
    };
    const { body } = await gateway.rpc("chat.send", chat, token);
    await untilEnded(gateway, (body as { runId: string }).runId, userId);
    return chat.sessionKey;
  },
  "sessions.send": async (gateway, userId) => {
    const token = await gateway.token({ scopes: ["write"], userId });
    const said = { key: "agent:main:session:told", message: "repeat hello", idempotencyKey: randomUUID() };
    const { body } = await gateway.rpc("sessions.send", { ...said, timeoutMs: 150_000 }, token);
    expect(body).toMatchObject({ state: "ok" });
    return said.key;
  },
  agent: async (gateway, userId) => {
    const token = await gateway.token({ scopes: ["write"], userId });
    const { body } = await gateway.rpc(
      "agent",
      { agentId: "main", message: "repeat hello", idempotencyKey: randomUUID() },
      token,
    );
    await untilEnded(gateway, (body as { runId: string }).runId, userId);
    return "agent:main:main";
  },
  MCP: async (gateway, userId) => {
    const token = await gateway.token({ scopes: ["read", "write", "tools"], userId });
    const mcp = await connected({ url: `${gateway.url}/mcp` }, "2025-11-25", { token });
    await mcp.callTool({ name: "sessions_spawn", arguments: { task: "Say hello", background: false } });
    await mcp.close();
    const { body } = await gateway.rpc("sessions.list", { userId, kinds: ["node"] });
    const [{ key } = { key: "" }] = (body as { sessions: { key: string }[] }).sessions;
    return key;
  },
  "a webhook": async (gateway, userId) => {
    const runId = await sendInbound(gateway, userId === "ann" ? "17" : "18", "repeat hello");
    await untilEnded(gateway, runId, userId);
    const { body } = await gateway.rpc("runs.get", { runId, userId });
    return (body as { run: { sessionKey: string } }).run.sessionKey;
  },
  sessions_spawn: async (gateway, userId) => {
    const token = await gateway.token({ scopes: ["read", "write", "tools"], userId });
    const spawn = { name: "sessions_spawn", arguments: { task: "Say hello", background: false } };
    const { body } = await gateway.rpc(
      "tools.invoke",
      { ...spawn, sessionKey: "agent:main:session:parent" },
      token,
    );
    return (body as { result: { childSessionKey: string } }).result.childSessionKey;
  },
};

describe("a gateway without a configured folder", () => {
  let gateway: WholeGateway;
  beforeAll(async () => {
    gateway = await wholeGateway({ config: channels });
  });
  afterAll(() => gateway.close());

  test.each(Object.keys(doors))("[WKD1] [WKD6] each of two users has a folder: %s", async (door) => {
    for (const userId of ["ann", "bob"] as const) {
      const key = await doors[door]?.(gateway, userId);
      const cwd = await cwdIn(gateway, key ?? "", userId);
      expect(relative(gateway.root, cwd)).toBe(`users/${userId}/agents/main/workspace`);
    }
  });

  test("[WKD1] the unnamed user has one too", async () => {
    await gateway.rpc("sessions.create", { key: "agent:main:session:operator" });
    const cwd = await cwdIn(gateway, "agent:main:session:operator");
    expect(relative(gateway.root, cwd)).toBe("agents/main/workspace");
  });

  test("[WKD4] it is created by the first run, private to the owner", async () => {
    await gateway.rpc("sessions.create", { key: "agent:main:session:first", userId: "cleo" });
    const cwd = await cwdIn(gateway, "agent:main:session:first", "cleo");
    expect(existsSync(cwd)).toBe(false);
    const said = { key: "first", message: "repeat hello", idempotencyKey: "cleo", userId: "cleo" };
    const { body } = await gateway.rpc("sessions.send", { ...said, timeoutMs: 150_000 });
    expect(body).toMatchObject({ state: "ok" });
    expect(statSync(cwd).mode & 0o777).toBe(0o700);
  });

  test("[WKD1] an editor with a user's token works in the user's folder", async () => {
    const token = await gateway.token({ scopes: ["read", "write"], userId: "ann" });
    const env = { SKEIN_TOKEN: token, SKEIN_DIR: gateway.root };
    const { editor, leave } = await acpInside(dirname(gateway.root), [], env);
    const key = await editor.create(dirname(gateway.root));
    expect(relative(gateway.root, await cwdIn(gateway, key, "ann"))).toBe("users/ann/agents/main/workspace");
    await leave();
  });
});

describe("a folder for each user by configuration", () => {
  let home: TemporaryFolder;
  let gateway: WholeGateway;
  const at = (...path: readonly string[]) => join(home.path, ...path);
  beforeAll(async () => {
    home = temporaryFolder("skein-dirs-");
    const agents =
      "agents: { main: {}, shared: { cwd: common }, each: { cwd: 'by/{agentId}/{userId}/work' } }\n";
    const defaults = "defaults: { model: rehearsal/basic, cwd: 'workspaces/{userId}' }\n";
    gateway = await wholeGateway({ config: defaults + agents + channels, folder: home });
  });
  afterAll(async () => {
    await gateway.close();
    home.remove();
  });

  test.each(Object.keys(doors))("[WKD2] [WKD6] defaults.cwd: workspaces/{userId}, by %s", async (door) => {
    for (const userId of ["ann", "bob"] as const) {
      const key = await doors[door]?.(gateway, userId);
      expect(await cwdIn(gateway, key ?? "", userId)).toBe(at("workspaces", userId));
    }
  });

  test("[WKD2] agents.<id>.cwd overrides defaults.cwd", async () => {
    for (const userId of ["ann", "bob"]) {
      for (const [agentId, folder] of [
        ["shared", "common"],
        ["each", `by/each/${userId}/work`],
      ] as const) {
        const key = `agent:${agentId}:session:of-${agentId}`;
        await gateway.rpc("sessions.create", { key, userId });
        expect(await cwdIn(gateway, key, userId)).toBe(at(folder));
      }
    }
  });

  test("[WKD4] the folder is created by the first run, private to the owner", async () => {
    await gateway.rpc("sessions.create", { key: "agent:each:session:b", userId: "cleo" });
    expect(existsSync(at("by/each/cleo"))).toBe(false);
    const said = {
      key: "agent:each:session:b",
      message: "repeat hello",
      idempotencyKey: "b",
      userId: "cleo",
    };
    const { body } = await gateway.rpc("sessions.send", { ...said, timeoutMs: 150_000 });
    expect(body).toMatchObject({ state: "ok" });
    for (const folder of ["by/each/cleo", "by/each/cleo/work"])
      expect(statSync(at(folder)).mode & 0o777).toBe(0o700);
  });

  test("[WKD5] a session of one user is not created in another user's folder", async () => {
    mkdirSync(at("workspaces/bob"), { recursive: true });
    for (const cwd of [at("workspaces/bob"), at("workspaces"), at("workspaces/ann/../bob")]) {
      const { status, body } = await gateway.rpc("sessions.create", { userId: "ann", cwd });
      expect({ status, body }).toMatchObject({ status: 400, body: { error: { code: "invalid_request" } } });
    }
    const own = { userId: "ann", key: "agent:main:session:deep", cwd: at("workspaces/ann/deep") };
    expect(await gateway.rpc("sessions.create", own)).toMatchObject({ status: 200 });
  });

  test("[WKD5] a child of one user does not work in another user's folder", async () => {
    mkdirSync(at("workspaces/bob"), { recursive: true });
    const token = await gateway.token({ scopes: ["read", "write", "tools"], userId: "ann" });
    const spawn = { name: "sessions_spawn", sessionKey: "agent:main:session:spawner" };
    for (const cwd of ["../bob", at("workspaces/bob")]) {
      const given = { task: "Say hello", cwd };
      const { body } = await gateway.rpc("tools.invoke", { ...spawn, arguments: given }, token);
      expect(body).toMatchObject({ result: { status: "forbidden", code: "cwd_not_allowed" } });
    }
  });

  test("[WKD3] no user ID leads to another user's folder", async () => {
    const folders = new Map<string, string>();
    const ids = [
      "ann",
      "ANN",
      "Ann",
      "../ann",
      "..",
      ".",
      "ann/../bob",
      "ann/",
      "a\u0000nn",
      "@unnamed",
      "~",
      "%61nn",
    ];
    const more = [
      "\u00e4",
      "a\u0308",
      "\uff41nn",
      "ann\u200b",
      "ann ",
      "con",
      "x".repeat(256),
      `${"x".repeat(255)}y`,
    ];
    for (const userId of [...ids, ...more]) {
      const key = "agent:main:session:hostile";
      expect(await gateway.rpc("sessions.create", { key, userId })).toMatchObject({ status: 200 });
      const cwd = await cwdIn(gateway, key, userId);
      expect(dirname(cwd)).toBe(at("workspaces"));
      folders.set(cwd.normalize("NFKC").toLowerCase(), userId);
    }
    await gateway.rpc("sessions.create", { key: "agent:main:session:hostile" });
    folders.set(await cwdIn(gateway, "agent:main:session:hostile"), "(the unnamed user)");
    expect(folders.size).toBe(ids.length + more.length + 1);
  });
});

describe("the command line on a folder without a gateway", () => {
  let home: TemporaryFolder;
  beforeEach(() => {
    home = temporaryFolder("skein-dirs-");
  });
  afterEach(() => home.remove());
  const cwdOf = async (name: string, ...options: readonly string[]) => {
    const { cwd } = await cli(home.path, "sessions", "new", name, ...options);
    return relative(home.path, String(cwd));
  };

  test("[WKD1] sessions new: the terminal's folder for the unnamed user, a workspace for every other user", async () => {
    expect(await cwdOf("mine")).toBe("");
    expect(await cwdOf("hers", "--user", "ann")).toBe("root/users/ann/agents/main/workspace");
    expect(await cwdOf("his", "--user", "bob")).toBe("root/users/bob/agents/main/workspace");
  });

  test("[WKD2] sessions new and send: as configured in skein.yaml", async () => {
    const defaults = "defaults: { model: rehearsal/basic, cwd: 'workspaces/{userId}' }\n";
    writeFileSync(
      join(home.path, "skein.yaml"),
      `${defaults}agents: { main: {}, other: { cwd: elsewhere } }\n`,
    );
    expect(await cwdOf("hers", "--user", "ann")).toBe("workspaces/ann");
    expect(await cwdOf("mine")).toBe("workspaces/@unnamed");
    expect(await cwdOf("others", "--user", "ann", "--agent", "other")).toBe("elsewhere");
    expect(await cwdOf("strangers", "--user", "ann", "--agent", "unknown")).toBe("workspaces/ann");
    await cli(home.path, "send", "agent:main:session:sent", "repeat hello", "--user", "bob");
    expect(existsSync(join(home.path, "workspaces/bob"))).toBe(true);
  });

  test.each([
    ["a misspelled placeholder", "workspaces/{user}"],
    ["a part of a name", "ws-{userId}"],
    ["two in one name", "ws/{agentId}{userId}"],
    ["an open brace", "ws/{userId"],
  ])("[WKD7] %s in skein.yaml is a mistake", async (_, cwd) => {
    writeFileSync(join(home.path, "skein.yaml"), `agents: { main: { cwd: "${cwd}" } }\n`);
    const place = { cwd: home.path, env: {}, home: home.path };
    const { err, exit } = await runCommand(["sessions", "new", "--dir", join(home.path, "root")], place);
    expect(exit).toBe(1);
    expect(err).toContain("agents.main.cwd");
    expect(err).toContain("{userId} and {agentId}, each as a whole folder name");
  });
});

describe("the library", () => {
  const opened: Skein[] = [];
  let home: TemporaryFolder;
  let server: Server | null = null;
  beforeEach(() => {
    home = temporaryFolder("skein-dirs-");
  });
  afterEach(async () => {
    server?.closeAllConnections();
    server?.close();
    server = null;
    for (const skein of opened.splice(0)) await skein.close({ graceMs: 0 });
    home.remove();
  });

  const where = defineTool({
    name: "where",
    description: "Says where it works.",
    parameters: { type: "object", properties: {} },
    execute: (_, { cwd }) => cwd,
  });
  const open = async (options: SkeinOptions) => {
    const skein = await createSkein({
      dir: join(home.path, "root"),
      cwd: home.path,
      env: {},
      quiet: true,
      ...options,
    });
    opened.push(skein);
    return skein;
  };
  const agents = [defineAgent({ id: "main", model: "rehearsal/basic", tools: [where] })];
  /** Returns the context that a session's tool receives. */
  const cwdOf = async (skein: Skein, userId: string | null, sessionId: string) => {
    const { result } = await skein.invokeTool("where", {}, { userId, sessionId });
    const [{ text } = { text: "" }] = (result as { content: { text: string }[] }).content;
    return relative(home.path, text);
  };

  test("[WKD2] [WKD4] createSkein({ config }): defaults.cwd", async () => {
    const skein = await open({ agents, config: { defaults: { cwd: "workspaces/{userId}" } } });
    for (const userId of ["ann", "bob"]) {
      await skein.session({ userId, sessionId: "trip" }).send("repeat hello").result;
      expect(await cwdOf(skein, userId, "trip")).toBe(`workspaces/${userId}`);
      const made = await skein.sessions.create({ userId, key: "agent:main:session:made" });
      expect(made.cwd).toBe(join(home.path, "workspaces", userId));
      expect(statSync(join(home.path, "workspaces", userId)).mode & 0o777).toBe(0o700);
    }
  });

  test("[WKD2] createSkein({ config }): agents.<id>.cwd", async () => {
    const config = {
      agents: { main: { cwd: "own/{userId}" }, flat: { cwd: "flat" } },
      defaults: { cwd: "all" },
    };
    const skein = await open({ config });
    const cwd = async (userId: string, agentId: string) =>
      relative(
        home.path,
        (await skein.sessions.create({ userId, key: `agent:${agentId}:session:of-${agentId}` })).cwd ?? "",
      );
    expect([await cwd("ann", "main"), await cwd("bob", "main")]).toEqual(["own/ann", "own/bob"]);
    expect([await cwd("ann", "flat"), await cwd("bob", "flat")]).toEqual(["flat", "flat"]);
    expect(await cwd("ann", "stranger")).toBe("all");
  });

  test("[WKD2] defineAgent({ cwd })", async () => {
    const main = defineAgent({
      id: "main",
      model: "rehearsal/basic",
      tools: [where],
      cwd: join(home.path, "{userId}"),
    });
    const skein = await open({ agents: [main], config: null });
    await skein.session({ userId: "Ann", sessionId: "trip" }).send("repeat hello").result;
    expect(await cwdOf(skein, "Ann", "trip")).toBe("%41nn");
  });

  test("[WKD7] a placeholder inside a name is refused", async () => {
    const config = { defaults: { cwd: "ws-{userId}" } };
    await expect(open({ agents, config })).rejects.toThrow(/defaults\.cwd.*as a whole folder name/s);
    expect(() => defineAgent({ id: "main", cwd: "/srv/ws-{userId}" })).toThrow(/as a whole folder name/);
    expect(() => defineAgent({ id: "main", roots: ["/srv/{user}"] })).toThrow(/as a whole folder name/);
  });

  test("[WKD8] without a configured folder, sessions work in the process's folder", async () => {
    const skein = await open({ agents, config: null });
    for (const userId of ["ann", null]) {
      await skein.session({ userId, sessionId: "trip" }).send("repeat hello").result;
      expect(await cwdOf(skein, userId, "trip")).toBe("");
    }
  });

  test("[WKD1] each user of a mounted gateway has a folder", async () => {
    const skein = await open({ agents, config: null });
    const gateway = await skein.mount();
    const listening = createServer(gateway.handler).listen(0, "127.0.0.1");
    server = listening;
    await once(listening, "listening");
    const { port } = listening.address() as AddressInfo;
    const token = readFileSync(join(home.path, "root/token"), "utf8").trim();
    const rpc = async (method: string, params: object) => {
      const url = `http://127.0.0.1:${port}/rpc/${method}`;
      const headers = { "content-type": "application/json", authorization: `Bearer ${token}` };
      return (await fetch(url, { method: "POST", headers, body: JSON.stringify(params) })).json();
    };
    for (const userId of ["ann", "bob"]) {
      const said = {
        sessionKey: "agent:main:session:trip",
        message: "repeat hello",
        idempotencyKey: userId,
        userId,
      };
      const { runId } = (await rpc("chat.send", said)) as { runId: string };
      await skein.ended(runId);
      expect(await cwdOf(skein, userId, "trip")).toBe(`root/users/${userId}/agents/main/workspace`);
    }
  });

  test("[WKD9] a configured folder inside the root folder is replaced by the workspace, and the log says so", async () => {
    const logged: string[] = [];
    const config = {
      defaults: { cwd: "root/workspaces/{userId}" },
      logging: { file: join(home.path, "log") },
    };
    const skein = await open({ agents, config, report: (error) => logged.push(String(error)) });
    await skein.session({ userId: "ann", sessionId: "trip" }).send("repeat hello").result;
    expect(await cwdOf(skein, "ann", "trip")).toBe("root/users/ann/agents/main/workspace");
    await skein.close();
    const warnings = readFileSync(join(home.path, "log"), "utf8")
      .split("\n")
      .filter((line) => line.includes("workspaces"));
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain("agents.main.cwd");
  });

  test("[WKD4] a folder that cannot be created ends the run with an error that names it", async () => {
    writeFileSync(join(home.path, "workspaces"), "not a folder");
    const skein = await open({ agents, config: { defaults: { cwd: "workspaces/{userId}" } } });
    const turn = skein.session({ userId: "ann", sessionId: "trip" }).send("repeat hello");
    await expect(turn.result).rejects.toThrow(/working directory .*workspaces\/ann.* could not be created/);
  });
});
