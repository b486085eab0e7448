import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test } from "vitest";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import type { Skein } from "../../src/index.ts";
import { createSkein, defineAgent } from "../../src/index.ts";
import { run } from "../support/cli.ts";
import { supportProgram } from "../support/programs.ts";

const stack: { skein?: Skein; folder: TemporaryFolder }[] = [];
afterEach(async () => {
  for (const { skein, folder } of stack.splice(0)) {
    await skein?.close();
    folder[Symbol.dispose]();
  }
});

function newFolder(): string {
  const folder = temporaryFolder();
  stack.push({ folder });
  return folder.path;
}

async function open(yaml = ""): Promise<Skein> {
  const folder = temporaryFolder();
  const config = join(folder.path, "skein.yaml");
  writeFileSync(config, yaml);
  const agents = [defineAgent({ id: "main", model: "rehearsal/basic" })];
  const options = { dir: join(folder.path, ".skein"), cwd: folder.path, config, agents, quiet: true };
  const skein = await createSkein(options);
  stack.push({ skein, folder });
  return skein;
}

const asker = { sessionKey: "agent:main:main" };
const doc = (name: string) =>
  readFileSync(fileURLToPath(new URL(`../../docs/${name}`, import.meta.url)), "utf8");

describe("the texts of the tools", () => {
  test("sessions_spawn names an existing tool if a channel is meant", async () => {
    const skein = await open();
    const names = (await skein.tools()).map(({ name }) => name);
    const { result } = await skein.callTool("sessions_spawn", { task: "Look", channel: "desk" }, asker);
    expect(result.error).toBe(
      'sessions_spawn does not support "channel". Use "sessions_send" for channel delivery.',
    );
    expect(names).toContain("sessions_send");
  });

  test.each([
    { mountPath: "../x", why: `".." leads outside its folder` },
    { mountPath: "a/../../x", why: `".." leads outside its folder` },
    { mountPath: "/x", why: "it is absolute" },
    { mountPath: ".git", why: 'the folder name ".git" is not allowed: it starts with a dot' },
  ])("[LIB6] a refused mountPath explains the problem: $mountPath", async ({ mountPath, why }) => {
    const skein = await open();
    const attachments = [{ name: "a.txt", content: "a" }];
    const args = { task: "Look", attachments, attachAs: { mountPath } };
    const { result } = await skein.callTool("sessions_spawn", args, asker);
    expect(result).toMatchObject({ status: "error", code: "attachments_invalid_mount_path" });
    expect(String(result.error)).toContain(`attachments_invalid_mount_path: ${why}`);
  });

  test("a missing ACP agent name is requested with a list of the available names", async () => {
    const skein = await open("acp: { agents: { claude: { command: claude }, codex: { command: codex } } }\n");
    const { result } = await skein.callTool("sessions_spawn", { task: "Look", runtime: "acp" }, asker);
    expect(result).toMatchObject({ status: "error", code: "acp_unavailable" });
    expect(result.error).toBe(
      "No ACP agent was named, and there is no default. Pass `agentId` (one of claude, codex), or set `acp.defaultAgent` in the configuration.",
    );
  });

  test("without any ACP agent the text says that none is configured", async () => {
    const skein = await open();
    const { result } = await skein.callTool("sessions_spawn", { task: "Look", runtime: "acp" }, asker);
    expect(String(result.error)).toContain("no ACP agents are configured");
  });

  test("[WRD6] callTool for a session that does not exist says how to get one", async () => {
    const skein = await open();
    const call = skein.callTool("sessions_list", {}, { sessionKey: "agent:main:session:nope" });
    await expect(call).rejects.toMatchObject({
      code: "not_found",
      message: expect.stringMatching(/"agent:main:session:nope".*create the session first/),
    });
  });

  test("[WRD7] a leaf's subagents call is refused with the documented code", async () => {
    const skein = await open("defaults: { subagents: { tools: { allow: [subagents] } } }\n");
    const { result } = await skein.callTool("sessions_spawn", { task: "wait", background: false }, asker);
    const child = { sessionKey: (await skein.store.sessions.list({}, {})).sessions[0]?.key ?? "" };
    expect(result.status).toBe("ok");
    const { result: refused } = await skein.callTool("subagents", { action: "kill", target: "all" }, child);
    expect(refused).toMatchObject({ code: "leaf_restricted" });
    expect(doc("session-tools.md")).toContain("`leaf_restricted`");
    expect(doc("session-tools.md")).not.toContain("`leaf`,");
  });
});

