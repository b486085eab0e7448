import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { closeAfterEach, skeinWith } from "../support/acp/opened.ts";
import { soon } from "../support/soon.ts";

/** An agent's responses that no library has validated, and the lifetime of the agent's process. */

closeAfterEach();

/** Answers each method from a table. Exits at the end of its turn if requested. */
const program = `
const { answers, ends } = JSON.parse(process.argv[1]);
const usual = {
  initialize: { protocolVersion: 1, agentCapabilities: { sessionCapabilities: { resume: {} } } },
  "session/new": { sessionId: "s1" },
  "session/resume": {},
  "session/prompt": { stopReason: "end_turn" },
};
const write = (message, then) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n", then);
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  if (id === undefined) return;
  const isPrompt = method === "session/prompt";
  const content = { type: "text", text: String(process.pid) };
  const update = { sessionUpdate: "agent_message_chunk", content };
  if (isPrompt) write({ method: "session/update", params: { sessionId: "s1", update } });
  const result = method in answers ? answers[method] : (usual[method] ?? {});
  write({ id, result }, () => (isPrompt && ends ? process.exit(0) : undefined));
}).on("close", () => process.exit(0));
`;
const answering = (answers: Readonly<Record<string, unknown>>, ends = false) =>
  skeinWith({
    agent: { command: process.execPath, args: ["-e", program, JSON.stringify({ answers, ends })] },
  });

describe("responses of an agent", () => {
  test.each<[string, unknown, RegExp]>([
    ["initialize", null, /while it was starting does not follow the protocol: it is not an object/],
    ["initialize", { protocolVersion: "1" }, /it has no protocolVersion/],
    ["session/new", null, /while it was opening a session does not follow the protocol: it is not an object/],
    ["session/new", {}, /it has no sessionId/],
    ["session/new", { sessionId: 7 }, /it has no sessionId/],
    ["session/new", { sessionId: "x".repeat(513) }, /not a name of 1 to 512 printable characters \(513\)/],
    ["session/new", { sessionId: "a\nb" }, /not a name of 1 to 512 printable characters/],
    ["session/new", { sessionId: "s1", configOptions: {} }, /its configOptions are not a list/],
    ["session/prompt", null, /its response to the prompt does not follow the protocol/],
    ["session/prompt", { failed: 1 }, /its response to the prompt does not follow the protocol/],
  ])("[ARU51] are checked: %s with %j ends the run as failed", async (method, answer, told) => {
    const acp = await answering({ [method]: answer });
    const session = await acp.session({ model: "large" });
    const { outcome } = await acp.say(method === "session/prompt" ? await acp.session() : session, "Go");
    expect(outcome).toMatchObject({ state: "error", code: "acp_failed" });
    expect(outcome?.error).toMatch(told);
    expect(acp.reports).toEqual([]);
  });
});

describe("the process of an agent", () => {
  test("[ARU2] a process that exits after its answer is replaced by another that continues the session", async () => {
    const acp = await answering({}, true);
    const session = await acp.session();
    const first = await acp.say(session, "One");
    expect(first.outcome?.state).toBe("ok");
    await acp.untilGone([Number(first.outcome?.reply)]);
    const second = await acp.say(session, "Two");
    expect(second.outcome?.state).toBe("ok");
    expect(second.outcome?.reply).not.toBe(first.outcome?.reply);
  });

  test("[ARU2] a process that refused to continue is kept with its context", async () => {
    const acp = await skeinWith({
      script: {
        can: { load: false, resume: false },
        turns: [[{ tell: "pid" }, { stop: "refusal" }], [{ tell: "pid" }]],
      },
    });
    const session = await acp.session();
    const refused = await acp.say(session, "One");
    expect(refused.outcome).toMatchObject({ state: "error", code: "acp_failed" });
    expect((await acp.say(session, "Two")).outcome).toMatchObject({
      state: "ok",
      reply: refused.outcome?.reply,
    });
  });

  test("a resumed session keeps its model if the agent does not report it", async () => {
    const options = [
      {
        id: "m",
        name: "Model",
        category: "model",
        type: "select",
        currentValue: "small",
        options: [{ value: "large", name: "Large" }],
      },
    ];
    const acp = await answering({ "session/new": { sessionId: "s1", configOptions: options } }, true);
    const session = await acp.session({ model: "large" });
    const first = await acp.say(session, "One");
    await acp.untilGone([Number(first.outcome?.reply)]);
    expect(first.outcome?.error).toBeUndefined();
    expect((await acp.say(session, "Two")).outcome).toMatchObject({ state: "ok" });
  });

  const inItsTurn = async () => {
    const acp = await skeinWith({
      script: ({ cwd }) => ({
        turns: [[{ say: "I begin." }, { until: join(cwd, "go") }, { say: " Done." }]],
      }),
    });
    const session = await acp.session();
    const { runId } = await acp.handle(session).accept("Go");
    await soon(() => acp.agentSaid("I begin.")).toBe(true);
    return { acp, session, runId };
  };

  test("[ARU52] an archived session ends its turn first, then its process", async () => {
    const { acp, session, runId } = await inItsTurn();
    await acp.skein.store.sessions.patch({ agentId: "twin" }, session.sessionId, { archived: true });
    expect(acp.alive).toHaveLength(1);
    await writeFile(join(acp.cwd, "go"), "");
    const { outcome } = await acp.skein.ended(runId, { timeoutMs: 150_000 });
    expect(outcome).toMatchObject({ state: "ok", reply: "I begin. Done." });
    await acp.untilGone();
  });

  test("[ARU52] the run of a deleted session is aborted, and its process ends", async () => {
    const { acp, session, runId } = await inItsTurn();
    await acp.skein.store.sessions.remove({ agentId: "twin" }, session.sessionId);
    const { outcome } = await acp.skein.ended(runId, { timeoutMs: 150_000 });
    expect(outcome?.state).toBe("aborted");
    await acp.untilGone();
  });

  test("[ARU52] archiving a session with an idle agent ends its process", async () => {
    const acp = await skeinWith();
    const session = await acp.session();
    await acp.say(session, "Hello");
    await acp.skein.store.sessions.patch({ agentId: "twin" }, session.sessionId, { archived: true });
    await acp.untilGone();
  });
});
