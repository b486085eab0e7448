// Makes the same session tool call through every public entry point of one Skein instance and returns the results in
// one form.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { JSONObject, LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type { ModelStep } from "../../src/entry-testing.ts";
import { scriptedModel, temporaryFolder } from "../../src/entry-testing.ts";
import type { Skein } from "../../src/index.ts";
import { createSkein, HookRegistry, sessionTools } from "../../src/index.ts";
import { run as runCommand } from "./cli.ts";
import { closeAll as closeMcp, newClient } from "./mcp-client.ts";
import { startMcp } from "./mcp-gateway.ts";
import { textOf } from "./text.ts";

export const doorNames = ["run", "callTool", "invokeTool", "sessionTools", "MCP", "CLI"] as const;
export type DoorName = (typeof doorNames)[number];

export interface DoorAnswer {
  readonly isError: boolean;
  /** The whole result as the caller receives it. */
  readonly text: string;
}

export interface Doors {
  readonly skein: Skein;
  readonly hooks: HookRegistry;
  readonly home: string;
  readonly root: string;
  /** The MCP client acts from its own node session, so `sessionKey` has no effect there. */
  call(door: DoorName, name: string, args: object, sessionKey?: string): Promise<DoorAnswer>;
  /** Returns the names of the tools that the entry point lists. */
  list(door: "sessionTools" | "MCP"): Promise<string[]>;
}

const closing: (() => Promise<unknown> | unknown)[] = [];

/** For use in afterEach. */
export async function closeDoors(): Promise<void> {
  const all = closing.splice(0).reverse();
  for (const close of all) await close();
}

const main = "agent:main:main";

/** A folder with this `skein.yaml`, opened as a library. Agents use a model that makes any call it receives as JSON. */
export async function openDoors(config: string): Promise<Doors> {
  const home = temporaryFolder("skein-policy-");
  closing.push(() => home.remove());
  const root = join(home.path, "root");
  writeFileSync(join(home.path, "skein.yaml"), config);
  const hooks = new HookRegistry();
  let nonce = 0;
  const skein = await createSkein({
    dir: root,
    config: join(home.path, "skein.yaml"),
    cwd: home.path,
    env: { HOME: home.path },
    hooks,
    models: { "rehearsal/script": scriptedModel(makeAskedCalls()) },
    quiet: true,
  });
  closing.push(() => skein.close({ graceMs: 0 }));
  const client = async () => {
    const { url } = await startMcp(skein);
    closing.push(closeMcp);
    const mcp = newClient("2025-11-25");
    await mcp.connect(new StreamableHTTPClientTransport(new URL(url)));
    closing.push(() => mcp.close());
    return mcp;
  };
  const calls: Record<DoorName, (name: string, args: object, sessionKey: string) => Promise<DoorAnswer>> = {
    run: async (name, args, sessionKey) => {
      await skein.session({ sessionKey }).send(JSON.stringify({ name, args, nonce: nonce++ })).result;
      return lastResult(skein, sessionKey);
    },
    callTool: async (name, args, sessionKey) =>
      answerOf((await skein.callTool(name, args, { sessionKey })).result),
    invokeTool: async (name, args, sessionKey) => {
      const { result, isError } = await skein.invokeTool(name, { ...args }, { sessionKey });
      return { isError, text: JSON.stringify(result) };
    },
    sessionTools: async (name, args, sessionKey) => {
      const tool = (await sessionTools(skein, { sessionKey }))[name];
      if (tool === undefined) return { isError: true, text: `sessionTools() does not offer ${name}` };
      return answerOf(await tool.execute(args, { toolCallId: "call-1" }));
    },
    MCP: async (name, args) => {
      const { isError = false, content } = await (await client()).callTool({ name, arguments: { ...args } });
      return { isError: isError === true, text: JSON.stringify(content) };
    },
    CLI: async (name, args, sessionKey) => {
      const line = ["tool", name, JSON.stringify(args), "--session", sessionKey, "--no-wait", "--json"];
      const { out, err, exit } = await runCommand([...line, "--dir", root], {
        cwd: home.path,
        env: {},
        home: home.path,
      });
      return { isError: exit !== 0, text: out + err };
    },
  };
  return {
    skein,
    hooks,
    home: home.path,
    root,
    call: (door, name, args, sessionKey = main) => calls[door](name, args, sessionKey),
    list: async (door) => {
      if (door === "sessionTools") return Object.keys(await sessionTools(skein, { sessionKey: main }));
      return (await (await client()).listTools()).tools.map(({ name }) => name);
    },
  };
}

function answerOf(result: Readonly<Record<string, unknown>>): DoorAnswer {
  const { status } = result;
  return { isError: status === "error" || status === "forbidden", text: JSON.stringify(result) };
}

/** Makes the call that a user message describes, once. */
function makeAskedCalls(): (request: LanguageModelV4CallOptions) => ModelStep {
  const made = new Set<string>();
  return ({ prompt }) => {
    const last = prompt.findLast(({ role }) => role === "user");
    const parts = last?.role === "user" ? last.content : [];
    const text = parts.map((part) => (part.type === "text" ? part.text : "")).join("");
    const [asked] = /\{"name":.*\}/.exec(text) ?? [];
    // A call to a tool that is not offered might be missing from the next request.
    if (asked === undefined || made.has(asked)) return { text: "Done." };
    made.add(asked);
    const { name, args } = JSON.parse(asked) as { readonly name: string; readonly args: JSONObject };
    return { calls: [{ name, arguments: args }] };
  };
}

async function lastResult({ store }: Skein, sessionKey: string): Promise<DoorAnswer> {
  const [session] = await store.sessions.find({}, { by: "key", key: sessionKey });
  const page = await store.sessions.page({}, session?.sessionId ?? "", { along: "branch", limit: 1000 });
  const results = (page?.entries ?? []).flatMap((entry) =>
    entry.type === "message" && entry.message.role === "toolResult" ? [entry.message] : [],
  );
  const { isError = false, content = [] } = results.at(-1) ?? {};
  return { isError, text: textOf(content) };
}
