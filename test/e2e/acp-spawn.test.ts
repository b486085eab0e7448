import { afterEach, describe, expect, test } from "vitest";
import type { Run } from "../../src/index.ts";
import type { AcpSkein, AcpSkeinOptions } from "../support/acp/acp-skein.ts";
import { openAcpSkein } from "../support/acp/acp-skein.ts";
import { soon } from "../support/soon.ts";
import { lineOf } from "../support/text.ts";

/** Children that run in ACP agents, with a real Skein instance in a folder and the agent as a real process. */

const parentKey = "agent:main:main";

let open: AcpSkein[] = [];

afterEach(async () => {
  const opened = open;
  open = [];
  for (const skein of opened) await skein.close();
});

async function family(options: AcpSkeinOptions = {}) {
  const acp = await openAcpSkein(options);
  open.push(acp);
  const parent = await acp.skein.store.sessions.create({ agentId: "main" }, { key: parentKey, cwd: acp.cwd });
  const call = async (name: string, args: object) =>
    (await acp.skein.callTool(name, args, { sessionKey: parentKey })).result as Record<string, unknown>;
  const spawn = (more: object = {}) =>
    call("sessions_spawn", { task: "Count the pages", runtime: "acp", agentId: "twin", ...more });
  const ofParent = async (kind: Run["kind"]) =>
    (await acp.skein.runs.list({ sessionUid: parent.uid })).filter((run) => run.kind === kind);
  return { acp, call, spawn, ofParent };
}

describe("an external agent as a child", () => {
  test("[ASP14] its session ID is reported, its result is announced once, and its messages are in our session", async () => {
    const { acp, spawn, ofParent } = await family({
      script: { turns: [[{ echo: true }, { say: " Ten." }]] },
    });
    const result = await spawn({ label: "pages" });
    expect(result).toMatchObject({ status: "ok", label: "pages", agentSessionId: acp.agentSessions[0] });
    const ended = await acp.skein.ended(String(result.runId), { timeoutMs: 150_000 });
    expect(ended?.outcome).toMatchObject({
      state: "ok",
      reply: expect.stringMatching(/\nCount the pages\] Ten\.$/),
    });
    if (result.outcome === undefined) await soon(async () => (await ofParent("announce")).length).toBe(1);
    const { session } = ended as Run;
    const lines = (await acp.entries(session)).filter(({ type }) => type === "message").map(lineOf);
    expect(lines[0]).toContain("Count the pages");
    await acp.untilGone();
  });

  test("[ASP14] a persistent one can be messaged again, and one of its sessions can be continued by ID", async () => {
    const turns = [[{ say: "one" }], [{ say: "two" }]];
    const { call, spawn } = await family({ script: { turns } });
    const first = await spawn({ mode: "session", background: false });
    expect(first).toMatchObject({ status: "ok", result: "one", outcome: "ok" });
    const sessionKey = first.childSessionKey;
    expect(await call("sessions_send", { sessionKey, message: "And?", timeoutSeconds: 600 })).toMatchObject({
      status: "ok",
      reply: "two",
    });
    const { agentSessionId } = first;
    const again = await spawn({ resumeSessionId: agentSessionId, background: false });
    expect(again).toMatchObject({ status: "ok", agentSessionId, result: "two" });
    expect(again.childSessionKey).not.toBe(sessionKey);
  });

  test.each<[string, AcpSkeinOptions, object, string]>([
    ["exits during its start", { script: { start: "exit" } }, {}, "acp_failed"],
    ["is not a program", { agent: { command: "no-such-program-here" } }, {}, "acp_unavailable"],
    ["hangs", { script: { start: "hang" }, acp: { startTimeoutSeconds: 1 } }, {}, "acp_failed"],
    ["cannot be set to a model", {}, { model: "huge" }, "acp_unsupported"],
  ])(
    "[ASP14] one that %s is reported in the result, and nothing is announced",
    async (_, options, more, code) => {
      const { acp, spawn, ofParent } = await family(options);
      const result = await spawn(more);
      expect(result).toMatchObject({ status: "error", outcome: "error", code, error: expect.any(String) });
      expect(result).not.toHaveProperty("agentSessionId");
      const run = await acp.skein.ended(String(result.runId), { timeoutMs: 150_000 });
      expect(run?.outcome?.state).toBe("error");
      expect(await ofParent("announce")).toEqual([]);
      await acp.untilGone();
    },
  );

  test("[ASP14] progress is relayed while it works; when killed, it is announced, and its process ends", async () => {
    const script = { turns: [[{ say: "Reading the book." }, { wait: "cancel" as const }]] };
    const { acp, call, spawn, ofParent } = await family({ script });
    const { runId } = await spawn({ label: "pages", streamTo: "parent" });
    await soon(async () => JSON.stringify((await ofParent("note")).map(({ message }) => message))).toContain(
      "[Progress of pages] Reading the book.",
    );
    expect(await call("subagents", { action: "kill", target: "pages" })).toMatchObject({ killed: 1 });
    const run = await acp.skein.ended(String(runId), { timeoutMs: 150_000 });
    expect(run?.outcome?.state).toBe("aborted");
    await soon(async () => (await ofParent("announce")).length).toBe(1);
    await acp.untilGone();
  });
});
