import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { closeAfterEach, skeinWith } from "../support/acp/opened.ts";

/** What an agent asks of us, by policy. */

closeAfterEach();

const permission = { id: "c1", title: "Delete it", kind: "execute", rawInput: { command: "rm it" } } as const;

describe("permissions", () => {
  test.each([
    ["allow", "(yes)"],
    ["deny", "(no)"],
  ])(
    "[ARU5] by the policy %s nobody is asked, and the option for once is taken",
    async (permissions, reply) => {
      const acp = await skeinWith({ script: { turns: [[{ permission }]] }, acp: { permissions } });
      expect((await acp.say(await acp.session(), "Go")).outcome?.reply).toBe(reply);
    },
  );

  test("[ARU5] by the policy ask a person says yes or no, to each question", async () => {
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
    await acp.skein.resolveApproval(first.approvalId, "approved");
    // The same call again, by the same id: the yes is used up.
    const second = await acp.approval();
    expect(second.approvalId).not.toBe(first.approvalId);
    await acp.skein.resolveApproval(second.approvalId, "denied");
    expect((await acp.skein.ended(runId, { timeoutMs: 30_000 })).outcome?.reply).toBe("(yes)(no)");
  });

  test("[ARU5] ten thousand questions at once are answered or refused, and the turn goes on", async () => {
    const acp = await skeinWith({ script: { turns: [[{ storm: 10_000 }]] }, acp: { permissions: "deny" } });
    const { outcome } = await acp.say(await acp.session(), "Go");
    const counts = JSON.parse(outcome?.reply ?? "{}") as Record<string, number>;
    expect(counts.no).toBeGreaterThan(0);
    expect((counts.no ?? 0) + (counts.failed ?? 0)).toBe(10_000);
  });
});

describe("files", () => {
  test("[ARU6] are read and written inside the working directory, and nowhere else", async () => {
    const acp = await skeinWith({ acp: { permissions: "ask" } });
    const [inside, outside] = [join(acp.cwd, "a.txt"), join(acp.root, "skein.yaml")];
    await acp.close({ keep: true });
    await writeFile(inside, "It stands here.");
    const made = join(acp.cwd, "b.txt");
    const steps = [
      { read: inside },
      { read: outside },
      { write: made, content: "new" },
      { write: outside, content: "" },
    ];
    const again = await skeinWith({
      script: { turns: [steps] },
      acp: { permissions: "ask" },
      root: acp.root,
    });
    const { outcome } = await again.say(await again.session(), "Go");
    expect(outcome?.reply).toMatch(
      /^It stands here\..*lies outside the working directory.*\(written\).*lies outside/s,
    );
    expect(await readFile(made, "utf8")).toBe("new");
    expect(await readFile(outside, "utf8")).toContain("acp");
  });

  test("[ARU6] are not written where permissions are denied", async () => {
    const acp = await skeinWith();
    await acp.close({ keep: true });
    const steps = [{ write: join(acp.cwd, "b.txt"), content: "new" }];
    const again = await skeinWith({
      script: { turns: [steps] },
      acp: { permissions: "deny" },
      root: acp.root,
    });
    expect((await again.say(await again.session(), "Go")).outcome?.reply).toContain("permissions are denied");
    await expect(readFile(join(acp.cwd, "b.txt"))).rejects.toThrow("ENOENT");
  });
});

describe("terminals", () => {
  const terminal = { terminal: "echo", args: ["done", "it"] } as const;

  test.each([
    ["allow", "(0: done it)"],
    ["deny", "(The command was not allowed: permission was denied)"],
  ])("[ARU6] need permission: by the policy %s", async (permissions, reply) => {
    const acp = await skeinWith({ script: { turns: [[terminal]] }, acp: { permissions } });
    expect((await acp.say(await acp.session(), "Go")).outcome?.reply).toBe(reply);
  });

  test("[ARU6] are asked for, but not where the call that they run was granted just now", async () => {
    const granted = { ...permission, rawInput: { command: "echo done it" } };
    const acp = await skeinWith({
      script: { turns: [[{ permission: granted, allowed: [terminal, terminal] }]] },
      acp: { permissions: "ask" },
    });
    const { runId } = await acp.handle(await acp.session()).accept("Go");
    await acp.skein.resolveApproval((await acp.approval()).approvalId, "approved");
    const second = await acp.approval();
    expect(second).toMatchObject({
      toolName: "execute",
      arguments: { command: "echo", args: ["done", "it"] },
    });
    await acp.skein.resolveApproval(second.approvalId, "denied");
    expect((await acp.skein.ended(runId, { timeoutMs: 30_000 })).outcome?.reply).toMatch(
      /^\(0: done it\)\(The command was not allowed: permission was denied\)\(yes\)$/,
    );
  });

  test("[ARU6] end with the process of their agent", async () => {
    const acp = await skeinWith();
    await acp.close({ keep: true });
    await mkdir(acp.cwd, { recursive: true });
    const program = `require("fs").appendFileSync(${JSON.stringify(join(acp.root, "pids"))}, process.pid + "\\n"); setInterval(() => {}, 60000);`;
    const steps = [{ leaveTerminal: process.execPath, args: ["-e", program] }, { say: "Left." }];
    const again = await skeinWith({ script: { turns: [steps] }, root: acp.root });
    await again.say(await again.session({}, "run"), "Go");
    await again.untilGone();
  });
});
