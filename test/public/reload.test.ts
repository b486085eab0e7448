import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { GatewayProcess } from "../support/gateway-process.ts";

let folder: TemporaryFolder;
let gateway: GatewayProcess | null = null;
beforeEach(() => {
  folder = temporaryFolder("skein-reload-");
});
afterEach(async () => {
  await gateway?.stop("SIGKILL");
  gateway = null;
  folder.remove();
});

interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

const marker = () => join(folder.path, "marker");
/** Returns the programs that have run, one word each. A failing program might be started more than once. */
function started(): string[] {
  const lines = existsSync(marker()) ? readFileSync(marker(), "utf8").split("\n") : [];
  return [...new Set(lines.filter(Boolean))];
}

/** A program that writes a word to the marker file and exits. */
function program(word: string, more: Partial<Launch> = {}): Launch {
  return { command: "/bin/sh", args: ["-c", `echo ${word} >> ${marker()}`], ...more };
}

/** Creates a separate folder. */
function below(name: string): string {
  const path = join(folder.path, name);
  mkdirSync(path);
  return path;
}

interface Written {
  readonly mcp?: Readonly<Record<string, Launch>>;
  readonly acp?: Readonly<Record<string, Launch>>;
  readonly defaultAgent?: string;
  /** A harmless setting that shows the test that the rest of the file has been applied. */
  readonly agent?: string;
}

function configure({ mcp = {}, acp = {}, defaultAgent, agent = "first" }: Written): void {
  const config = {
    defaults: { model: "rehearsal/basic" },
    agents: { main: {}, [agent]: {} },
    mcpServers: mcp,
    acp: { agents: acp, ...(defaultAgent === undefined ? {} : { defaultAgent }) },
  };
  writeFileSync(join(folder.path, "skein.yaml"), JSON.stringify(config, null, 1));
}

async function start(written: Written, env = ""): Promise<GatewayProcess> {
  writeFileSync(join(folder.path, ".env"), env);
  configure(written);
  gateway = await GatewayProcess.start(folder.path);
  return gateway;
}

/** Waits until a configuration with this agent has been applied. */
async function untilAgent(running: GatewayProcess, agent: string): Promise<void> {
  const agents = async () => (await running.call("agents.list", {})).agents.map(({ id }) => id);
  await expect.poll(agents).toContain(agent);
}

async function reload(running: GatewayProcess): Promise<{ readonly code: unknown; readonly json: unknown }> {
  const command = running.cli("reload", "--json");
  const code = await command.end();
  return { code, json: JSON.parse(command.out) as unknown };
}

