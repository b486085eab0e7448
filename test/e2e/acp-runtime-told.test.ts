import { join } from "node:path";
import type { SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import { describe, expect, test } from "vitest";
import { closeAfterEach, lines, skeinWith } from "../support/acp/opened.ts";
import type { Step } from "../support/acp/script.ts";
import { soon } from "../support/soon.ts";

/** Inputs and outputs that differ from agent to agent. */

closeAfterEach();

const chunk = (text: string, messageId?: string): Step => {
  const content = { type: "text", text } as const;
  const update = { sessionUpdate: "agent_message_chunk", content, ...(messageId && { messageId }) };
  return { update: update as SessionUpdate };
};

describe("the reply of a run", () => {
  test("[ARU15] is the agent's last message; a warning before it is written, but not part of it", async () => {
    const acp = await skeinWith({
      script: { turns: [[chunk("Warning: old.\n\n"), chunk("I am", "m1"), chunk(" here.", "m1")]] },
    });
    const session = await acp.session();
    expect((await acp.say(session, "Who?")).outcome).toMatchObject({ state: "ok", reply: "I am here." });
    expect(await lines(acp, session)).toEqual([
      "user: Who?",
      "assistant stop: Warning: old.\n\n | I am here.",
    ]);
  });
});

describe("an agent that ends its turn because of a denial", () => {
  const permission = {
    id: "c1",
    title: "Delete it",
    kind: "execute",
    rawInput: { command: "rm it" },
  } as const;
  const turns = [[{ permission, rejected: [{ stop: "cancelled" }] }]] as const;

  test("[ARU16] the run reports what was denied by policy", async () => {
    const acp = await skeinWith({ script: { turns }, acp: { permissions: "deny" } });
    const session = await acp.session();
    const { outcome } = await acp.say(session, "Go");
    expect(outcome).toMatchObject({ state: "error", code: "acp_failed" });
    expect(outcome?.error).toMatch(
      /Permission for "Delete it" was denied: by acp\.permissions: deny\. Grant the permission/,
    );
    const last = (await acp.entries(session)).at(-1);
    expect(last).toMatchObject({
      message: { stopReason: "aborted", errorMessage: expect.stringContaining('Permission for "Delete it"') },
    });
  });

  test("[ARU16] the run reports what a person denied, and the session continues", async () => {
    const acp = await skeinWith({
      script: { turns: [...turns, [{ say: "Well then." }]] },
      acp: { permissions: "ask" },
    });
    const session = await acp.session();
    const { runId } = await acp.handle(session).accept("Go");
    await acp.skein.approvals.resolve((await acp.approval()).approvalId, "denied");
    const { outcome } = await acp.skein.ended(runId, { timeoutMs: 150_000 });
    expect(outcome).toMatchObject({ state: "error", code: "acp_failed" });
    expect(outcome?.error).toMatch(/"Delete it" was denied: a person rejected it\./);
    expect((await acp.say(session, "Otherwise")).outcome?.reply).toBe("Well then.");
  });

  test("[ARU16] a turn cancelled without a denial reports that no cancel was requested", async () => {
    const acp = await skeinWith({ script: { turns: [[{ stop: "cancelled" }]] } });
    expect((await acp.say(await acp.session(), "Go")).outcome?.error).toContain("without being asked to");
  });
});

describe("the system prompt of a run", () => {
  const options = { extraSystemPrompt: "Be brief." };

  test("[ARU17] is sent in the prompt, again only when it changes, and can be withdrawn", async () => {
    const acp = await skeinWith({ script: { turns: [[{ echo: true }]] } });
    const session = await acp.session();
    const reply = async (text: string, extra: object) => (await acp.say(session, text, extra)).outcome?.reply;
    expect(await reply("One", options)).toMatch(
      /^\[\[Skein\] Instructions for you[^\]]*:\n\nBe brief\.\n\n\[Skein\] End of the instructions\.\n\n\]\[One\]$/,
    );
    expect(await reply("Two", options)).toBe("[Two]");
    expect(await reply("Three", { extraSystemPrompt: "Be long." })).toMatch(/Be long\..*\]\[Three\]$/s);
    expect(await reply("Four", {})).toMatch(/^\[\[Skein\] .* no longer apply\.\n\n\]\[Four\]$/);
    expect(await reply("Five", {})).toBe("[Five]");
  });

  test("[ARU17] follows a slash command of the agent", async () => {
    const acp = await skeinWith({ script: { turns: [[{ echo: true }]] } });
    const { outcome } = await acp.say(await acp.session(), "/compact", options);
    expect(outcome?.reply).toMatch(/^\[\/compact\]\[\n\n\[Skein\] Instructions.*Be brief\./s);
  });

  test("[ARU17] is given to the session itself if the agent supports it, and again when it is resumed", async () => {
    const acp = await skeinWith({
      script: { can: { systemPrompt: true }, turns: [[{ echo: true }, { tell: "system" }]] },
    });
    const session = await acp.session({}, "run");
    expect((await acp.say(session, "One", options)).outcome?.reply).toBe("[One]Be brief.");
    await acp.untilGone();
    const resumed = await acp.say(session, "Two", { extraSystemPrompt: "Be long." });
    expect(resumed.outcome?.reply).toBe("[Two]Be long.");
  });
});

