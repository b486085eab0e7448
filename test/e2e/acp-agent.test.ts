import { mkdirSync, realpathSync } from "node:fs";
import { join } from "node:path";
import type { LoadSessionResponse, NewSessionResponse } from "@agentclientprotocol/sdk/unstable";
import { methods } from "@agentclientprotocol/sdk/unstable";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import type { AcpEditor, OpenAcp } from "../support/acp-client.ts";
import { acpInside } from "../support/acp-client.ts";
import { run } from "../support/cli.ts";
import type { WholeGateway } from "../support/whole-gateway.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

const { session } = methods.agent;
const png =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

describe.each(["on the folder itself", "through a gateway"])("skein acp, %s", (how) => {
  let folder: TemporaryFolder;
  let gateway: WholeGateway | null = null;
  let dir = "";
  let place = "";
  const started: OpenAcp[] = [];

  beforeEach(async () => {
    folder = temporaryFolder("skein-acp-");
    gateway = how === "through a gateway" ? await wholeGateway({ folder }) : null;
    dir = gateway?.root ?? join(folder.path, "root");
    place = join(realpathSync(folder.path), "work");
    mkdirSync(place);
  });
  afterEach(async () => {
    const codes = await Promise.all(started.splice(0).map((each) => each.leave()));
    await gateway?.close();
    folder.remove();
    expect(codes.every((code) => code === 0)).toBe(true);
  });

  async function editing(...args: readonly string[]): Promise<AcpEditor> {
    const one = await acpInside(folder.path, ["--dir", dir, ...args]);
    started.push(one);
    return one.editor;
  }

  /** Returns the number of runs in a session so far. */
  async function runsOf(id: string): Promise<number> {
    const listed = await run(["runs", "ls", "--session", id, "--json"], {
      cwd: folder.path,
      env: { SKEIN_DIR: dir },
    });
    return (JSON.parse(listed.out) as { runs: unknown[] }).runs.length;
  }

  test("[AAG1] reports its identity and capabilities, and lists its sessions and commands", async () => {
    const { agent, until } = await editing();
    const told = await agent.request(methods.agent.initialize, { protocolVersion: 1 });
    expect(told).toMatchObject({
      protocolVersion: 1,
      agentInfo: { name: "skein", title: "Skein" },
      agentCapabilities: {
        loadSession: true,
        promptCapabilities: { image: true, embeddedContext: true },
        sessionCapabilities: { list: {}, resume: {}, fork: {}, close: {}, delete: {} },
      },
      authMethods: [],
    });
    const made = await agent.request(session.new, { cwd: place, mcpServers: [] });
    expect(made.modes?.availableModes.map(({ id }) => id)).toEqual(["ask", "allow", "deny"]);
    expect(made.modes?.currentModeId).toBe("ask");
    expect(made.configOptions?.map(({ id }) => id)).toEqual(["model", "thought_level"]);
    await until(/compact.*available_commands_update/);
  });

  test("[AAG2] [AAG7] a prompt is answered in pieces, once, and the session works in the editor's folder", async () => {
    const editor = await editing();
    const id = await editor.create(place);
    const response = await editor.prompt(id, "think about the gardens of Kyoto");
    expect(response).toMatchObject({ stopReason: "end_turn", usage: { totalTokens: expect.any(Number) } });
    expect(editor.of("agent_message_chunk").length).toBeGreaterThan(3);
    expect(editor.texts("agent_thought_chunk")).toContain("gardens of Kyoto");
    expect(editor.texts("user_message_chunk")).toBe("");
    const again = await editing();
    await again.agent.request(session.load, { sessionId: id, cwd: place, mcpServers: [] });
    expect(again.texts()).toBe(editor.texts());
    const { sessions } = await editor.agent.request(session.list, {});
    expect(sessions).toMatchObject([{ sessionId: id, cwd: place }]);
  });

  test("[AAG3] a load shows the whole conversation in order before its response; a resume shows nothing", async () => {
    const first = await editing();
    const id = await first.create(place);
    await first.prompt(id, "list the sessions");
    const image = { type: "image" as const, data: png, mimeType: "image/png" };
    const text = { type: "text" as const, text: "repeat good morning" };
    await first.agent.request(session.prompt, { sessionId: id, prompt: [text, image] });
    const { updates, agent, of, texts } = await editing();
    const loaded: LoadSessionResponse = await agent.request(session.load, {
      sessionId: id,
      cwd: place,
      mcpServers: [],
    });
    const kinds = updates.map(({ sessionUpdate }) => sessionUpdate);
    expect(loaded.modes?.currentModeId).toBe("ask");
    expect(kinds.filter((kind) => kind !== "available_commands_update")).toEqual([
      "user_message_chunk",
      "tool_call",
      "tool_call_update",
      "agent_message_chunk",
      "user_message_chunk",
      "user_message_chunk",
      "agent_message_chunk",
    ]);
    expect(of("tool_call")).toMatchObject([{ name: "sessions_list", kind: "read" }]);
    expect(of("tool_call_update")).toMatchObject([{ status: "completed", content: [{ type: "content" }] }]);
    expect(of("user_message_chunk").map(({ content }) => content.type)).toEqual(["text", "text", "image"]);
    expect(texts()).toContain("good morning");
    const resumed = await editing();
    await resumed.agent.request(session.resume, { sessionId: id, cwd: place });
    expect(resumed.texts() + resumed.texts("user_message_chunk")).toBe("");
    await resumed.prompt(id, "repeat once more");
    expect(resumed.texts()).toContain("once more");
  });

  test("[AAG5] a fork continues independently; a closed or deleted session accepts no prompt", async () => {
    const editor = await editing();
    const { agent } = editor;
    const id = await editor.create(place);
    await editor.prompt(id, "repeat one");
    const forked = await agent.request(session.fork, { sessionId: id, cwd: place });
    expect(forked.sessionId).not.toBe(id);
    await editor.prompt(forked.sessionId, "repeat two");
    const other = await editing();
    await other.agent.request(session.load, { sessionId: forked.sessionId, cwd: place, mcpServers: [] });
    expect(other.texts("user_message_chunk")).toBe("repeat onerepeat two");
    const { sessions } = await agent.request(session.list, { cwd: `${place}/` });
    expect(sessions.map(({ sessionId }) => sessionId).sort()).toEqual([forked.sessionId, id].sort());
    expect((await agent.request(session.list, { cwd: "/nowhere" })).sessions).toEqual([]);
    await agent.request(session.close, { sessionId: id });
    await expect(editor.prompt(id, "hello")).rejects.toMatchObject({ code: -32002 });
    await agent.request(session.delete, { sessionId: id });
    expect((await agent.request(session.list, {})).sessions).toHaveLength(1);
    await expect(agent.request(session.resume, { sessionId: id, cwd: place })).rejects.toMatchObject({
      code: -32002,
      data: { code: "not_found" },
    });
  });

  test("[AAG13] cancel ends the turn, which is reported, and the session continues", async () => {
    const editor = await editing();
    const id = await editor.create(place);
    const slow = editor.prompt(id, "be slow for 60 seconds");
    await editor.until(/agent_message_chunk/);
    await editor.agent.notify(session.cancel, { sessionId: id });
    expect(await slow).toMatchObject({ stopReason: "cancelled" });
    expect(await editor.prompt(id, "repeat still here")).toMatchObject({ stopReason: "end_turn" });
    expect(editor.texts()).toContain("still here");
  });

  test("[AAG13] [AAG27] a running prompt ends with its request, or when its session is closed or deleted", async () => {
    const { agent, create, prompt } = await editing();
    for (const how of ["request", "close", "delete"] as const) {
      const id = await create(place);
      const request = new AbortController();
      const say = [{ type: "text" as const, text: "be slow for 300 seconds" }];
      const params = { sessionId: id, prompt: say };
      const slow = agent.request(session.prompt, params, { cancellationSignal: request.signal });
      const again = { sessionId: id, cwd: place, mcpServers: [] };
      await expect(agent.request(session.load, again)).rejects.toMatchObject({ data: { code: "conflict" } });
      if (how === "request") request.abort();
      else await agent.request(session[how], { sessionId: id });
      expect(await slow).toMatchObject({ stopReason: "cancelled" });
      if (how === "request") expect(await prompt(id, "repeat on")).toMatchObject({ stopReason: "end_turn" });
    }
  });

  test("[AAG6] files and links are sent to the model as text, and displayed as such", async () => {
    const first = await editing();
    const id = await first.create(place);
    const prompt = [
      { type: "text" as const, text: "repeat this" },
      { type: "resource" as const, resource: { uri: "file:///w/a.ts", text: "let a = 1;" } },
      { type: "resource_link" as const, uri: "file:///w/b.ts", name: "b.ts" },
    ];
    await first.agent.request(session.prompt, { sessionId: id, prompt });
    const again = await editing();
    await again.agent.request(session.load, { sessionId: id, cwd: place, mcpServers: [] });
    expect(again.texts("user_message_chunk")).toBe(
      "repeat this\n\n``` file:///w/a.ts\nlet a = 1;\n```\n\n[b.ts](file:///w/b.ts)",
    );
  });

  test("[AAG4] [AAG30] lists several pages, and a folder on later pages; a fork keeps its folder", async () => {
    const editor = await editing();
    const { agent } = editor;
    const first = await editor.create(place);
    const other = join(place, "other");
    mkdirSync(other);
    const made = [first];
    for (let each = 0; each < 55; each++) made.push(await editor.create(other));
    const one = await agent.request(session.list, {});
    expect(one.sessions).toHaveLength(50);
    const two = await agent.request(session.list, { cursor: one.nextCursor ?? null });
    expect(two.nextCursor ?? null).toBeNull();
    const all = [...one.sessions, ...two.sessions].map(({ sessionId }) => sessionId);
    expect(all.sort()).toEqual(made.sort());
    const here = await agent.request(session.list, { cwd: place });
    expect(here.sessions).toMatchObject([{ sessionId: first, cwd: place }]);
    const forked = await agent.request(session.fork, { sessionId: first, cwd: other });
    await editor.until(/runs in .*work, where it was started, not in .*other/);
    const { sessions } = await agent.request(session.list, { cwd: place });
    expect(sessions.map(({ sessionId }) => sessionId)).toContain(forked.sessionId);
  });

  test("[AAG9] a failed turn is an error in Skein's words, and a retry before the first text is not shown", async () => {
    const editor = await editing();
    const id = await editor.create(place);
    await expect(editor.prompt(id, "fail with status 400")).rejects.toMatchObject({
      code: -32603,
      data: { code: "model_failed" },
    });
    expect(await editor.prompt(id, "fail once")).toMatchObject({ stopReason: "end_turn" });
    expect(editor.texts()).toBe("The first attempt failed, and this one did not.");
  });

  test("[AAG12] slash commands run without a model; unknown ones are sent as text", async () => {
    const editor = await editing();
    const id = await editor.create(place);
    await editor.prompt(id, "repeat one");
    expect(await editor.prompt(id, "/status")).toEqual({ stopReason: "end_turn" });
    expect(editor.texts()).toContain(id);
    expect(await editor.prompt(id, "/model rehearsal/basic")).toEqual({ stopReason: "end_turn" });
    const options = editor.of("config_option_update").at(-1)?.configOptions;
    expect(options?.[0]).toMatchObject({ id: "model", currentValue: "rehearsal/basic" });
    await editor.prompt(id, "/model no-such");
    expect(editor.texts()).toMatch(/no-such/);
    expect(await runsOf(id)).toBe(1);
    await editor.prompt(id, "/new");
    await editor.prompt(id, "repeat after the reset");
    expect(editor.texts()).toContain("after the reset");
    await editor.prompt(id, "/etc/hosts is a file");
    const again = await editing();
    await again.agent.request(session.load, { sessionId: id, cwd: place, mcpServers: [] });
    expect(again.texts("user_message_chunk")).toBe("repeat after the reset/etc/hosts is a file");
  });

  test("[AAG11] the model and the thinking level are set for the session", async () => {
    const { agent, create } = await editing();
    const id = await create(place);
    const chosen = await agent.request(session.setConfigOption, {
      sessionId: id,
      configId: "thought_level",
      value: "high",
    });
    expect(chosen.configOptions.map((each) => each.currentValue)).toEqual(["default", "high"]);
    const bad = { sessionId: id, configId: "thought_level", value: "huge" };
    await expect(agent.request(session.setConfigOption, bad)).rejects.toMatchObject({ code: -32602 });
    const nobodys = { sessionId: id, configId: "model", value: "nonsense" };
    await expect(agent.request(session.setConfigOption, nobodys)).rejects.toMatchObject({ code: -32602 });
    const back = await agent.request(session.setConfigOption, { ...bad, value: "default" });
    expect(back.configOptions.map((each) => each.currentValue)).toEqual(["default", "default"]);
  });

  test("[AAG2] [AAG6] unsupported content is refused, and ignored requests are reported", async () => {
    const { agent, until, prompt } = await editing();
    const server = { name: "x", command: "/bin/true", args: [], env: [] };
    const made: NewSessionResponse = await agent.request(session.new, { cwd: place, mcpServers: [server] });
    await until(/MCP servers are not started/);
    const { sessionId } = made;
    const audio = { type: "audio" as const, data: "aGk=", mimeType: "audio/wav" };
    await expect(agent.request(session.prompt, { sessionId, prompt: [audio] })).rejects.toMatchObject({
      code: -32602,
      message: expect.stringContaining("does not accept audio"),
    });
    await expect(agent.request(session.new, { cwd: "work", mcpServers: [] })).rejects.toMatchObject({
      code: -32602,
    });
    const unknown = { sessionId: "agent:main:session:nobody", cwd: place, mcpServers: [] };
    await expect(agent.request(session.load, unknown)).rejects.toMatchObject({ code: -32002 });
    await expect(prompt("agent:main:session:nobody", "hi")).rejects.toMatchObject({ code: -32002 });
    await expect(agent.request(session.setMode, { sessionId, modeId: "yolo" })).rejects.toMatchObject({
      code: -32602,
    });
    await expect(agent.request("session/prompt", { sessionId })).rejects.toMatchObject({ code: -32602 });
    await expect(agent.request("session/dance", {})).rejects.toMatchObject({ code: -32601 });
  });

  test("[AAG4] lists sessions started by people, in pages, by name, label or first words", async () => {
    const editor = await editing();
    const { agent } = editor;
    const id = await editor.create(place);
    await editor.prompt(id, "spawn a helper to describe the gardens of Kyoto and summarize");
    const { sessions, nextCursor } = await agent.request(session.list, {});
    expect(sessions).toMatchObject([{ sessionId: id, title: expect.stringContaining("spawn a helper") }]);
    expect(Date.parse(sessions[0]?.updatedAt ?? "")).toBeGreaterThan(0);
    expect(nextCursor ?? null).toBeNull();
    expect(editor.of("session_info_update").at(-1)).toMatchObject({
      title: expect.stringContaining("spawn a helper"),
    });
  });

  test("[AAG14] --user selects the owner: other users' sessions do not exist", async () => {
    const anns = await editing("--user", "ann");
    const id = await anns.create(place);
    await anns.prompt(id, "repeat a secret");
    const bobs = await editing("--user", "bob");
    const params = { sessionId: id, cwd: place, mcpServers: [] };
    await expect(bobs.agent.request(session.load, params)).rejects.toMatchObject({ code: -32002 });
    await expect(bobs.agent.request(session.fork, params)).rejects.toMatchObject({ code: -32002 });
    await expect(bobs.prompt(id, "hi")).rejects.toMatchObject({ code: -32002 });
    expect((await bobs.agent.request(session.list, {})).sessions).toEqual([]);
    expect((await anns.agent.request(session.list, {})).sessions).toHaveLength(1);
  });
});