describe("a changed configuration file", () => {
  test("[RLD1] [RLD6] does not start a new MCP server; `skein reload` does", async () => {
    const running = await start({});
    configure({ mcp: { evil: program("evil") }, agent: "second" });
    await running.process.until(/mcpServers\.evil takes effect after `skein reload` or a restart/);
    await untilAgent(running, "second");
    await running.ask("repeat hello", "one");
    expect(started()).toEqual([]);
    expect((await running.call("config.get", {})).waiting).toEqual(["mcpServers.evil"]);
    expect(await reload(running)).toMatchObject({
      code: 0,
      json: { commands: ["mcpServers.evil"], restartNeeded: [] },
    });
    expect((await running.call("config.get", {})).waiting).toBeUndefined();
    await running.ask("repeat hello", "two");
    expect(started()).toEqual(["evil"]);
  });

  test.each<[string, () => readonly [Launch, Launch]]>([
    ["arguments", () => [program("old"), program("new")]],
    ["environment", () => [program("$A", { env: { A: "old" } }), program("$A", { env: { A: "new" } })]],
    [
      "folder",
      () => [
        program("$(basename $PWD)", { cwd: below("old") }),
        program("$(basename $PWD)", { cwd: below("new") }),
      ],
    ],
    [
      "command",
      () => [program("old"), { command: "/usr/bin/env", args: ["/bin/sh", ...program("new").args] }],
    ],
  ])("[RLD1] keeps a known MCP server unchanged if its %s changed", async (_, launches) => {
    const [before, after] = launches();
    const running = await start({ mcp: { tool: before } });
    configure({ mcp: { tool: after }, agent: "second" });
    await running.process.until(/mcpServers\.tool takes effect after `skein reload` or a restart/);
    await untilAgent(running, "second");
    await running.ask("repeat hello", "one");
    expect(started()).toEqual(["old"]);
    const { effective, waiting } = await running.call("config.get", {});
    expect(waiting).toEqual(["mcpServers.tool"]);
    expect(effective).not.toContain("echo new");
  });

  test("[RLD1] keeps the environment of a command if a variable of .env changed", async () => {
    const server = program("$WORD", { env: { WORD: `\${WORD}` } });
    const running = await start({ mcp: { tool: server } }, "WORD=old\n");
    writeFileSync(join(folder.path, ".env"), "WORD=new\n");
    await running.process.until(/mcpServers\.tool takes effect after `skein reload` or a restart/);
    await running.ask("repeat hello", "one");
    expect(started()).toEqual(["old"]);
    await reload(running);
    await running.ask("repeat hello", "two");
    expect(started()).toEqual(["old", "new"]);
  });

  test("[RLD1] restarts a known command that was removed and restored", async () => {
    const running = await start({ mcp: { tool: program("known") } });
    configure({ agent: "second" });
    await untilAgent(running, "second");
    configure({ mcp: { tool: program("known") }, agent: "third" });
    await untilAgent(running, "third");
    await running.ask("repeat hello", "one");
    expect(started()).toEqual(["known"]);
    expect(running.output).not.toContain("waits for");
  });

  test("[RLD1] [RLD6] does not start a new ACP agent", async () => {
    const running = await start({});
    configure({ acp: { evil: program("evil") }, defaultAgent: "evil", agent: "second" });
    await running.process.until(/acp\.agents\.evil takes effect after `skein reload` or a restart/);
    await untilAgent(running, "second");
    await running.ask("repeat hello", "one");
    expect(await spawn(running, {})).toMatchObject({ status: "error" });
    expect(await spawn(running, { agentId: "evil" })).not.toMatchObject({ status: "accepted" });
    const doctor = running.cli("doctor", "--json");
    await doctor.end();
    expect(JSON.parse(doctor.out)).toMatchObject({
      configuration: { waiting: ["acp.agents.evil"] },
      findings: expect.arrayContaining([expect.objectContaining({ area: "configuration" })]),
    });
    expect(started()).toEqual([]);
    await reload(running);
    await spawn(running, { agentId: "evil" });
    await expect.poll(started).toEqual(["evil"]);
  });

  test("[RLD1] keeps a known ACP agent unchanged", async () => {
    const running = await start({ acp: { helper: program("old") } });
    configure({ acp: { helper: program("new") }, agent: "second" });
    await running.process.until(/acp\.agents\.helper takes effect after `skein reload` or a restart/);
    await untilAgent(running, "second");
    await running.ask("repeat hello", "one");
    await spawn(running, { agentId: "helper" });
    await expect.poll(started).toEqual(["old"]);
  });
});

async function spawn(running: GatewayProcess, more: object): Promise<unknown> {
  const { result } = await running.call("tools.invoke", {
    sessionKey: "main",
    name: "sessions_spawn",
    arguments: { task: "hello", runtime: "acp", ...more },
  });
  return (result as { details?: unknown }).details ?? result;
}

describe("skein reload", () => {
  test("[RLD3] requires a token for all users with the scope admin", async () => {
    const running = await start({});
    const { token } = await running.call("tokens.create", { scopes: ["read", "write", "tools", "admin"] });
    await expect(running.call("config.reload", {}, token)).rejects.toThrow("403");
  });

  test("[RLD4] reports a mistake in the file and changes nothing", async () => {
    const running = await start({ mcp: { tool: program("known") } });
    writeFileSync(join(folder.path, "skein.yaml"), "lanes: { fast: 1 }\n");
    const command = running.cli("reload");
    expect(await command.end()).not.toBe(0);
    expect(command.err).toContain("skein.yaml:1:10");
    await expect(running.call("config.reload", {})).rejects.toThrow("skein.yaml:1:10");
    await running.ask("repeat hello", "one");
    expect(started()).toEqual(["known"]);
  });

  test("reports that no gateway runs on the folder", async () => {
    const running = await start({});
    running.process.child.kill("SIGTERM");
    await running.process.end();
    const command = running.cli("reload");
    expect(await command.end()).toBe(1);
    expect(command.err).toContain("No gateway is running for this folder");
  });
});
