import { once } from "node:events";
import { realpathSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test } from "vitest";
import { isAlive, isWardenOf, marked } from "../../../test/support/marked.ts";
import { pixel } from "../../../test/support/mcp-tools.ts";
import { soon } from "../../../test/support/soon.ts";
import type { ToolCallContext } from "../contract.ts";
import type { McpCommand } from "./connection.ts";
import type { McpOptions, McpTools } from "./open-servers.ts";
import { openMcpServers } from "./open-servers.ts";

const program = fileURLToPath(new URL("../../../test/support/mcp-stdio.ts", import.meta.url));
const command = (mode: string, more: Partial<McpCommand> = {}): McpCommand => ({
  command: process.execPath,
  args: [program, mode],
  ...more,
});

const open: McpTools[] = [];
/** A timeout that catches hangs but is long enough for a busy machine. */
const startTimeoutMs = 120_000;
afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()));
});

async function serving(mode: string, more: Partial<McpCommand> = {}, deps: McpOptions = {}) {
  const servers = await openMcpServers({ t: command(mode, more) }, { startTimeoutMs, ...deps });
  open.push(servers);
  return servers;
}

const call = (signal = new AbortController().signal) => ({ signal }) as ToolCallContext;

async function use(servers: McpTools, name: string, args: object = {}, signal?: AbortSignal) {
  const { tools, diagnostics } = await servers.tools();
  const tool = tools.find((each) => each.name === `t__${name}`);
  if (tool === undefined) throw new Error(`no ${name}: ${JSON.stringify(diagnostics)}`);
  return await tool.execute(args, call(signal));
}

async function textOf(servers: McpTools, name: string, args: object = {}): Promise<string> {
  const [block] = (await use(servers, name, args)).content;
  return block?.type === "text" ? block.text : "";
}

/** Waits until a call to `wait` has arrived. */
async function untilWaiting(servers: McpTools): Promise<void> {
  while (JSON.parse(await textOf(servers, "counts")).waiting === 0);
}

/** Returns the process's mark once the process has left two others behind, one of them outside its group. */
async function leaving(servers: McpTools): Promise<string> {
  const { SKEIN_CHILD: mark } = JSON.parse(await textOf(servers, "env"));
  await textOf(servers, "leave");
  // The process, its warden, and two shells with the processes they wait for.
  await soon(() => marked(mark).length).toBe(6);
  return mark;
}

