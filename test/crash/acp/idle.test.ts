import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { closeAfterEach, skeinWith } from "../../support/acp/opened.ts";

closeAfterEach();

describe("an idle agent", () => {
  test("[ARU3] is no longer prompted if another process has continued its session", async () => {
    const acp = await skeinWith({
      script: { turns: [[{ say: "One." }], [{ say: "Two." }], [{ say: "Three." }]] },
    });
    const session = await acp.session();
    await acp.say(session, "First");
    await acp.say(session, "Second");
    expect(acp.started).toHaveLength(1);
    // Creates the state that the other process leaves behind.
    const { sessions } = acp.skein.store;
    const record = await sessions.get({ agentId: "twin" }, session.sessionId);
    const kept = record?.meta.acp as Readonly<Record<string, unknown>>;
    const other = { ...kept, processMark: randomUUID() };
    await sessions.patch({ agentId: "twin" }, session.sessionId, { acp: other });
    const [old = 0] = acp.started;
    expect((await acp.say(session, "Third")).outcome).toMatchObject({ state: "ok", reply: "Three." });
    expect(acp.started).toHaveLength(2);
    expect(acp.alive).not.toContain(old);
    expect(acp.agentSessions).toHaveLength(1);
  });
});