describe("a closed Skein", () => {
  test("requests that were not accepted or answered are refused as unavailable", async () => {
    const skein = await open();
    const early = skein.session(asker).send("hello").result;
    const refusal = expect(early).rejects.toMatchObject({ code: "unavailable" });
    await skein.close();
    await refusal;
    await expect(skein.session(asker).send("again").result).rejects.toMatchObject({ code: "unavailable" });
    expect(doc("runs.md")).toContain("rejected with `unavailable`");
  });
});

describe("a store path with {agentId}", () => {
  test.each(["agents/{agentId}", "agents/{agentId}/sessions", "agents/{agentId}/sessions/sessions.json"])(
    "[OST19] is the named folder for every agent: %s",
    async (rest) => {
      const folder = newFolder();
      writeFileSync(join(folder, "skein.yaml"), `store: "files:${folder}/data/${rest}"\n`);
      const sent = await run(["send", "main", "hello"], { cwd: folder, home: folder });
      expect(sent.exit, sent.err).toBe(0);
      const { sessions } = JSON.parse(
        (await run(["sessions", "ls", "--json"], { cwd: folder, home: folder })).out,
      );
      expect(sessions[0].transcriptPath).toContain(join(folder, "data", "agents", "main", "sessions"));
    },
  );

  test("[OST19] elsewhere in the path it is refused with the expected form", async () => {
    const folder = newFolder();
    writeFileSync(join(folder, "skein.yaml"), `store: "files:${folder}/{agentId}/data"\n`);
    const { exit, err } = await run(["sessions", "ls"], { cwd: folder, home: folder });
    expect(exit).not.toBe(0);
    expect(err).toContain("files:~/.skein/agents/{agentId}");
  });
});

describe("doctor and MCP servers", () => {
  const server = supportProgram("mcp-stdio");
  const doctor = (folder: string, ...args: string[]) =>
    run(["doctor", ...args, "--dir", join(folder, ".skein")], {
      cwd: folder,
      home: folder,
      env: { ...process.env, SKEIN_GATEWAY__PORT: "0" } as Record<string, string>,
    });

  test("[WRD10] a responding server is listed with its tools, another one with the reason", async () => {
    const folder = newFolder();
    const entry = (mode: string) => `{ command: "${process.execPath}", args: ["${server}", "${mode}"] }`;
    writeFileSync(
      join(folder, "skein.yaml"),
      `mcpServers:\n  good: ${entry("tools")}\n  bad: ${entry("exits")}\n`,
    );
    const { mcp, findings, ok } = JSON.parse((await doctor(folder, "--json")).out);
    expect(ok).toBe(true);
    expect(mcp).toMatchObject([
      { name: "good", answers: true, tools: expect.any(Number) },
      { name: "bad", answers: false, problem: expect.stringContaining("no licence") },
    ]);
    expect(findings).toMatchObject([{ area: "mcp", severity: "warning", file: "mcpServers.bad" }]);
    const { out } = await doctor(folder);
    expect(out).toMatch(
      /MCP servers\n {2}answers {2}good: \d+ tools\n {2}warning {2}mcpServers\.bad: .*no licence/,
    );
  });
});

describe("documentation pages", () => {
  test("[WRD11] the gateway serves the metrics that observability.md lists, where it says", () => {
    expect(doc("observability.md")).toContain("`GET /metrics`");
    expect(doc("observability.md")).not.toContain("not reachable");
  });

  test("[WRD11] context.md names each step once and describes what runs do", () => {
    const text = doc("context.md");
    expect(text).not.toContain("will be by runs");
    expect(text.split("`moveResultImages`")).toHaveLength(2);
  });

  test("[WRD11] channels.md states what serves a webhook and what the console channel is", () => {
    expect(doc("channels.md")).toContain("`POST /channels/<id>/inbound`");
    expect(doc("channels.md")).toContain("`console` for a program that displays sessions itself");
  });
});