describe("MCP tools of a child process", () => {
  test("are listed with name, description, schema, groups and replay", async () => {
    const { tools, diagnostics } = await (await serving("tools")).tools();
    expect(diagnostics).toEqual([]);
    expect(tools.find(({ name }) => name === "t__echo")).toMatchObject({
      description: "Says it again.",
      inputSchema: { type: "object", properties: { say: { type: "string" } } },
      replay: "safe",
      groups: ["group:mcp", "group:mcp:t"],
    });
    const pid = tools.find(({ name }) => name === "t__pid");
    expect(pid).toMatchObject({ description: "pid", replay: "never" });
    expect(pid?.inputSchema).toEqual({ type: "object", properties: {} });
  });

  test("a hundred tools arrive in pages; an endless list or a repeated name is reported", async () => {
    const { tools } = await (await serving("pages")).tools();
    expect(tools.map(({ name }) => name)).toEqual(
      Array.from({ length: 100 }, (_, index) => `t__tool${index}`),
    );
    const circle = await (await serving("circle")).tools();
    expect(circle).toMatchObject({ tools: [], diagnostics: [{ note: expect.stringContaining("cyclic") }] });
    const twice = await (await serving("twice")).tools();
    expect(twice.tools).toHaveLength(1);
    expect(twice.diagnostics).toMatchObject([{ code: "mcp_tool_left_out", server: "t" }]);
  });

  test("a changed list is requested again", async () => {
    const servers = await serving("tools");
    const before = (await servers.tools()).tools.length;
    await use(servers, "grow");
    expect((await servers.tools()).tools).toHaveLength(before + 1);
    expect(await textOf(servers, "grown")).toBe("new");
  });

  test("returns text, images, structured content, failures and refusals", async () => {
    const servers = await serving("tools");
    expect(await use(servers, "echo", { say: "hello" })).toEqual({
      content: [{ type: "text", text: "hello" }],
    });
    expect(await use(servers, "picture")).toEqual({
      content: [{ type: "image", data: pixel, mimeType: "image/png" }],
    });
    expect(await textOf(servers, "structured")).toBe('{"degrees":21}');
    expect(await use(servers, "fails")).toMatchObject({
      isError: true,
      content: [{ text: "the disk is full" }],
    });
    const pid = await textOf(servers, "pid");
    expect(await use(servers, "refuses")).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining("say is missing") }],
    });
    expect(await textOf(servers, "pid")).toBe(pid);
  });

  test("an abort is sent to the server", async () => {
    const servers = await serving("tools");
    const aborting = new AbortController();
    const pending = use(servers, "wait", {}, aborting.signal);
    const outcome = pending.catch((error: unknown) => error);
    await untilWaiting(servers);
    const reason = new Error("enough");
    aborting.abort(reason);
    expect(await outcome).toBe(reason);
    expect(JSON.parse(await textOf(servers, "counts"))).toEqual({ waiting: 1, cancelled: 1 });
    await expect(use(servers, "echo", {}, AbortSignal.abort(reason))).rejects.toBe(reason);
  });

  test("a call that takes too long is a failed result", async () => {
    expect(await use(await serving("tools", { timeoutMs: 300 }), "wait")).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining("did not respond within 0.3 s") }],
    });
  });

  test("one process serves all calls, started on first use with PATH, HOME, LANG, its own environment and its mark", async () => {
    const env = { PATH: "/bin", HOME: "/nowhere", LANG: "C", OPENAI_API_KEY: "hidden" };
    const forged = { OWN: "1", SKEIN_CHILD: "forged" };
    const servers = await serving("tools", { env: forged, cwd: tmpdir() }, { env });
    const [one, two] = await Promise.all([textOf(servers, "pid"), textOf(servers, "pid")]);
    expect(one).toBe(two);
    expect(await textOf(servers, "cwd")).toBe(realpathSync(tmpdir()));
    const { __CF_USER_TEXT_ENCODING: _, ...given } = JSON.parse(await textOf(servers, "env"));
    const mark = expect.stringMatching(/^[0-9a-f-]{36}$/);
    expect(given).toEqual({ PATH: "/bin", HOME: "/nowhere", LANG: "C", OWN: "1", SKEIN_CHILD: mark });
  });

  test("sampling is refused", async () => {
    expect(await textOf(await serving("tools"), "ask")).toMatch(/Method not found/);
  });
});

