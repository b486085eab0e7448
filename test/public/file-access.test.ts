import { existsSync, globSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { createSkein, defineAgent, defineTool } from "../../src/index.ts";
import type { Step } from "../support/acp/script.ts";
import { scriptedAgent } from "../support/acp/script.ts";
import { acpInside } from "../support/acp-client.ts";
import { StartedInside } from "../support/cli-inside.ts";
import { Started } from "../support/cli-process.ts";
import { pngOf } from "../support/images.ts";
import { skeinProgram } from "../support/programs.ts";

/**
 * Every parameter that takes a path, attacked through a real gateway process. The gateway runs in `work/gw`, which
 * contains its root folder. The agent `main` works in `work`, which contains the gateway's folder.
 */

/** In NFC. The other form of the same name is `da\u0308t`. */
const rootName = "d\u00e4t";

let folder: TemporaryFolder;
let gateway: Started;
let url = "";
let admin = "";
let ann = "";
const at = (...path: readonly string[]) => join(folder.path, ...path);
const root = (...path: readonly string[]) => at("work", "gw", rootName, ...path);
const env = () => ({ SKEIN_DIR: root(), HOME: folder.path });

beforeAll(async () => {
  folder = temporaryFolder("skein-file-access-");
  for (const each of ["work/gw", "work/sub", "far", "config"]) mkdirSync(at(each), { recursive: true });
  symlinkSync(`gw/${rootName}`, at("work/to-root"));
  symlinkSync(`../gw/${rootName}/users`, at("work/sub/to-users"));
  writeFileSync(at("work/sub/ok.txt"), "fine\n");
  writeFileSync(at("work/gw/notes.txt"), "the operator's\n");
  writeFileSync(at("work/sub/variables"), "");
  symlinkSync(at("work/sub/variables"), at("config/.env"));
  writeFileSync(at("config/own.yaml"), configText());
  gateway = new Started([skeinProgram, "start", "--port", "0", "--config", at("config/own.yaml")], env(), {
    cwd: at("work/gw"),
  });
  await gateway.until(/Press Ctrl-C to stop it/);
  url = (JSON.parse(readFileSync(root("gateway.json"), "utf8")) as { url: string }).url;
  admin = readFileSync(root("token"), "utf8").trim();
  ann = (await rpc("tokens.create", { scopes: ["read", "write", "tools"], userId: "ann" }, admin)).body
    .token as string;
});
afterAll(async () => {
  gateway?.child.kill("SIGTERM");
  await gateway?.end();
  folder.remove();
});

function configText(): string {
  const files = scriptedAgent({ turns: [acpSteps()] });
  return JSON.stringify({
    defaults: { model: "rehearsal/basic" },
    agents: {
      main: { cwd: at("work"), subagents: { maxChildren: 20 } },
      other: {},
      far: { cwd: at("far") },
      near: { cwd: at("work/gw") },
    },
    acp: { permissions: "allow", agents: { files } },
    mcpServers: { disk: { command: process.execPath, args: ["-e", failingServer] } },
    logging: { level: "error", file: at("log") },
  });
}

/** An MCP server whose only tool fails with an error that contains a local path. */
const failingServer = `
  const lines = require("node:readline").createInterface({ input: process.stdin });
  const answers = {
    initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "disk", version: "1" } }),
    "tools/list": () => ({ tools: [{ name: "open", inputSchema: { type: "object" } }] }),
    "tools/call": () => ({ isError: true, content: [{ type: "text", text: "ENOENT: no such file, open '" + process.cwd() + "/deep/a.txt' in " + process.cwd() }] }),
  };
  lines.on("line", (line) => {
    const { id, method, params } = JSON.parse(line);
    const result = answers[method]?.(params);
    if (result !== undefined) console.log(JSON.stringify({ jsonrpc: "2.0", id, result }));
  });`;

/** The client requests of an ACP agent. The agent reports each response in brackets. */
function acpSteps(): Step[] {
  const asked: Step[] = [
    { read: root("token") },
    { read: at("work/to-root/token") },
    { read: `${at("work/sub/to-users")}/../token` },
    { read: at("work/gw/da\u0308t/token") },
    { write: root("users/ann/agents/main/sessions/evil.jsonl"), content: "{}" },
    { write: at("work/to-root/agents/evil.jsonl"), content: "{}" },
    { write: at(`work/gw/${rootName.toUpperCase()}/evil.jsonl`), content: "{}" },
    { write: at("work/gw/skein.yaml"), content: "mcpServers: {}" },
    { write: at("work/gw/.env"), content: "SKEIN_DIR=/" },
    { write: at("work/sub/.ENV"), content: "SKEIN_DIR=/" },
    { write: at("work/gw/.env/x"), content: "" },
    { write: at("work/sub/variables"), content: "SKEIN_DIR=/" },
    { terminal: "pwd", cwd: root() },
    { terminal: "pwd", cwd: at("work/sub/to-users") },
    { read: at("work/sub/ok.txt") },
    { write: at("work/sub/new.txt"), content: "new" },
  ];
  return asked.flatMap((step) => [{ say: "<" }, step, { say: ">" }]);
}

interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

async function rpc(method: string, params: unknown, token: string): Promise<Answer> {
  const answer = await fetch(`${url}/rpc/${method}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify(params),
  });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

/** Calls `sessions_spawn` as the user ann through `tools.invoke`. */
async function spawn(args: object, sessionKey = "agent:main:main"): Promise<Record<string, unknown>> {
  const params = { name: "sessions_spawn", sessionKey, arguments: { task: "Say hello", ...args } };
  const { status, body } = await rpc("tools.invoke", params, ann);
  expect({ status, body }).toMatchObject({ status: 200 });
  return body.result as Record<string, unknown>;
}

async function cli(...args: readonly string[]): Promise<{ readonly code: unknown; readonly text: string }> {
  const command = new StartedInside([...args, "--config", at("config/own.yaml")], at("work"), env());
  const code = await command.end();
  return { code, text: command.out + command.err };
}

/** Files that only an attack could have written. */
function planted(): string[] {
  const names = ["evil.jsonl", "skein.yaml", "SKEIN.YML", "skein.json", ".env", ".ENV"];
  return globSync(
    names.map((name) => `**/${name}`),
    { cwd: folder.path },
  ).filter((path) => path !== "config/.env"); // written by the operator
}

describe("sessions_spawn with the scopes write and tools", () => {
  test.each([
    ["the root folder", `gw/${rootName}`],
    ["its absolute path", "@root"],
    ["its name in NFD", "gw/da\u0308t"],
    ["its name in capitals", `gw/${rootName.toUpperCase()}`],
    ["a link to it", "to-root"],
    ["a link into it", "sub/to-users"],
    ["over ..", `sub/../gw/${rootName}/users`],
    ["a sessions folder", `gw/${rootName}/users/ann/agents/main/sessions`],
    ["the attachments of all sessions", `gw/${rootName}/users/ann/agents/main`],
  ])("[FBD4] cwd: %s is refused", async (_, given) => {
    const cwd = given === "@root" ? root() : given;
    expect(await spawn({ cwd })).toMatchObject({ status: "forbidden", code: "cwd_not_allowed" });
  });

  test.each([
    ["a sessions folder", `gw/${rootName}/users/ann/agents/main/sessions`],
    ["another user's sessions", `gw/${rootName}/users/bob/agents/main/sessions`],
    ["the root folder in NFD", "gw/da\u0308t/agents/main/sessions"],
    ["the root folder in capitals", `gw/${rootName.toUpperCase()}/agents/main/sessions`],
    ["a link to the root folder", "to-root/agents/main/sessions"],
    ["a link into it", "sub/to-users/ann/agents/main/sessions"],
  ])("[FBD1] mountPath: %s is refused", async (_, mountPath) => {
    const attachments = [{ name: "evil.jsonl", content: '{"type":"session","cwd":"/"}' }];
    expect(await spawn({ attachments, attachAs: { mountPath } })).toMatchObject({
      status: "error",
      code: "attachments_path_not_allowed",
    });
    expect(planted()).toEqual([]);
  });

  test.each([
    ["gw", "skein.yaml", "attachments_path_not_allowed"],
    ["gw", "SKEIN.YML", "attachments_path_not_allowed"],
    ["sub", "skein.json", "attachments_path_not_allowed"],
    ["gw", ".env", "attachments_invalid_name"],
    ["gw", "notes.txt", "attachments_path_taken"],
  ])("[FBD3] %s/%s is not written by a mount", async (mountPath, name, code) => {
    const attachments = [{ name, content: "mcpServers: { x: { command: touch } }" }];
    expect(await spawn({ attachments, attachAs: { mountPath } })).toMatchObject({ status: "error", code });
    expect(planted()).toEqual([]);
    expect(readFileSync(at("work/gw/notes.txt"), "utf8")).toBe("the operator's\n");
    expect(existsSync(at("work/gw/manifest.json"))).toBe(false);
  });

  test.each([
    ["node_modules/sharp", "attachments_path_not_allowed"],
    ["gw/Node_Modules/sharp", "attachments_path_not_allowed"],
    [".git/hooks", "attachments_invalid_mount_path"],
  ])("[FBD11] nothing is mounted in %s", async (mountPath, code) => {
    const attachments = [{ name: "package.json", content: '{ "main": "index.js" }' }];
    expect(await spawn({ attachments, attachAs: { mountPath } })).toMatchObject({ status: "error", code });
    expect(existsSync(at(`work/${mountPath}`))).toBe(false);
  });

  test("[FBD5] a child works in a folder that contains the root folder", async () => {
    expect(await spawn({ cwd: "gw", background: false })).toMatchObject({ status: "ok", outcome: "ok" });
  });
});

describe("an ACP agent's requests", () => {
  test("[FBD1] [FBD3] stay out of the root folder and of configuration files", async () => {
    const spawned = await spawn({ runtime: "acp", agentId: "files", background: false });
    expect(spawned).toMatchObject({ status: "ok", outcome: "ok" });
    const answers = [...String(spawned.result).matchAll(/<([^<>]*)>/g)].map((match) => match[1]?.trim());
    const inRoot = expect.stringMatching(/^\(.*is inside Skein's own folder.*\)$/);
    const isConfiguration = expect.stringMatching(/^\(.*has the name of a configuration file.*\)$/);
    expect(answers).toEqual([
      ...[inRoot, inRoot, inRoot, inRoot],
      ...[inRoot, inRoot, inRoot],
      ...[isConfiguration, isConfiguration, isConfiguration, isConfiguration, isConfiguration],
      ...[inRoot, inRoot],
      ...["fine", "(written)"],
    ]);
    expect(planted()).toEqual([]);
  });
});

describe("a working directory given by an operator", () => {
  test("[FBD4] sessions.create", async () => {
    for (const cwd of [root(), at("work/to-root"), root("users"), at("work/sub/to-users")]) {
      const { status, body } = await rpc("sessions.create", { key: "agent:other:session:a", cwd }, admin);
      expect({ status, message: body.message ?? body.error }).toMatchObject({ status: 400 });
      expect(JSON.stringify(body)).toContain("inside Skein's root folder");
    }
  });

  test("[FBD6] sessions.create, outside of the agent's folder, and from a token without admin", async () => {
    const cwd = at("far");
    const session = { key: "agent:main:session:b", cwd };
    expect(await rpc("sessions.create", session, admin)).toMatchObject({ status: 400 });
    expect(await rpc("sessions.create", session, ann)).toMatchObject({ status: 403 });
    expect(await rpc("sessions.create", { ...session, cwd: at("work/sub") }, admin)).toMatchObject({
      status: 200,
    });
  });

  test("[FBD4] sessions new --cwd", async () => {
    const refused = await cli("sessions", "new", "agent:other:session:c", "--cwd", root("users"));
    expect(refused.code).toBe(2);
    expect(refused.text).toContain("inside Skein's root folder");
    expect((await cli("sessions", "new", "agent:other:session:c", "--cwd", at("far"))).code).toBe(0);
  });

  test("[FBD4] session/new from an editor", async () => {
    const { editor, leave } = await acpInside(at("work"), ["--agent", "other"], env());
    await expect(editor.create(root("users"))).rejects.toThrow(/inside Skein's root folder/);
    expect(await editor.create(at("far"))).toContain("agent:other:");
    await leave();
  });

  test("[FBD4] [FBD8] a RuntimeContext, and the default of a process that runs in the root folder", async () => {
    const dir = at("library");
    const tool = defineTool({
      name: "where",
      description: "Says where it works.",
      parameters: { type: "object", properties: {} },
      execute: (_, { cwd }) => cwd,
    });
    const agent = defineAgent({ id: "main", model: "rehearsal/basic", tools: [tool] });
    const skein = await createSkein({ dir, cwd: dir, config: null, quiet: true, env: {}, agents: [agent] });
    try {
      const refused = skein.session({ agentId: "main", cwd: join(dir, "agents") }).send("Hello");
      await expect(refused.result).rejects.toThrow(/inside Skein's root folder/);
      await skein.session({ agentId: "main" }).send("Hello").result;
      const { result } = await skein.invokeTool("where", {}, { agentId: "main" });
      expect(result).toEqual({ content: [{ type: "text", text: join(dir, "agents/main/workspace") }] });
      expect(existsSync(join(dir, "agents/main/workspace"))).toBe(true);
    } finally {
      await skein.close();
    }
  });
});

describe("images that a prompt names", () => {
  test("[FBD1] are not read from the root folder", async () => {
    const dir = at("alone/root");
    mkdirSync(dir, { recursive: true });
    writeFileSync(join(dir, "secret.png"), pngOf(3, 3));
    writeFileSync(at("alone/seen.png"), pngOf(4, 4));
    const text = "describe seen.png and root/secret.png";
    const send = new StartedInside(["send", "main", text], at("alone"), { ...env(), SKEIN_DIR: dir });
    expect(await send.end()).toBe(0);
    const log = readFileSync(globSync(join(dir, "agents/main/sessions/*.jsonl"))[0] ?? "", "utf8");
    expect(send.err).toContain("root/secret.png was not attached");
    expect(log.match(/"type":"image"/g)).toHaveLength(1);
  });
});

describe("attachments", () => {
  const attachments = [{ name: "a.txt", content: "hello" }];

  test.each([
    ["below the working directory", "agent:near:main", `${rootName}/users/ann/agents/near/attachments/`],
    ["elsewhere", "agent:far:main", "attachments/a.txt"],
  ])("kept %s are named without an absolute path", async (_, sessionKey, path) => {
    const child = await spawn({ attachments, background: false }, sessionKey);
    expect(child).toMatchObject({ status: "ok", attachments: { count: 1 } });
    const { body } = await rpc("chat.history", { sessionKey: child.childSessionKey }, ann);
    const text = JSON.stringify(body);
    expect(text).toContain(`- a.txt (5 bytes): ${path}`);
    expect(text).not.toContain(folder.path);
  });

  test("under a mountPath are named relative to the working directory", async () => {
    const child = await spawn({ attachments, attachAs: { mountPath: "sub/in" }, background: false });
    const { body } = await rpc("chat.history", { sessionKey: child.childSessionKey }, ann);
    expect(JSON.stringify(body)).toContain("- a.txt (5 bytes): sub/in/a.txt");
    expect(JSON.stringify(body)).not.toContain(folder.path);
  });
});

describe("errors of tools.invoke", () => {
  const open = { name: "disk__open", sessionKey: "agent:main:main" };

  test("[FBD10] have no absolute path for a token without admin, and are complete for an admin", async () => {
    await spawn({ cwd: "sub", background: false });
    const { body } = await rpc("tools.invoke", open, ann);
    expect(body).toMatchObject({ isError: true });
    expect(JSON.stringify(body)).toContain("open 'gw/deep/a.txt'");
    expect(JSON.stringify(body)).not.toContain(folder.path);
    await rpc("sessions.create", { key: "agent:main:main" }, admin);
    const whole = await rpc("tools.invoke", open, admin);
    expect(JSON.stringify(whole.body)).toContain(`open '${at("work/gw/deep/a.txt")}'`);
  });
});
