import { existsSync } from "node:fs";
import { afterEach, describe, expect, test } from "vitest";
import { JoinedSkeins, linesOf } from "../support/acp/inner-skein.ts";
import { soon } from "../support/soon.ts";

/**
 * A Skein instance whose child is another Skein instance. Our ACP client runs against our ACP agent, each in a process
 * with its own folder.
 */

const open: JoinedSkeins[] = [];
const scope = { agentId: "main" };

async function joined(more: Parameters<typeof JoinedSkeins.open>[0] = {}): Promise<JoinedSkeins> {
  const made = await JoinedSkeins.open(more);
  open.push(made);
  return made;
}

afterEach(async () => {
  for (const each of open.splice(0)) await each.close();
});

describe("a Skein that spawns a Skein", () => {
  test("[AJN5] its messages and tool calls are in both sessions, with the requested model and thinking level", async () => {
    const both = await joined();
    const asked = { model: "rehearsal/basic", thinking: "high", background: false };
    const spawned = await both.spawn("list the sessions", asked);
    expect(spawned).toMatchObject({ status: "ok", outcome: "ok", agentSessionId: expect.any(String) });
    const outer = await both.lines(spawned.childSessionKey);
    expect(outer).toEqual([
      expect.stringMatching(/^user: .*list the sessions$/s),
      expect.stringMatching(/^assistant toolUse: .*→ \S+ \{/),
      expect.stringMatching(/^result \S+: .*"key":"session:/s),
      expect.stringMatching(/^assistant stop: /),
    ]);
    expect(outer.at(-1)).toBe(`assistant stop: ${String(spawned.result)}`);
    await both.untilGone();
    const key = String(spawned.agentSessionId);
    const [inner, record] = await both.within(async (skein) => {
      const [found] = await skein.store.sessions.find(scope, { by: "key", key });
      return [await linesOf(skein, scope, key), found];
    });
    expect(record?.meta).toMatchObject({ model: "rehearsal/basic", thinkingLevel: "high" });
    expect(record?.cwd).toBe(`${both.root}/work`);
    expect(inner).toHaveLength(4);
    expect([inner[1], inner.at(-1)]).toEqual([
      expect.stringContaining("→ sessions_list"),
      `assistant stop: ${String(spawned.result)}`,
    ]);
    const refused = await both.spawn("list the sessions", { model: "huge/one" });
    expect(refused).toMatchObject({
      code: "acp_unsupported",
      error: expect.stringContaining("rehearsal/basic"),
    });
  });

  test("[ARU3] can be messaged again, also after its process is killed, and its session continues by ID", async () => {
    const both = await joined();
    const first = await both.spawn("repeat one", { mode: "session", background: false });
    expect(first).toMatchObject({ status: "ok", result: expect.stringContaining("one") });
    const { agentSessionId, childSessionKey: sessionKey } = first;
    const [pid = 0] = both.processes;
    const say = (message: string) => both.call("sessions_send", { sessionKey, message, timeoutSeconds: 60 });
    expect(await say("repeat two")).toMatchObject({ status: "ok", reply: expect.stringContaining("two") });
    expect(both.processes).toEqual([pid]);
    expect(pid).toBeGreaterThan(0);
    process.kill(pid, "SIGKILL");
    // Once the process has been reaped, its parent has been notified.
    await soon(() => existsSync(`/proc/${pid}`)).toBe(false);
    expect(await say("repeat three")).toMatchObject({
      status: "ok",
      reply: expect.stringContaining("three"),
    });
    const again = await both.spawn("repeat four", { resumeSessionId: agentSessionId, background: false });
    expect(again).toMatchObject({ status: "ok", agentSessionId, result: expect.stringContaining("four") });
    expect(await both.lines(sessionKey)).toHaveLength(6);
    expect(await both.lines(again.childSessionKey)).toHaveLength(2);
    await both.skein.close();
    await both.untilGone();
    await both.within(async (inner) => {
      expect((await inner.store.sessions.list(scope, {})).sessions).toHaveLength(1);
      expect(await linesOf(inner, scope, String(agentSessionId))).toHaveLength(8);
    });
  });

  test("[ARU9] progress is relayed; an abort outside aborts inside, is announced once, and leaves no process", async () => {
    const both = await joined();
    const { runId, agentSessionId } = await both.spawn("be slow for 60 seconds", {
      label: "slow",
      streamTo: "parent",
    });
    await soon(async () =>
      JSON.stringify((await both.ofParent("note")).map(({ message }) => message)),
    ).toContain("[Progress of slow]");
    await both.skein.runs.abort(String(runId));
    expect((await both.ended(runId)).outcome?.state).toBe("aborted");
    await soon(async () => (await both.ofParent("announce")).length).toBe(1);
    await both.untilGone();
    await both.within(async ({ runs }) => {
      const [run, ...more] = await runs.list({});
      expect(run?.session.key).toBe(agentSessionId);
      expect([run?.outcome?.state, more.length]).toEqual(["aborted", 0]);
    });
  });

  test("[AJN8] a request of the inner Skein is an approval of the outer one, and each answer reaches the tool", async () => {
    const both = await joined({ inner: { agents: { main: { tools: { ask: ["sessions_list"] } } } } });
    const results: string[] = [];
    for (const answer of ["denied", "approved"] as const) {
      const { runId, childSessionKey } = await both.spawn("list the sessions");
      const { approvalId, toolName, ...rest } = await both.approval();
      expect(rest).toMatchObject({ runId, arguments: { rawInput: {} } });
      expect(toolName).toEqual(expect.any(String));
      await both.skein.approvals.resolve(approvalId, answer);
      expect((await both.ended(runId)).outcome?.state).toBe("ok");
      results.push((await both.lines(childSessionKey)).find((line) => line.startsWith("result")) ?? "");
    }
    expect(results).toEqual([
      expect.stringMatching(/^result \S+ failed: .*not approved/s),
      expect.stringMatching(/^result \S+: .*"key":"session:/s),
    ]);
    const { runId } = await both.spawn("list the sessions");
    await both.approval();
    await both.skein.runs.abort(String(runId));
    expect((await both.ended(runId)).outcome?.state).toBe("aborted");
    await soon(async () => (await both.skein.approvals.list()).length).toBe(0);
    await both.untilGone();
  });
});
