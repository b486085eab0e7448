import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { AcpSkein } from "../support/acp/acp-skein.ts";
import { closeAfterEach, skeinWith } from "../support/acp/opened.ts";
import { repetitions } from "../support/repetitions.ts";
import { soon } from "../support/soon.ts";

/** An agent's requests to Skein, by policy. */

closeAfterEach();

const { permissionRequests } = repetitions;
const permission = { id: "c1", title: "Delete it", kind: "execute", rawInput: { command: "rm it" } } as const;

describe("permissions", () => {
  test.each([
    ["allow", "(yes)"],
    ["deny", "(no)"],
  ])(
    "[ARU5] with the policy %s no one is asked, and the allow-once option is chosen",
    async (permissions, reply) => {
      const acp = await skeinWith({ script: { turns: [[{ permission }]] }, acp: { permissions } });
      expect((await acp.say(await acp.session(), "Go")).outcome?.reply).toBe(reply);
    },
  );

  test("[ARU5] with the policy ask a person answers yes or no to each question", async () => {
    const acp = await skeinWith({
      script: { turns: [[{ permission }, { permission }]] },
      acp: { permissions: "ask" },
    });
    const { runId } = await acp.handle(await acp.session()).accept("Go");
    const first = await acp.approval();
    expect(first).toMatchObject({
      toolName: "execute",
      arguments: { title: "Delete it", rawInput: { command: "rm it" } },
    });
    await acp.skein.approvals.resolve(first.approvalId, "approved");
    // The same call again with the same ID. Its approval has been used up.
    const second = await acp.approval();
    expect(second.approvalId).not.toBe(first.approvalId);
    await acp.skein.approvals.resolve(second.approvalId, "denied");
    expect((await acp.skein.ended(runId, { timeoutMs: 150_000 })).outcome?.reply).toBe("(yes)(no)");
  });

  const answered = async (acp: AcpSkein, answer: "approved" | "denied") => {
    const approval = await acp.approval();
    await acp.skein.approvals.resolve(approval.approvalId, answer);
    return approval;
  };

  test.each([
    ["a call", { permission, isLeft: true }],
    ["a terminal", { leaveTerminal: "touch", args: ["made"], isLeft: true }],
  ] as const)(
    "[ARU30] a question for %s that is pending when the agent ends its turn is withdrawn, and the run succeeds",
    async (_, asking) => {
      const acp = await skeinWith({
        script: ({ cwd }) => ({ turns: [[asking, { until: join(cwd, "go") }, { say: "Done." }]] }),
        acp: { permissions: "ask" },
      });
      const session = await acp.session();
      const { runId } = await acp.handle(session).accept("Go");
      const { approvalId } = await acp.approval();
      await writeFile(join(acp.cwd, "go"), "");
      expect((await acp.skein.ended(runId, { timeoutMs: 150_000 })).outcome).toMatchObject({
        state: "ok",
        reply: "Done.",
      });
      expect(await acp.skein.approvals.list()).toEqual([]);
      await expect(acp.skein.approvals.resolve(approvalId, "approved")).rejects.toMatchObject({
        code: "conflict",
      });
      await acp.say(session, "Again");
      await expect(readFile(join(acp.cwd, "made"))).rejects.toThrow("ENOENT");
    },
  );

  test("[ARU30] a withdrawn question has ended before the next prompt of its session", async () => {
    const acp = await skeinWith({
      script: ({ cwd }) => ({
        turns: [[{ permission, isLeft: true }, { until: join(cwd, "go") }], [{ permission }]],
      }),
      acp: { permissions: "ask" },
    });
    const session = await acp.session();
    await acp.handle(session).accept("First");
    const first = await acp.approval();
    const { runId } = await acp.handle(session).accept("Second", { queueMode: "steer" });
    await writeFile(join(acp.cwd, "go"), "");
    await soon(async () => (await acp.skein.approvals.list()).map(({ approvalId }) => approvalId)).toEqual([
      expect.not.stringMatching(first.approvalId),
    ]);
    await answered(acp, "approved");
    expect((await acp.skein.ended(runId, { timeoutMs: 150_000 })).outcome?.reply).toBe("(yes)");
  });

  test("[ARU5] the same question in the next prompt is asked again", async () => {
    const acp = await skeinWith({
      script: { turns: [[{ permission }], [{ permission }]] },
      acp: { permissions: "ask" },
    });
    const session = await acp.session();
    await acp.handle(session).accept("First");
    await acp.approval();
    const { runId } = await acp.handle(session).accept("Second", { queueMode: "steer" });
    const first = await answered(acp, "approved");
    const second = await answered(acp, "denied");
    expect(second).toMatchObject({ arguments: first.arguments });
    expect(second.approvalId).not.toBe(first.approvalId);
    expect((await acp.skein.ended(runId, { timeoutMs: 150_000 })).outcome?.reply).toBe("(no)");
  });

  test("[ARU5] a permission request for a known call need not describe it again", async () => {
    const { kind: _, rawInput: __, ...asked } = permission;
    const update = {
      ...permission,
      toolCallId: "c1",
      sessionUpdate: "tool_call",
      status: "pending",
    } as const;
    const acp = await skeinWith({
      script: { turns: [[{ update }, { permission: asked }]] },
      acp: { permissions: "ask" },
    });
    const { runId } = await acp.handle(await acp.session()).accept("Go");
    const { approvalId, ...approval } = await acp.approval();
    expect(approval).toMatchObject({
      toolName: "execute",
      arguments: { title: "Delete it", rawInput: { command: "rm it" } },
    });
    await acp.skein.approvals.resolve(approvalId, "approved");
    expect((await acp.skein.ended(runId, { timeoutMs: 150_000 })).outcome?.reply).toBe("(yes)");
  });

  test(`[ARU5] ${permissionRequests} questions at once are answered or refused, and the turn continues`, async () => {
    const acp = await skeinWith({
      script: { turns: [[{ storm: permissionRequests }]] },
      acp: { permissions: "deny" },
    });
    const { state, outcome } = await acp.say(await acp.session(), "Go");
    expect({ state, error: outcome?.error ?? null }).toEqual({ state: "ok", error: null });
    const counts = JSON.parse(outcome?.reply ?? "{}") as Record<string, number>;
    expect(counts.no).toBeGreaterThan(0);
    expect((counts.no ?? 0) + (counts.failed ?? 0)).toBe(permissionRequests);
  });
});

