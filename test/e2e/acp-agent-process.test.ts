import { join } from "node:path";
import { methods } from "@agentclientprotocol/sdk/unstable";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import type { AcpProcess } from "../support/acp-client.ts";
import { acpProcess } from "../support/acp-client.ts";
import { run } from "../support/cli.ts";
import type { Started } from "../support/cli-process.ts";
import { startCli } from "../support/cli-process.ts";
import type { WholeGateway } from "../support/whole-gateway.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

const { session } = methods.agent;
let folder: TemporaryFolder;
let dir = "";
const started: Started[] = [];
const editors: AcpProcess[] = [];

beforeEach(() => {
  folder = temporaryFolder("skein-acp-");
  dir = join(folder.path, "root");
});
afterEach(async () => {
  for (const each of started.splice(0)) each.child.kill("SIGKILL");
  for (const each of editors.splice(0)) await each.leave();
  folder.remove();
});

const line = (id: number, method: string, params: object) =>
  `${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`;
/** The maximum accepted line length. */
const lineBytes = 25 * 1024 * 1024;
const opening = line(1, "initialize", { protocolVersion: 1 });

describe("skein acp, the process", () => {
  test("[AAG1] [AAG17] garbage and requests before initialize are errors; it ends with its input, and prints only ACP", async () => {
    const acp = startCli(dir, "acp");
    started.push(acp);
    acp.write("no json at all\n");
    await acp.until(/-32700/);
    acp.write(line(7, "session/new", { cwd: folder.path, mcpServers: [] }));
    await acp.until(/must be initialized/);
    acp.write(opening);
    await acp.until(/"agentInfo"/);
    acp.write('{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":5}}\n');
    await acp.until(/-32602/);
    acp.endInput();
    expect(await acp.end()).toBe(0);
    const lines = acp.out.trimEnd().split("\n");
    expect(new Set(lines.map((each) => (JSON.parse(each) as { jsonrpc: string }).jsonrpc))).toEqual(
      new Set(["2.0"]),
    );
    expect(acp.err).toBe("");
  });

  test("an overlong line ends it with a message", async () => {
    const acp = startCli(dir, "acp");
    started.push(acp);
    acp.write(opening);
    await acp.until(/"agentInfo"/);
    acp.write("x".repeat(lineBytes + 1));
    expect(await acp.end()).toBe(1);
    expect(acp.err).toContain(`larger than ${lineBytes} bytes`);
  });

  test.each(["the end of the input", "SIGTERM"] as const)(
    "[AAG17] %s in the middle of a turn ends it, and the turn is left in a recoverable state",
    async (how) => {
      const one = await acpProcess(folder.path, ["--dir", dir]);
      editors.push(one);
      const id = await one.editor.create(folder.path);
      const lost = one.editor.prompt(id, "be slow for 60 seconds").catch(() => "lost");
      await one.editor.until(/agent_message_chunk/);
      if (how === "SIGTERM") one.child.kill("SIGTERM");
      expect(await one.leave()).toBe(0);
      expect(await lost).toBe("lost");
      const listed = await run(["runs", "ls", "--json"], { cwd: folder.path, env: { SKEIN_DIR: dir } });
      const { runs } = JSON.parse(listed.out) as { runs: { state: string }[] };
      expect(runs.map(({ state }) => state)).toEqual(["queued"]);
      expect(one.notes()).toBe("");
    },
  );
});

describe("skein acp with a token without admin", () => {
  let gateway: WholeGateway;
  beforeEach(async () => {
    gateway = await wholeGateway({ folder });
  });
  afterEach(() => gateway.close());

  test("[AAG11] [AAG14] acts as its user, offers only what is allowed, and cannot choose a folder", async () => {
    const SKEIN_TOKEN = await gateway.token({ label: "ann", scopes: ["read", "write"], userId: "ann" });
    const notices = { session: { notices: {} } };
    const one = await acpProcess(folder.path, ["--dir", gateway.root], { SKEIN_TOKEN }, notices);
    editors.push(one);
    const { agent, of, until, prompt, texts } = one.editor;
    const made = await agent.request(session.new, { cwd: "/srv/else", mcpServers: [] });
    expect(made.configOptions ?? []).toEqual([]);
    await until(/only an admin token can choose a folder/);
    expect(of("notice")).toMatchObject([{ severity: "warning" }]);
    const [commands] = of("available_commands_update");
    expect(commands?.availableCommands.map(({ name }) => name)).toEqual(["status", "branch", "tree"]);
    await prompt(made.sessionId, "repeat sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789");
    expect(texts()).not.toContain("abcdefghijklmnopqrstuvwxyz");
    expect(texts()).not.toContain("The answer starts over");
    const chosen = { sessionId: made.sessionId, configId: "model", value: "rehearsal/basic" };
    await expect(agent.request(session.setConfigOption, chosen)).rejects.toMatchObject({
      data: { code: "forbidden" },
    });
    const { sessions } = await (await gateway.client(SKEIN_TOKEN)).call("sessions.list", {});
    expect(sessions.map(({ key }) => key)).toEqual([made.sessionId]);
  });

  test("[AAG14] requires the scopes read and write", async () => {
    const token = await gateway.token({ label: "reads", scopes: ["read"] });
    const read = await run(["acp"], {
      cwd: folder.path,
      env: { SKEIN_DIR: gateway.root, SKEIN_TOKEN: token },
    });
    expect(read.err).toMatch(/needs read and write access/);
  });
});