describe("a process that fails", () => {
  const shell = (script: string): McpCommand => ({ command: "/bin/sh", args: ["-c", script] });
  /** Returns the note from the only diagnostic, which reports an omitted server. */
  async function noteOf(config: McpCommand, deps: McpOptions = { startTimeoutMs }): Promise<string> {
    const servers = await openMcpServers({ bad: config }, deps);
    open.push(servers);
    const { tools, diagnostics } = await servers.tools();
    expect(tools).toEqual([]);
    expect(diagnostics).toMatchObject([{ code: "mcp_server_unavailable", server: "bad" }]);
    return diagnostics[0]?.note ?? "";
  }
  test.each<[string, McpCommand, RegExp]>([
    ["does not exist", { command: "/no/such/program" }, /"\/no\/such\/program" does not exist/],
    ["is not on PATH", { command: "no-such" }, /"no-such" was not found on PATH/],
    ["has no folder", command("tools", { cwd: "/no/such" }), /working directory "\/no\/such" does not exist/],
    ["exits at once", command("exits"), /exited with code 7.*no licence/],
    ["writes an endless line", command("endless"), /a line of more than/],
  ])("[LIB23] a server that %s is left out, and a diagnostic gives the reason", async (_, config, why) => {
    expect(await noteOf(config)).toMatch(why);
  });

  test.each<[string, McpCommand, string]>([
    ["is silent", shell("echo loading >&2; exec sleep 600"), "; its stderr ends with: loading"],
    [
      "writes garbage",
      shell("echo Welcome!; echo '{}'; exec sleep 600"),
      "; it wrote a line that is not a message: Welcome!",
    ],
  ])(
    "[LIB23] a server that %s is left out after a timeout, and a diagnostic gives the reason",
    async (_, config, said) => {
      // Waits as long as it takes for the process to start.
      let seconds = 1;
      let note = await noteOf(config, { startTimeoutMs: 1000 });
      while (!note.includes(said) && seconds < 30) {
        seconds *= 2;
        note = await noteOf(config, { startTimeoutMs: seconds * 1000 });
      }
      expect(note).toContain(`did not respond within ${seconds} s${said}`);
    },
  );

  test("[LIB23] the other servers remain available", async () => {
    const servers = await openMcpServers({ bad: command("exits"), t: command("tools") }, { startTimeoutMs });
    open.push(servers);
    const { tools, diagnostics } = await servers.tools();
    expect(diagnostics).toHaveLength(1);
    expect(tools.length).toBeGreaterThan(5);
  });

  test("[LIB23] a name that is not configured is reported", async () => {
    const { diagnostics } = await (await serving("tools")).tools(["other"]);
    expect(diagnostics).toMatchObject([
      { server: "other", note: expect.stringContaining("not in the configuration") },
    ]);
  });

  test("a crash during a call is a failed result with the reason, and the next use restarts the server", async () => {
    const servers = await serving("tools");
    const pid = Number(await textOf(servers, "pid"));
    const waiting = use(servers, "wait");
    const crashed = await use(servers, "crash");
    expect(crashed).toMatchObject({
      isError: true,
      content: [{ text: expect.stringMatching(/exited with code 3.*out of memory/) }],
    });
    expect(await waiting).toMatchObject({ isError: true });
    expect(Number(await textOf(servers, "pid"))).not.toBe(pid);
  });

  test("a server that keeps failing is retried at increasing intervals", async () => {
    let now = 0;
    const servers = await serving("exits", {}, { clock: { now: () => now } });
    const note = async () => (await servers.tools()).diagnostics[0]?.note ?? "";
    expect(await note()).not.toMatch(/next attempt/);
    expect(await note()).toMatch(/code 7.*next attempt is in 1 s/);
    now = 1000;
    expect(await note()).not.toMatch(/next attempt/);
    now = 2000;
    expect(await note()).toMatch(/next attempt is in 1 s/);
  });
});

describe.runIf(process.platform === "linux")("processes started by a server", () => {
  test("[MCT8] are stopped on close, even outside its process group", async () => {
    const servers = await serving("stubborn");
    const mark = await leaving(servers);
    await servers.close();
    expect(marked(mark)).toEqual([]);
  });

  test("are stopped when the server exits by itself", async () => {
    const servers = await serving("tools");
    const mark = await leaving(servers);
    expect(await use(servers, "crash")).toMatchObject({ isError: true });
    expect(marked(mark)).toEqual([]);
  });

  test("do not survive the warden, nor does the server; the next use starts it again", async () => {
    const servers = await serving("stubborn");
    const mark = await leaving(servers);
    const pid = Number(await textOf(servers, "pid"));
    const waiting = use(servers, "wait");
    await untilWaiting(servers);
    const warden = marked(mark).find((each) => isWardenOf(each, mark)) ?? 0;
    process.kill(warden, "SIGKILL");
    expect(await waiting).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining("killed by SIGKILL") }],
    });
    expect(marked(mark)).toEqual([]);
    expect(Number(await textOf(servers, "pid"))).not.toBe(pid);
  });
});

describe("close", () => {
  test("[MCT8] stops the process and everything it started, even if it ignores the signal", async () => {
    const sockets = createServer();
    sockets.listen(0, "127.0.0.1");
    await once(sockets, "listening");
    const { port } = sockets.address() as AddressInfo;
    const servers = await serving("stubborn");
    const pid = Number(await textOf(servers, "pid"));
    const born = once(sockets, "connection");
    await textOf(servers, "family", { port });
    const [grandchild] = await born;
    const gone = once(grandchild, "close");
    grandchild.on("error", () => undefined);
    await servers.close();
    expect(isAlive(pid)).toBe(false);
    await gone;
    sockets.close();
    const { diagnostics } = await servers.tools();
    expect(diagnostics).toMatchObject([{ note: expect.stringContaining("it is closed") }]);
  });

  test("[MCT8] does not wait for a start, and is harmless if nothing runs", async () => {
    const servers = await serving("silent", {}, { startTimeoutMs: 1_000_000 });
    const asked = servers.tools();
    await servers.close();
    expect((await asked).tools).toEqual([]);
    await servers.close();
    await (await serving("tools")).close();
  });
});
