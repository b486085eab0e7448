import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import { describe, expect, test } from "vitest";
import { openAcpSkein } from "../support/acp/acp-skein.ts";
import { closeAfterEach, lines, skeinWith } from "../support/acp/opened.ts";
import { soon } from "../support/soon.ts";

/** For every way to stop, checks that neither an agent process nor any process it started remains. */

closeAfterEach();

const call = { sessionUpdate: "tool_call", toolCallId: "c1", title: "Make", kind: "execute" } as const;
const ended: SessionUpdate = {
  sessionUpdate: "tool_call_update",
  toolCallId: "c1",
  status: "failed",
  content: [{ type: "content", content: { type: "text", text: "cut off" } }],
};

describe("a run that is stopped", () => {
  test("[ARU9] the agent is asked to cancel; text it had sent is written, and its process is kept for the session", async () => {
    const acp = await skeinWith({
      script: { turns: [[{ say: "I begin." }, { wait: "cancel" }], [{ tell: "pid" }]] },
    });
    const session = await acp.session();
    const { runId } = await acp.handle(session).accept("Go");
    await soon(() => acp.agentSaid("I begin.")).toBe(true);
    await acp.skein.runs.abort(runId);
    const { outcome } = await acp.skein.ended(runId, { timeoutMs: 150_000 });
    expect(outcome).toMatchObject({ state: "aborted", reply: "I begin." });
    expect(await lines(acp, session)).toEqual(["user: Go", "assistant aborted: I begin."]);
    expect((await acp.say(session, "Who?")).outcome?.reply).toBe(String(acp.started[0]));
  });

  test("[ARU1] calls that the agent ends on cancellation are written", async () => {
    const acp = await skeinWith({
      script: {
        turns: [[{ onCancel: [ended] }, { say: "I make it." }, { update: call }, { wait: "cancel" }]],
      },
    });
    const session = await acp.session();
    const { runId } = await acp.handle(session).accept("Go");
    await soon(() => acp.agentSaid("I make it.")).toBe(true);
    await acp.skein.runs.abort(runId);
    await acp.skein.ended(runId, { timeoutMs: 150_000 });
    expect(await lines(acp, session)).toEqual([
      "user: Go",
      'assistant toolUse: I make it. | → execute {"title":"Make"}',
      "result execute failed: cut off",
      "assistant aborted: ",
    ]);
  });

  test("[ARU9] an agent that ignores cancel and SIGTERM is killed, with everything it started", async () => {
    const acp = await skeinWith({
      script: {
        ignoreCancel: true,
        ignoreSigterm: true,
        turns: [[{ fork: true }, { say: "I begin." }, { wait: "for_ever" }]],
      },
    });
    const session = await acp.session();
    const { runId } = await acp.handle(session).accept("Go");
    await soon(() => acp.agentSaid("I begin.")).toBe(true);
    expect(acp.alive).toHaveLength(2);
    await acp.skein.runs.abort(runId);
    const { outcome } = await acp.skein.ended(runId, { timeoutMs: 150_000 });
    expect(outcome?.state).toBe("aborted");
    await acp.untilGone();
  });

  test("[ARU9] a silent agent is limited by the run's timeout", async () => {
    const acp = await skeinWith({ script: { turns: [[{ wait: "cancel" }]] } });
    const { outcome } = await acp.say(await acp.session(), "Go", { runTimeoutSeconds: 1 });
    expect(outcome?.state).toBe("timeout");
  });

  test("[ARU9] a pending permission request is withdrawn", async () => {
    const acp = await skeinWith({
      script: { turns: [[{ permission: { id: "c1", title: "Delete" } }]] },
      acp: { permissions: "ask" },
    });
    const session = await acp.session();
    const { runId } = await acp.handle(session).accept("Go");
    await acp.approval();
    await acp.skein.runs.abort(runId);
    expect((await acp.skein.ended(runId, { timeoutMs: 150_000 })).outcome?.state).toBe("aborted");
    expect(await acp.skein.approvals.list()).toEqual([]);
  });
});