describe("models of agents without config options", () => {
  test("[ARU4] are set from the list that the agent gives", async () => {
    const acp = await skeinWith({ script: { models: ["small", "large"], turns: [[{ tell: "config" }]] } });
    const { outcome } = await acp.say(await acp.session({ model: "the LARGE one" }), "Go");
    expect(JSON.parse(outcome?.reply ?? "")).toMatchObject({ model: "large" });
    const unknown = await acp.say(await acp.session({ model: "huge" }), "Go");
    expect(unknown.outcome).toMatchObject({ state: "error", code: "acp_unsupported" });
    expect(unknown.outcome?.error).toContain("Use one of: small, large");
  });

  test("[ARU4] if the agent lists models but cannot set one, the run ends as unsupported", async () => {
    const acp = await skeinWith({ script: { models: ["small", "large"], isListedOnly: true } });
    const { outcome } = await acp.say(await acp.session({ model: "large" }), "Go");
    expect(outcome).toMatchObject({ state: "error", code: "acp_unsupported" });
    expect(outcome?.error).toContain("it offers a model but cannot set it");
  });
});

describe("resources of a turn", () => {
  test("[ARU9] terminals of an aborted turn end with it, even if the process stays", async () => {
    const acp = await skeinWith({
      script: ({ root }) => {
        const pids = JSON.stringify(join(root, "pids"));
        const program = `require("fs").appendFileSync(${pids}, process.pid + "\\n"); setInterval(() => {}, 60000);`;
        const left = { leaveTerminal: process.execPath, args: ["-e", program] };
        return { turns: [[left, { wait: "cancel" }], [{ tell: "pid" }]] };
      },
    });
    const session = await acp.session();
    const { runId } = await acp.handle(session).accept("Go");
    await soon(() => acp.started.length).toBe(2);
    await acp.skein.runs.abort(runId);
    await acp.skein.ended(runId, { timeoutMs: 150_000 });
    const [agent] = acp.started;
    expect(acp.alive).toEqual([agent]);
    expect((await acp.say(session, "Who?")).outcome?.reply).toBe(String(agent));
  });

  test("[ARU6] a missing file is reported with the protocol's error code, and one outside the folder is not", async () => {
    const acp = await skeinWith({
      script: ({ cwd, root }) => ({
        turns: [[{ read: join(cwd, "none.txt") }, { read: join(root, "none.txt") }]],
      }),
    });
    const { outcome } = await acp.say(await acp.session(), "Go");
    expect(outcome?.reply).toMatch(/^\(Resource not found: [^)]*none\.txt\)\([^)]*is outside[^)]*\)$/);
  });
});
