import { afterEach, describe, expect, test } from "vitest";
import { sessionTools } from "../../src/index.ts";
import { answering, closeAll, withScript } from "../support/skein.ts";

afterEach(closeAll);

describe("a session tool called from outside", () => {
  test("[TLR15] a read-only tool creates no session", async () => {
    const { skein } = await withScript(answering());
    const { result, rootId } = await skein.callTool("sessions_list", {});
    expect(result).toMatchObject({ count: 0, sessions: [] });
    expect(rootId).toBeNull();
    const named = skein.callTool("session_status", {}, { sessionKey: "agent:main:session:typo" });
    await expect(named).rejects.toMatchObject({ code: "not_found" });
    expect(await skein.store.sessions.count({}, {})).toBe(0);
  });

  test("[TLR15] a tool that starts work creates its session, for a known agent", async () => {
    const { skein } = await withScript(answering("Done."));
    const { rootId } = await skein.callTool("sessions_spawn", { task: "look" });
    await skein.settled(rootId ?? "");
    expect(await skein.session({ sessionKey: "agent:main:main" }).record()).not.toBeNull();
    const nobody = skein.callTool("sessions_spawn", { task: "look" }, { agentId: "nobody" });
    await expect(nobody).rejects.toMatchObject({ code: "not_found" });
  });

  test("[TLR15] an external loop acts from its session, which is created for it", async () => {
    const { skein } = await withScript(answering());
    const tools = await sessionTools(skein, { userId: "ann", sessionKey: "agent:main:session:mine" });
    const listed = await tools.sessions_list?.execute({}, { toolCallId: "call-1" });
    expect(listed).toMatchObject({ count: 1, sessions: [{ key: "session:mine" }] });
    const status = await tools.session_status?.execute({}, { toolCallId: "call-2" });
    expect(status).toMatchObject({ sessionKey: "session:mine", agentId: "main" });
  });

  test("[TLK16] requested tools that match nothing are named in the result", async () => {
    const { skein } = await withScript(answering("Done."));
    const spawned = async (tools: string[]) => {
      const { result, rootId } = await skein.callTool("sessions_spawn", { task: "look", tools });
      await skein.settled(rootId ?? "");
      return "note" in result ? result.note : result;
    };
    expect(await spawned(["group:sessions", "wether"])).toContain('agent main has no such tools: "wether"');
    expect(await spawned(["sessions_*"])).not.toContain("no such tools");
  });

  test("[TLR15] an unknown tool is refused with the known names", async () => {
    const { skein } = await withScript(answering());
    const called = skein.callTool("sessions_lisst", {});
    await expect(called).rejects.toMatchObject({ code: "invalid_arguments" });
    await expect(called).rejects.toThrow("sessions_history");
  });

  test("[RDT15] the messages of a list are limited in size, and the rows report what is omitted", async () => {
    const { skein } = await withScript(answering(), { visibility: "agent" });
    for (let at = 0; at < 8; at += 1) {
      const init = { key: `agent:main:session:s${at}`, cwd: "/" };
      const { sessionId } = await skein.store.sessions.create({ agentId: "main" }, init);
      const content = "word ".repeat(700);
      const draft = { type: "message", message: { role: "user", content } } as const;
      await skein.store.sessions.append(
        {},
        sessionId,
        Array.from({ length: 20 }, () => ({ draft })),
      );
    }
    const asker = { sessionKey: "agent:main:session:s0" };
    const listed = async (messageLimit: number) =>
      (await skein.callTool("sessions_list", { messageLimit }, asker)).result;
    const { sessions } = (await listed(20)) as {
      sessions: { messages?: unknown[]; messagesError?: string }[];
    };
    expect(JSON.stringify(sessions).length).toBeLessThan(260 * 1024);
    expect(new Set(sessions.map(({ messages }) => messages?.length)).size).toBe(1);
    for (const { messages = [], messagesError } of sessions)
      expect(messagesError).toContain(`Only the newest ${messages.length} of 20 messages`);
    const few = (await listed(2)) as { sessions: { messages?: unknown[] }[] };
    expect(few.sessions.map(({ messages }) => messages?.length)).toEqual(Array(8).fill(2));
  });
});
