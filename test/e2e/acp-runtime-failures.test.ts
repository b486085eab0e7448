import { describe, expect, test } from "vitest";
import { closeAfterEach, lines, skeinWith } from "../support/acp/opened.ts";
import type { AgentScript, Step } from "../support/acp/script.ts";

/**
 * Agents that do not start, do not follow the protocol, or fail midway. Each ends its run and leaves nothing behind.
 */

closeAfterEach();

describe("an agent that fails to open its session", () => {
  test.each<[string, AgentScript["start"], string, RegExp]>([
    ["ends", "exit", "acp_failed", /it exited while it was starting.*cannot find my own configuration/],
    ["does not answer", "hang", "acp_failed", /did not open a session within 3 seconds/],
    ["opens no session", "hang_new", "acp_failed", /did not open a session within 3 seconds/],
    ["writes invalid messages", "garbage", "acp_failed", /unreadable message: \{"jsonrpc": broken/],
    ["uses another version", "wrong_version", "acp_unavailable", /uses protocol version 99/],
    [
      "requires a login",
      "auth_required",
      "acp_unavailable",
      /it requires a login \(Auth.*it offers: A key of your own\. Log in with the agent's own command/,
    ],
  ])("[ARU7] an agent that %s ends the run within the start timeout", async (_, start, code, told) => {
    // Only an agent that hangs has a short timeout. Any other agent gets enough time to reach its failure.
    const startTimeoutSeconds = start?.startsWith("hang") === true ? 3 : 120;
    const acp = await skeinWith({ script: { start: start as "exit" }, acp: { startTimeoutSeconds } });
    const { outcome } = await acp.say(await acp.session(), "Hello");
    expect(outcome).toMatchObject({ state: "error", code });
    expect(outcome?.error).toMatch(told);
    await acp.untilGone();
    expect(acp.reports).toEqual([]);
  });

  test("[ARU7] handles a missing command, and ignores a banner", async () => {
    const none = await skeinWith({ agent: { command: "no-such-agent-anywhere" } });
    const { outcome } = await none.say(await none.session(), "Hello");
    expect(outcome).toMatchObject({ state: "error", code: "acp_unavailable" });
    expect(outcome?.error).toContain("no-such-agent-anywhere");
    const chatty = await skeinWith({ script: { start: "banner" } });
    expect((await chatty.say(await chatty.session(), "Hello")).outcome?.reply).toBe("Done.");
  });
});

test("[ARU7] the key of an agent session that was never spawned is refused, and nothing is started", async () => {
  const acp = await skeinWith();
  const key = "agent:twin:acp:0123456789abcdef";
  await expect(acp.say({ key, sessionId: "" }, "Hello")).rejects.toMatchObject({ code: "not_found" });
  const { sessionId } = await acp.skein.store.sessions.create({ agentId: "twin" }, { key, cwd: acp.cwd });
  const { outcome } = await acp.say({ key, sessionId }, "Hello");
  expect(outcome).toMatchObject({ state: "error", code: "invalid_arguments" });
  expect(outcome?.error).toMatch(/does not belong to an ACP agent\. Spawn one with sessions_spawn/);
  expect(acp.started).toEqual([]);
});

describe("an agent that fails in the middle of a turn", () => {
  test.each<[string, readonly Step[], RegExp]>([
    [
      "ends",
      [{ stderr: "out of memory, sorry\n", exit: 7 }],
      /it exited in the middle of a turn.*7.*out of memory, sorry/,
    ],
    [
      "writes half a message",
      [{ raw: '{"jsonrpc":"2.0","met\n' }, { wait: "for_ever" }],
      /unreadable message/,
    ],
    [
      "writes only noise",
      [{ raw: "noise\n".repeat(200) }, { wait: "for_ever" }],
      /text that is not a message: noise/,
    ],
    [
      "writes an unterminated line",
      [{ endless: 34 * 1024 * 1024 }, { wait: "for_ever" }],
      /more than 33554432 bytes/,
    ],
    [
      "answers with an error",
      [{ fail: { code: -32603, message: "The model is overloaded" } }],
      /The model is overloaded \(-32603\)/,
    ],
    [
      "answers with an error whose reason is in its data",
      [{ fail: { code: -32603, message: "Internal error", data: { details: "No chat of that name" } } }],
      /Internal error \(-32603\): No chat of that name/,
    ],
    [
      "answers with an error with other data",
      [{ fail: { code: -32603, message: "Internal error", data: { at: "load" } } }],
      /Internal error \(-32603\): \{"at":"load"\}/,
    ],
    [
      "requires a login only then",
      [{ fail: { code: -32000, message: "Your token has run out" } }],
      /it requires a login \(Your token has run out/,
    ],
  ])("[ARU8] an agent that %s: its text stays, and the run ends as failed", async (_, steps, told) => {
    const acp = await skeinWith({
      script: { turns: [[{ say: "I begin." }, ...steps], [{ say: "Again." }]] },
    });
    const session = await acp.session();
    const { outcome } = await acp.say(session, "Go");
    expect(outcome).toMatchObject({
      state: "error",
      code: expect.stringMatching(/^acp_/),
      reply: "I begin.",
    });
    expect(outcome?.error).toMatch(told);
    expect(await lines(acp, session)).toEqual(["user: Go", "assistant error: I begin."]);
    await acp.untilGone();
    expect((await acp.say(session, "Once more")).outcome).toMatchObject({ state: "ok", reply: "Again." });
    expect(acp.reports).toEqual([]);
  });

  test("[ARU8] a long message is not a failure", async () => {
    const acp = await skeinWith({ script: { turns: [[{ longLine: 10 * 1024 * 1024 }, { say: "." }]] } });
    const { outcome } = await acp.say(await acp.session(), "Go");
    expect(outcome?.state).toBe("ok");
  });

  test("[ARU8] an open call gets a failed result", async () => {
    const call = { sessionUpdate: "tool_call", toolCallId: "c1", title: "Build", kind: "execute" } as const;
    const acp = await skeinWith({
      script: { turns: [[{ update: { ...call, rawInput: { a: 1 } } }, { exit: 1 }]] },
    });
    const session = await acp.session();
    expect((await acp.say(session, "Go")).outcome).toMatchObject({ state: "error", code: "acp_failed" });
    const said = await lines(acp, session);
    expect(said[2]).toMatch(/^result execute failed: \[skein\] This call has no result/);
  });
});
