import { realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import type { Skein, ToolContext } from "../../src/index.ts";
import { defineTool, sessionTools } from "../../src/index.ts";
import { startHttpToolServer } from "../support/mcp-http.ts";
import { closeDoors, doorNames, openDoors } from "../support/policy-doors.ts";
import { supportProgram } from "../support/programs.ts";
import { closeAll, newFolder, withScript } from "../support/skein.ts";
import { soon } from "../support/soon.ts";
import type { WholeGateway } from "../support/whole-gateway.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

const gateways: WholeGateway[] = [];
afterEach(async () => {
  await closeDoors();
  await closeAll();
  for (const gateway of gateways.splice(0)) await gateway.close();
});

const main = "agent:main:main";
const stranger = "agent:main:session:stranger";
const outside = doorNames.filter((door) => door !== "run");

/** `skein.yaml` with rules for the agent `main`. */
function configOf(agent: string, more = ""): string {
  return `agents: { main: { model: rehearsal/script, ${agent} } }\n${more}`;
}

async function spawnChild(skein: Skein, options: object = {}): Promise<string> {
  const { result, rootId } = await skein.callTool(
    "sessions_spawn",
    { task: "wait" },
    { sessionKey: main, ...options },
  );
  await skein.settled(rootId ?? "");
  return (await skein.runs.get(String(result.runId)))?.session.key ?? "";
}

describe("which tools may be called", () => {
  test.each(doorNames)("[POL1] a tool in tools.deny is refused: %s", async (door) => {
    const { call } = await openDoors(configOf("tools: { deny: [session_search] }"));
    await call("run", "agents_list", {});
    expect(await call(door, "session_search", { query: "x" })).toMatchObject({ isError: true });
    expect(await call(door, "agents_list", {})).toMatchObject({ isError: false });
  });

  test.each(doorNames)("[POL1] a tool missing from tools.allow is refused: %s", async (door) => {
    const { call } = await openDoors(configOf("tools: { allow: [agents_list] }"));
    await call("run", "agents_list", {});
    expect(await call(door, "sessions_list", {})).toMatchObject({ isError: true });
    expect(await call(door, "agents_list", {})).toMatchObject({ isError: false });
  });

  test.each(outside.filter((door) => door !== "sessionTools"))(
    "[POL2] the refusal is forbidden, and names the deciding rule: %s",
    async (door) => {
      const { call } = await openDoors(configOf('tools: { deny: ["session_sea*"] }'));
      await call("run", "agents_list", {});
      const { text } = await call(door, "session_search", { query: "x" });
      expect(text).toContain("session_sea*");
      expect(text).toContain("forbidden");
    },
  );

  test.each(doorNames.filter((door) => door !== "MCP"))(
    "[POL3] a sub-agent is refused tools of the sub-agent deny list: %s",
    async (door) => {
      const { skein, call } = await openDoors(configOf("maxSteps: 5"));
      const child = await spawnChild(skein);
      const args = { sessionKey: main, message: "x" };
      expect(await call(door, "sessions_send", args, child)).toMatchObject({ isError: true });
      expect(await call(door, "session_search", { query: "x" }, child)).toMatchObject({ isError: true });
      const { isError } = await call(door, "sessions_send", { ...args, sessionKey: child });
      expect(isError).toBe(false);
    },
  );

  test.each(["sessionTools", "MCP"] as const)(
    "[POL4] only tools that may be called are listed: %s",
    async (door) => {
      const rules = "tools: { deny: [sessions_spawn], allow: [sessions_*] }";
      const { list } = await openDoors(configOf(rules));
      const left = ["sessions_history", "sessions_list", "sessions_send", "sessions_yield"];
      expect((await list(door)).sort()).toEqual(left);
    },
  );
});

describe("who decides about a call", () => {
  test.each(doorNames.filter((door) => door !== "CLI"))(
    "[POL5] before_tool_call can block a call: %s",
    async (door) => {
      const { hooks, call } = await openDoors(configOf("maxSteps: 5"));
      await call("run", "agents_list", {});
      hooks.on("before_tool_call", ({ toolName }) =>
        toolName === "session_search" ? { block: "not on Sundays" } : undefined,
      );
      const { isError, text } = await call(door, "session_search", { query: "x" });
      expect(isError).toBe(true);
      expect(text).toContain("not on Sundays");
    },
  );

  test.each(doorNames.filter((door) => door !== "CLI"))(
    "[POL5] before_tool_call can change the arguments of a call, and after_tool_call sees the result: %s",
    async (door) => {
      const { hooks, call } = await openDoors(configOf("maxSteps: 5"));
      await call("run", "agents_list", {});
      const seen: unknown[] = [];
      hooks.on("before_tool_call", () => ({ replace: { kinds: ["nonsense"] } }));
      hooks.on("after_tool_call", ({ toolName, result }) => void seen.push([toolName, result.isError]));
      const { text } = await call(door, "sessions_list", {});
      expect(text).toContain("nonsense");
      expect(seen).toContainEqual(["sessions_list", true]);
    },
  );

  test.each(outside)("[POL6] a tool in tools.ask is refused if no one can be asked: %s", async (door) => {
    const { skein, call } = await openDoors(configOf("tools: { ask: [agents_list] }"));
    await skein.session({ sessionKey: main }).send("hello").result;
    const { isError, text } = await call(door, "agents_list", {});
    expect(isError).toBe(true);
    expect(text).toContain("needs a person's approval");
  });

  test.each(doorNames)("[POL7] visibility decides which sessions a call reaches: %s", async (door) => {
    const { skein, call } = await openDoors(configOf("maxSteps: 5"));
    await skein.session({ sessionKey: main }).send("hello").result;
    await skein.session({ sessionKey: stranger }).send("hello").result;
    const { isError, text } = await call(door, "sessions_history", { sessionKey: stranger });
    expect(isError).toBe(true);
    expect(text).toContain("visibility is restricted to the current session tree");
  });

  test.each(outside)("[POL8] work started by a call from outside has its own budget: %s", async (door) => {
    const { skein, call } = await openDoors(
      configOf("subagents: { maxSpawnDepth: 2 }", "budget: { runs: 1 }\n"),
    );
    await skein.session({ sessionKey: main }).send("hello").result;
    const rootIds = new Set<string>();
    for (const nonce of [1, 2]) {
      const seen = new Set((await skein.runs.list()).map(({ runId }) => runId));
      const task = JSON.stringify({ name: "sessions_spawn", args: { task: "wait" }, nonce });
      expect(await call(door, "sessions_spawn", { task })).toMatchObject({ isError: false });
      const child = (await skein.runs.list()).find(({ runId }) => !seen.has(runId));
      const { rootId = "", key = "" } = child === undefined ? {} : await rootOf(skein, child.runId);
      rootIds.add(rootId);
      await skein.settled(rootId);
      // The child's own spawn is the second run of the request.
      const refused = await lastResultOf(skein, key);
      expect(refused).toContain("budget_exceeded");
      expect(refused).toMatch(/limit[^a-z]+runs/);
      expect(refused).toMatch(/figure[^a-z]+2/);
      expect(await skein.budget(rootId)).toMatchObject({ runs: 1, hops: 0 });
    }
    expect(rootIds.size).toBe(2);
  });

  const doorsOfTools: Record<string, (skein: Skein, context: ToolContext) => Promise<unknown>> = {
    callTool: async (skein, context) =>
      (await skein.callTool("sessions_spawn", { task: "look" }, context)).result,
    invokeTool: async (skein, context) =>
      (await skein.invokeTool("sessions_spawn", { task: "look" }, context)).result,
    sessionTools: async (skein, context) =>
      (await sessionTools(skein, context)).sessions_spawn?.execute({ task: "look" }, { toolCallId: "same" }),
  };
  test.each(Object.entries(doorsOfTools))(
    "[POL9] a call that a tool makes for its run counts toward the budget of that run: %s",
    async (_, spawn) => {
      let skein: Skein | null = null;
      const results: unknown[] = [];
      const delegate = defineTool({
        name: "delegate",
        description: "Spawns a helper.",
        execute: async (_args, context: ToolContext) => {
          if (skein !== null) results.push(await spawn(skein, context));
          return "done";
        },
      });
      const config = join(newFolder(), "skein.yaml");
      writeFileSync(config, "budget: { runs: 2 }\n");
      const opened = await withScript(
        ({ prompt }) =>
          JSON.stringify(prompt).includes("delegate twice") ? step(prompt.at(-1)?.role) : { text: "Yes." },
        { tools: [delegate] },
        { config },
      );
      skein = opened.skein;
      const { runId } = await skein.session({ sessionKey: main }).send("delegate twice").result;
      const codes = results.map((result) => (result as { code?: string; status: string }).code ?? "ok");
      expect(codes.sort()).toEqual(["budget_exceeded", "ok"]);
      expect(await skein.budget((await rootOf(skein, runId)).rootId)).toMatchObject({ runs: 2 });
    },
  );
});

async function rootOf(skein: Skein, runId: string) {
  const run = await skein.runs.get(runId);
  return { rootId: run?.root.rootId ?? "", key: run?.session.key ?? "" };
}

function step(role: string | undefined) {
  if (role === "tool") return { text: "Done." };
  return { calls: [{ name: "delegate" }, { name: "delegate" }] };
}

describe("tools of MCP servers", () => {
  const server = supportProgram("mcp-stdio");
  const withServer = (approval: boolean) =>
    configOf(
      "maxSteps: 5",
      `mcpServers: { shop: { command: ${process.execPath}, args: [${server}], approval: ${approval} } }\n`,
    );

  test.each([
    ["denied", "not approved", false],
    ["approved", "hello", true],
  ] as const)(
    "[POL10] with mcpServers.<server>.approval a run waits for a person before each call: %s",
    async (decision, expected, isCalled) => {
      const { skein } = await openDoors(withServer(true));
      const asked = new Promise<string>((resolve) => {
        skein.subscribe((event) => event.type === "approval.requested" && resolve(event.approvalId));
      });
      const text = JSON.stringify({ name: "shop__echo", args: { say: "hello" } });
      const turn = skein.session({ sessionKey: main }).send(text);
      await skein.approvals.resolve(await asked, decision);
      await turn.result;
      const result = await lastResultOf(skein);
      expect(result).toContain(expected);
      expect(result.includes('"isError":true')).toBe(!isCalled);
    },
  );

  test("[POL10] with mcpServers.<server>.approval a call from outside is refused", async () => {
    const { skein } = await openDoors(withServer(true));
    await skein.session({ sessionKey: main }).send("hello").result;
    const invoked = await skein.invokeTool("shop__echo", { say: "hello" }, { sessionKey: main });
    expect(invoked).toMatchObject({ isError: true, result: { status: "forbidden" } });
  });

  test("[POL10] without mcpServers.<server>.approval no approval is requested", async () => {
    const { skein } = await openDoors(withServer(false));
    await skein.session({ sessionKey: main }).send("hello").result;
    const invoked = await skein.invokeTool("shop__echo", { say: "hello" }, { sessionKey: main });
    expect(invoked).toMatchObject({ isError: false });
  });
});

async function lastResultOf(skein: Skein, sessionKey = main): Promise<string> {
  const session = await skein.session({ sessionKey }).record();
  const page = await skein.store.sessions.page({}, session?.sessionId ?? "", { along: "branch", limit: 100 });
  return JSON.stringify(page?.entries.filter((entry) => JSON.stringify(entry).includes("toolResult")).at(-1));
}

describe("file paths", () => {
  const tools = [
    defineTool({
      name: "read_note",
      description: "Reads a note.",
      execute: (_, { cwd }) => {
        throw new Error(`ENOENT: no such file, open '${cwd}/notes/today.txt' in /var/lib/secret/place.txt`);
      },
    }),
  ];
  const sandboxed = { sandboxed: true };

  test.each([
    ["the operator's model", {}, {}],
    ["a sandboxed session", sandboxed, {}],
    ["the model of a user", {}, { userId: "ann" }],
  ])("[POL11] sessions_list gives no transcriptPath to %s", async (_, agent, who) => {
    const { skein } = await withScript(() => ({ text: "Yes." }), { ...agent }, { dir: newFolder() });
    await skein.session({ sessionKey: main, ...who }).send("hello").result;
    for (const door of ["callTool", "invokeTool"] as const) {
      const { result } = await skein[door]("sessions_list", {}, { sessionKey: main, ...who });
      expect(result).toMatchObject({ count: 1 });
      expect(JSON.stringify(result)).not.toContain("transcriptPath");
    }
  });

  test("[POL12] with tools.sessions.showPaths models see transcriptPath, unless they are sandboxed", async () => {
    const config = configOf("maxSteps: 5", "tools: { sessions: { showPaths: true } }\n");
    const { skein, root } = await openDoors(config);
    await skein.session({ sessionKey: main }).send("hello").result;
    const { result } = await skein.callTool("sessions_list", {}, { sessionKey: main });
    expect(JSON.stringify(result)).toContain(realpathSync(root));
    const apart = await openDoors(configOf("sandboxed: true", "tools: { sessions: { showPaths: true } }\n"));
    await apart.skein.session({ sessionKey: main }).send("hello").result;
    const listed = await apart.skein.callTool("sessions_list", {}, { sessionKey: main });
    expect(JSON.stringify(listed.result)).not.toContain("transcriptPath");
  });

  test.each([
    ["a sandboxed session", sandboxed, {}],
    ["a user's session", {}, { userId: "ann" }],
  ])("[POL13] a tool error shows the model of %s no path outside its folder", async (_, agent, who) => {
    const root = newFolder();
    const { skein, lines } = await withScript(
      ({ prompt }) =>
        prompt.at(-1)?.role === "tool" ? { text: "Sad." } : { calls: [{ name: "read_note" }] },
      { tools, ...agent },
      { dir: root },
    );
    await skein.session({ sessionKey: main, ...who }).send("read").result;
    const session = await skein.session({ sessionKey: main, ...who }).record();
    const said = (await lines(session?.sessionId ?? "", (who as { userId?: string }).userId)).join("\n");
    expect(said).toContain("ENOENT: no such file, open 'notes/today.txt'");
    expect(said).not.toContain("/var/lib/secret");
    const invoked = await skein.invokeTool("read_note", {}, { sessionKey: main, ...who });
    expect(invoked).toMatchObject({ isError: true });
    expect(JSON.stringify(invoked.result)).not.toContain("/var/lib/secret");
  });

  test("[POL13] the operator's own model sees a tool error unchanged", async () => {
    const { skein } = await withScript(() => ({ text: "Yes." }), { tools });
    await skein.session({ sessionKey: main }).send("hello").result;
    const invoked = await skein.invokeTool("read_note", {}, { sessionKey: main });
    expect(JSON.stringify(invoked.result)).toContain("/var/lib/secret/place.txt");
  });

  test.each([
    ["a sandboxed session", sandboxed, {}],
    ["a user's session", {}, { userId: "ann" }],
  ])("[POL15] no session tool names the store's folder to %s", async (_, agent, who) => {
    const root = newFolder();
    const { skein } = await withScript(() => ({ text: "Yes." }), { ...agent }, { dir: root, cwd: root });
    const how = { sessionKey: main, ...who };
    await skein.session(how).send("hello").result;
    const child = await spawnChild(skein, who);
    const calls: [string, object][] = [
      ["sessions_list", { messageLimit: 5 }],
      ["sessions_history", { sessionKey: child, includeTools: true }],
      ["sessions_history", { sessionKey: "agent:main:session:none" }],
      ["sessions_send", { sessionKey: "nobody", message: "x" }],
      ["sessions_spawn", { task: "x", cwd: `${root}/other` }],
      ["sessions_spawn", { task: "x", attachments: [{ name: "../a", content: "x" }] }],
      [
        "sessions_spawn",
        { task: "x", attachments: [{ name: "a", content: "x" }], attachAs: { mountPath: "../x" } },
      ],
      ["session_status", {}],
      ["session_search", { query: "hello" }],
      ["session_list", {}],
      ["subagents", { action: "list" }],
      ["agents_list", {}],
    ];
    for (const [name, args] of calls) {
      const { result, rootId } = await skein.callTool(name, args, how);
      if (rootId !== null) await skein.settled(rootId);
      expect([name, JSON.stringify(result)]).toEqual([name, expect.not.stringContaining(root)]);
    }
  });
});

describe("heavy calls at a gateway", () => {
  const light = { name: "agents_list", arguments: {} };
  const sessionKey = "agent:main:node:x";

  async function openGateway(options: Parameters<typeof wholeGateway>[0]) {
    const gateway = await wholeGateway(options);
    gateways.push(gateway);
    const token = await gateway.token({ scopes: ["read", "write", "tools"], userId: "ann" });
    const client = await gateway.client(token);
    const invoke = (tool: { name: string; arguments: Record<string, unknown> }) =>
      client.call("tools.invoke", { sessionKey, ...tool });
    return { gateway, token, client, invoke };
  }

  test("a tool of an MCP server counts as a heavy call of its token", async () => {
    const shop = await startHttpToolServer();
    const { gateway, token, client, invoke } = await openGateway({
      config: `mcpServers: { shop: { url: "${shop.url}" } }\n`,
    });
    await client.call("sessions.create", { key: sessionKey });
    const echo = { name: "shop__echo", arguments: { say: "hello" } };
    expect(await invoke(echo)).toMatchObject({ isError: false });
    const callsOf = async (tool: string) => {
      const bodies = await Promise.all(shop.requests.map((request) => request.clone().text()));
      return bodies.filter((body) => body.includes(`"name":"${tool}"`)).length;
    };
    const leaving = new AbortController();
    const wait = () =>
      fetch(`${gateway.url}/rpc/tools.invoke`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
        body: JSON.stringify({ sessionKey, name: "shop__wait" }),
        signal: leaving.signal,
      }).catch(() => null);
    const held = [wait(), wait()];
    await soon(() => callsOf("wait")).toBe(2);
    const order: string[] = [];
    const queued = invoke(echo).then(() => order.push("echo"));
    for (let at = 0; at < 10; at += 1) await invoke(light);
    order.push("left");
    leaving.abort();
    await Promise.all([...held, queued]);
    expect(order).toEqual(["left", "echo"]);
    await shop.close();
  });
});