describe("a Skein that is closed", () => {
  test("[ARU10] ends every agent; the next process that opens the folder continues the run", async () => {
    const script = {
      ignoreSigterm: true,
      turns: [[{ fork: true }, { say: "I begin." }, { wait: "for_ever" }], [{ echo: true }]],
    } as const;
    const first = await openAcpSkein({ script });
    const session = await first.session();
    const { runId } = await first.handle(session).accept("Go");
    await soon(() => first.agentSaid("I begin.")).toBe(true);
    await first.close({ keep: true });
    const second = await skeinWith({ script, root: first.root });
    const { outcome } = await second.skein.ended(runId, { timeoutMs: 150_000 });
    expect(outcome).toMatchObject({ state: "ok" });
    expect(outcome?.reply).toMatch(/^\[\[Skein\] Your process was lost.*continue\.\n\n\]\[Go\]$/s);
    expect(await lines(second, session)).toEqual(["user: Go", `assistant stop: ${outcome?.reply}`]);
    expect(second.agentSessions).toHaveLength(1);
  });

  test.each([
    ["at its timeout", [{ update: call }, { wait: "cancel" }], /^result execute failed: \[skein\] This call/],
    [
      "at its next update",
      [{ update: call }, { until: "go" }, { update: ended }, { wait: "cancel" }],
      /^result execute failed: cut off$/,
    ],
  ] as const)(
    "[ARU35] keeps the completed work of a run that it stops %s, and the run continues",
    async (_, steps, result) => {
      const script = ({ cwd }: { readonly cwd: string }) => {
        const placed = steps.map((step) => ("until" in step ? { until: join(cwd, step.until) } : step));
        return { turns: [[{ say: "I make it." }, ...placed], [{ echo: true }]] } as const;
      };
      const first = await openAcpSkein({ script });
      const session = await first.session();
      const { runId } = await first.handle(session).accept("Go");
      await soon(() => first.agentSaid("I make it.")).toBe(true);
      // The timeout expires only if the test waits for it.
      const graceMs = steps.some((step) => "until" in step) ? 60_000 : 5000;
      const closing = first.close({ keep: true, graceMs });
      await writeFile(join(first.cwd, "go"), "");
      await closing;
      const second = await skeinWith({ script, root: first.root });
      const { outcome } = await second.skein.ended(runId, { timeoutMs: 150_000 });
      expect(outcome).toMatchObject({ state: "ok" });
      expect(await lines(second, session)).toEqual([
        "user: Go",
        'assistant toolUse: I make it. | → execute {"title":"Make"}',
        expect.stringMatching(result),
        expect.stringMatching(/^assistant stop: \[\[Skein\] Your process was lost [^\]]*continue\.\]$/),
      ]);
    },
  );

  test("[ARU30] an earlier answer does not count when the agent asks again", async () => {
    const permission = {
      id: "c1",
      title: "Delete it",
      kind: "execute",
      rawInput: { command: "rm it" },
    } as const;
    const script = {
      turns: [[{ permission }, { permission: { ...permission, id: "c2" } }], [{ permission }]],
    } as const;
    const acp = { permissions: "ask" };
    const first = await openAcpSkein({ script, acp });
    const { runId } = await first.handle(await first.session()).accept("Go");
    const answered = await first.approval();
    await first.skein.approvals.resolve(answered.approvalId, "approved");
    await soon(() => first.agentSaid("(yes)")).toBe(true);
    const open = await first.approval();
    await first.close({ keep: true });
    const second = await skeinWith({ script, acp, root: first.root });
    const known = new Set([answered.approvalId, open.approvalId]);
    const isNew = ({ approvalId }: { readonly approvalId: string }) => !known.has(approvalId);
    await soon(async () => (await second.skein.approvals.list()).map(isNew)).toEqual([true]);
    await second.skein.approvals.resolve((await second.approval()).approvalId, "denied");
    expect((await second.skein.ended(runId, { timeoutMs: 150_000 })).outcome?.reply).toBe("(no)");
  });

  test("[ARU10] ends idle agents, and one that is starting", async () => {
    const acp = await skeinWith();
    await acp.say(await acp.session(), "Hello");
    const other = await skeinWith({ script: { start: "hang" } });
    await other.handle(await other.session()).accept("Hello");
    await soon(() => other.started.length).toBe(1);
    // afterEach closes both and looks for leftover processes.
  });
});
