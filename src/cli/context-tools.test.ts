import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Check } from "typebox/value";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { run } from "../../test/support/cli.ts";
import type { WholeGateway } from "../../test/support/whole-gateway.ts";
import { wholeGateway } from "../../test/support/whole-gateway.ts";
import { openFolder } from "../app/folder.ts";
import type { ContextPayload } from "../protocol/session-views.ts";
import { ContextPayloadSchema } from "../protocol/session-views.ts";
import type { SessionMeta } from "../store/contract.ts";
import type { TemporaryFolder } from "../testing/support/temporary-folder.ts";
import { temporaryFolder } from "../testing/support/temporary-folder.ts";

let folder: TemporaryFolder;
let gateway: WholeGateway | null = null;

beforeEach(() => {
  folder = temporaryFolder("skein-context-tools-");
});
afterEach(async () => {
  await gateway?.close();
  gateway = null;
  folder.remove();
});

const agents = `agents:
  main: { model: rehearsal/basic }
  reader: { model: rehearsal/basic, tools: { allow: [sessions_list, sessions_history] } }
`;
const started = () => join(folder.path, "started");
/** A server that leaves a trace if it is started. */
const server = () => {
  const args = ["-e", `require("node:fs").writeFileSync(${JSON.stringify(started())}, "")`];
  return `mcpServers: { notes: ${JSON.stringify({ command: process.execPath, args })} }\n`;
};

const skein = (...args: string[]) => {
  const { path } = folder;
  return run(args, { cwd: path, home: path, env: { SKEIN_DIR: join(path, "root") } });
};
const contextOf = async (...args: string[]): Promise<ContextPayload> => {
  const payload = JSON.parse((await skein("context", ...args, "--json")).out);
  expect(Check(ContextPayloadSchema, payload)).toBe(true);
  return payload;
};
const names = ({ request }: ContextPayload) => request.tools?.map(({ name }) => name);

async function begin(config: string, ...sessions: [key: string, meta?: SessionMeta][]): Promise<void> {
  writeFileSync(join(folder.path, "skein.yaml"), config);
  const store = await openFolder({ root: join(folder.path, "root") });
  try {
    for (const [key, meta = {}] of sessions) {
      const { sessionId } = await store.sessions.create({}, { key, cwd: "/", meta });
      await store.sessions.append({}, sessionId, [
        { draft: { type: "message", message: { role: "user", content: "Hello" } } },
        ...calls.flatMap((name) => [{ draft: callOf(name) }, { draft: resultOf(name) }]),
        { draft: { type: "message", message: { role: "user", content: "Thanks" } } },
      ]);
    }
  } finally {
    await store.close();
  }
}

/** The calls in the history: to an offered tool, to an MCP server's tool, and to a tool that does not exist. */
const calls = ["sessions_list", "notes__find", "of_old"];
const callOf = (name: string) => ({
  type: "message" as const,
  message: {
    role: "assistant" as const,
    content: [{ type: "toolCall" as const, id: `call_${name}`, name, arguments: {} }],
    api: "openai-completions",
    provider: "rehearsal",
    model: "basic",
    usage: {
      input: 0,
      output: 0,
      cacheRead: 0,
      cacheWrite: 0,
      totalTokens: 0,
      cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
    },
    stopReason: "toolUse" as const,
    timestamp: 1,
  },
});

const resultOf = (name: string) => ({
  type: "message" as const,
  message: {
    role: "toolResult" as const,
    toolCallId: `call_${name}`,
    toolName: name,
    content: [{ type: "text" as const, text: "done" }],
    isError: false,
    timestamp: 1,
  },
});

describe("the tools in a context", () => {
  test("are those that a turn of the session would get, with their token counts", async () => {
    const child = { spawnedBy: "agent:main:main", role: "leaf" };
    await begin(agents, ["agent:main:main"], ["agent:reader:main"], ["agent:main:subagent:x:y", child]);
    const main = await contextOf("main");
    const { tools } = JSON.parse((await skein("tool", "session_status", "--json")).out);
    expect(names(main)).toEqual(tools);
    expect(tools).toContain("sessions_spawn");
    expect(main.request.tools?.[0]).toMatchObject({
      description: expect.stringMatching(/./),
      inputSchema: { type: "object" },
    });
    expect(main.tokens.tools).toBeGreaterThan(100);
    const reader = await contextOf("agent:reader:main");
    expect(names(reader)).toEqual(["sessions_list", "sessions_history"]);
    expect(reader.tokens.tools).toBeLessThan(main.tokens.tools);
    expect(names(await contextOf("subagent:y"))).toEqual([]);
    const { out } = await skein("context", "agent:reader:main");
    expect(out).toContain("\ntools     2: sessions_list, sessions_history\n");
    expect((await skein("context", "subagent:y")).out).toContain("\ntools     none\n");
  });

  test("are part of the wire format, along with a call of a tool that is not offered", async () => {
    await begin(agents, ["agent:main:main"]);
    const { wire, changes } = await contextOf("main", "--model", "openai/gpt-5", "--wire");
    const body = wire as { tools: { name: string }[]; input: object[] };
    expect(body.tools.map(({ name }) => name)).toContain("sessions_list");
    expect(JSON.stringify(body.input)).toContain("sessions_list");
    expect(JSON.stringify(body.input)).toContain('"of_old"');
    expect(changes.map(({ kind }) => kind)).not.toContain("tools_unknown");
  });

  test("exclude those of a server that is not started, which is reported, and keep their calls", async () => {
    await begin(agents + server(), ["agent:main:main"], ["agent:reader:main"]);
    const { request } = await contextOf("main", "--model", "openai/gpt-5");
    expect(request.toolsUnlisted).toEqual(["the MCP server notes"]);
    expect(JSON.stringify(request.messages)).toContain("notes__find");
    expect(JSON.stringify(request.messages)).toContain('"of_old"');
    expect((await skein("context", "main")).out).toContain(
      "\nThe count does not include tools from the MCP server notes, because this command does not start MCP servers; a run does.\n",
    );
    expect((await contextOf("agent:reader:main")).request).not.toHaveProperty("toolsUnlisted");
    expect(existsSync(started())).toBe(false);
  });

  test("are unknown for an agent that is not configured", async () => {
    await begin(agents, ["agent:gone:main"]);
    const payload = await contextOf("agent:gone:main", "--model", "openai/gpt-5");
    expect(payload.request).not.toHaveProperty("tools");
    expect(payload.tokens.tools).toBe(0);
  });

  test("are the same over a gateway", async () => {
    await begin(agents + server(), ["agent:main:main"]);
    const direct = await contextOf("main");
    gateway = await wholeGateway({ folder, config: agents + server() });
    const { request, tokens } = await contextOf("main");
    expect({ request, tokens }).toEqual({ request: direct.request, tokens: direct.tokens });
    expect(existsSync(started())).toBe(false);
  });
});