describe("files", () => {
  test("[ARU6] are read and written inside the working directory, and nowhere else", async () => {
    const acp = await skeinWith({
      acp: { permissions: "ask" },
      script: ({ cwd, root }) => {
        const [inside, made, outside] = [join(cwd, "a.txt"), join(cwd, "b.txt"), join(root, "skein.yaml")];
        return {
          turns: [
            [
              { read: inside },
              { read: outside },
              { write: made, content: "new" },
              { write: outside, content: "" },
            ],
          ],
        };
      },
    });
    await writeFile(join(acp.cwd, "a.txt"), "It stands here.");
    const { outcome } = await acp.say(await acp.session(), "Go");
    expect(outcome?.reply).toMatch(
      /^It stands here\..*is outside this session's working directory.*\(written\).*is outside/s,
    );
    expect(await readFile(join(acp.cwd, "b.txt"), "utf8")).toBe("new");
    expect(await readFile(join(acp.root, "skein.yaml"), "utf8")).toContain("acp");
  });

  test("[ARU6] are not written if permissions are denied", async () => {
    const acp = await skeinWith({
      acp: { permissions: "deny" },
      script: ({ cwd }) => ({ turns: [[{ write: join(cwd, "b.txt"), content: "new" }]] }),
    });
    expect((await acp.say(await acp.session(), "Go")).outcome?.reply).toContain("permissions are denied");
    await expect(readFile(join(acp.cwd, "b.txt"))).rejects.toThrow("ENOENT");
  });
});

describe("terminals", () => {
  const terminal = { terminal: "echo", args: ["done", "it"] } as const;

  test.each([
    ["allow", "(0: done it)"],
    ["deny", "(The command was not allowed: permission was denied)"],
  ])("[ARU6] require permission: with the policy %s", async (permissions, reply) => {
    const acp = await skeinWith({ script: { turns: [[terminal]] }, acp: { permissions } });
    expect((await acp.say(await acp.session(), "Go")).outcome?.reply).toBe(reply);
  });

  test("[ARU6] are asked about, unless the call they run was just approved", async () => {
    const granted = { ...permission, rawInput: { command: "echo done it" } };
    const acp = await skeinWith({
      script: { turns: [[{ permission: granted, allowed: [terminal, terminal] }]] },
      acp: { permissions: "ask" },
    });
    const { runId } = await acp.handle(await acp.session()).accept("Go");
    await acp.skein.approvals.resolve((await acp.approval()).approvalId, "approved");
    const second = await acp.approval();
    expect(second).toMatchObject({
      toolName: "execute",
      arguments: { command: "echo", args: ["done", "it"] },
    });
    await acp.skein.approvals.resolve(second.approvalId, "denied");
    expect((await acp.skein.ended(runId, { timeoutMs: 150_000 })).outcome?.reply).toMatch(
      /^\(0: done it\)\(The command was not allowed: permission was denied\)\(yes\)$/,
    );
  });

  test("[ARU6] end with the process of their agent", async () => {
    const acp = await skeinWith({
      script: ({ root }) => {
        const pids = JSON.stringify(join(root, "pids"));
        const program = `require("fs").appendFileSync(${pids}, process.pid + "\\n"); setInterval(() => {}, 60000);`;
        return { turns: [[{ leaveTerminal: process.execPath, args: ["-e", program] }, { wait: "cancel" }]] };
      },
    });
    const { runId } = await acp.handle(await acp.session({}, "run")).accept("Go");
    await soon(() => acp.started.length).toBe(2);
    await acp.skein.runs.abort(runId);
    await acp.untilGone();
  });
});
