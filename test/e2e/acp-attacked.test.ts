import { methods } from "@agentclientprotocol/sdk/unstable";
import { expect, test } from "vitest";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { closeAfterEach, lines, skeinWith } from "../support/acp/opened.ts";
import { acpProcess } from "../support/acp-client.ts";
import { soon } from "../support/soon.ts";

/** Malicious agents as real processes. Each one is refused or ends its run, within the resource limits. */

closeAfterEach();

/** An agent that does not use the SDK. `prompt` is its reaction to a prompt. The agent reports what it learned. */
function rawAgent(prompt: string, sessionId = '"s1"') {
  const program = `
    const write = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
    const update = (update) => write({ method: "session/update", params: { sessionId: "s1", update } });
    const say = (text) => update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
    let answered = () => {};
    const handlers = {
      initialize: () => ({ protocolVersion: 1 }),
      "session/new": () => ({ sessionId: ${sessionId} }),
      "session/prompt": async () => { ${prompt}; return { stopReason: "end_turn" }; },
    };
    require("node:readline").createInterface({ input: process.stdin }).on("line", async (line) => {
      const message = JSON.parse(line);
      if (message.method === undefined) return answered(message);
      const result = await handlers[message.method]?.();
      if (result !== undefined) write({ id: message.id, result });
    }).on("close", () => process.exit());
  `;
  return { command: process.execPath, args: ["-e", program] };
}

async function attackedBy(agent: ReturnType<typeof rawAgent>) {
  const acp = await skeinWith({ agent });
  const session = await acp.session({}, "run");
  const { outcome } = await acp.say(session, "Go");
  expect(acp.reports).toEqual([]);
  return { outcome, session, acp };
}

test("requests under one ID, and messages outside the protocol, do not block other responses", async () => {
  const { outcome } = await attackedBy(
    rawAgent(`
      require("node:fs").writeFileSync("f", "x".repeat(1e6));
      const all = Promise.withResolvers();
      const counts = { ok: 0, refused: 0 };
      answered = (message) => {
        counts[message.error ? "refused" : "ok"]++;
        if (counts.ok + counts.refused === 41) all.resolve();
      };
      const request = (id) =>
        write({ id, method: "fs/read_text_file", params: { sessionId: "s1", path: process.cwd() + "/f" } });
      for (const odd of [{ method: 5 }, { id: {}, method: "x" }, { id: 99, result: {} }, { method: "nobody/knows" }, {}])
        write(odd);
      for (let count = 0; count < 20; count++) request("same");
      for (let id = 0; id < 21; id++) request(id);
      await all.promise;
      say(JSON.stringify(counts))
    `),
  );
  const counts = JSON.parse(outcome?.reply ?? "{}");
  expect(counts.ok + counts.refused).toBe(41);
  expect(counts.ok).toBeGreaterThanOrEqual(22);
  expect(counts.refused).toBeGreaterThan(0);
});

test("a path of a hundred thousand folders is refused without a lookup", async () => {
  const { outcome } = await attackedBy(
    rawAgent(`
      const told = Promise.withResolvers();
      answered = ({ error }) => told.resolve(error.message);
      const path = process.cwd() + "/x".repeat(100000);
      write({ id: 1, method: "fs/read_text_file", params: { sessionId: "s1", path } });
      const message = await told.promise;
      say(message.length < 3000 ? message.slice(-60) : "long")
    `),
  );
  expect(outcome?.reply).toMatch(/'s working directory [^ ]*$/);
});

test.each([
  ["of several megabytes", '"x".repeat(3e6)'],
  ["with terminal escapes", '"a\\u001b[2Jb"'],
  ["that is invalid", '""'],
])("[ARU51] an agent with a session ID %s is not continued", async (_, id) => {
  const { outcome, acp, session } = await attackedBy(rawAgent('say("no")', id));
  expect(outcome).toMatchObject({ state: "error", code: "acp_failed" });
  expect(outcome?.error).toMatch(/its session ID is not a name of 1 to 512 printable characters/);
  expect(await acp.agentSessionId(session)).toBe(undefined);
});

test("long IDs of messages and calls are distinguished without being stored", async () => {
  const { acp, session } = await attackedBy(
    rawAgent(`
      const long = "x".repeat(100000);
      const chunk = (messageId, text) =>
        update({ sessionUpdate: "agent_message_chunk", messageId, content: { type: "text", text } });
      const call = (id, status) => update({ sessionUpdate: "tool_call_update", toolCallId: long + id, kind: "read", status });
      call(1, "in_progress"); call(2, "in_progress"); call(2, "failed"); call(1, "completed");
      chunk(long + 1, "a"); chunk(long + 1, "b"); chunk(long + 2, "c")
    `),
  );
  const said = await lines(acp, session);
  expect(said.slice(2)).toEqual([
    expect.stringMatching(/^result read failed/),
    expect.stringMatching(/^result read: /),
    expect.stringMatching(/ab.*c/s),
  ]);
});

test("an endless number of unfinished calls ends the run", async () => {
  const { outcome } = await attackedBy(
    rawAgent(`
      const rawOutput = "x".repeat(14e6);
      for (let id = 0; id < 12; id++)
        update({ sessionUpdate: "tool_call", toolCallId: "c" + id, title: "t", status: "in_progress", rawOutput });
      await new Promise(() => {})
    `),
  );
  expect(outcome).toMatchObject({ state: "error", code: "acp_failed" });
  expect(outcome?.error).toMatch(/more than 134217728 bytes for calls that it has not ended/);
});

test("[ATA8] an editor gets the errors in its params, and stderr the reason why the connection ended", async () => {
  const folder = temporaryFolder("skein-acp-");
  const { path: cwd } = folder;
  const { editor, child, notes, leave } = await acpProcess(cwd, []);
  try {
    const { session } = methods.agent;
    const wrong = { code: -32602, data: { code: expect.stringMatching(/^invalid_/) } };
    const mcpServers: [] = [];
    const long = { sessionId: "x".repeat(5000), cwd, mcpServers };
    await expect(editor.agent.request(session.load, long)).rejects.toMatchObject(wrong);
    await expect(editor.create("/a\u0000b")).rejects.toMatchObject(wrong);
    child.stdin?.on("error", () => undefined); // the process does not read to the end
    child.stdin?.write(Buffer.alloc(25 * 1024 * 1024 + 1, "x"));
    await soon(notes).toMatch(/exceeds the configured \d+ byte limit/);
  } finally {
    await leave();
    folder.remove();
  }
});
