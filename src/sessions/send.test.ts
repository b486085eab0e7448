import { beforeEach, describe, expect, test } from "vitest";
import { Between } from "../../test/support/between.ts";
import type { SessionRecord } from "../store/contract.ts";
import { deliveryRunId } from "./delivery.ts";
import { sendToSession } from "./send.ts";
import type { SendRequest } from "./send-target.ts";

let between: Between;
let asker: SessionRecord;
let target: SessionRecord;
beforeEach(async () => {
  between = new Between();
  asker = await between.session("agent:main:main", { channel: "cli" });
  target = await between.session("agent:main:session:b", { label: "desk" });
});
const send = (request: Partial<SendRequest>, more: Parameters<Between["caller"]>[1] = {}, from = asker) =>
  sendToSession(between.deps, between.caller(from, more), { message: "Is it open?", ...request });
const nothingSent = () => expect(between.accepted).toEqual([]);

describe("the target of a message", () => {
  test.each<[string, Partial<SendRequest>, object]>([
    [
      "key and label",
      { sessionKey: "session:b", label: "desk" },
      { status: "error", error: "Provide either sessionKey or label (not both)." },
    ],
    ["nobody", {}, { status: "error", error: "Either sessionKey or label is required" }],
    ["an empty message", { sessionKey: "session:b", message: " \n" }, { code: "invalid_arguments" }],
    ["an invalid agent ID", { agentId: "Some One" }, { code: "invalid_agent_id", status: "error" }],
    [
      "an unknown label",
      { label: "no\nbody" },
      { status: "error", code: "not_found", error: "No session found with label: no\\u000abody" },
    ],
    [
      "an unknown key",
      { sessionKey: "agent:main:session:c" },
      {
        code: "not_found",
        error: "Session not found: agent:main:session:c (use the full sessionKey from sessions_list)",
      },
    ],
    ["an agent without a main session", { agentId: "other" }, { code: "not_found" }],
    ["another agent's session", { sessionKey: "session:b", agentId: "other" }, { sessionKey: "session:b" }],
    ["itself", { sessionKey: "main" }, { code: "invalid_arguments", sessionKey: "main" }],
    ["itself, as current", { sessionKey: "current" }, { error: expect.stringContaining("wait for itself") }],
  ])("[SND12] %s is refused, with a run ID, and nothing is created", async (_, request, refusal) => {
    const count = (await between.store.sessions.list({ userId: "ann" }, {})).sessions.length;
    expect(await send(request)).toMatchObject({
      runId: expect.stringMatching(/./),
      status: "error",
      ...refusal,
    });
    nothingSent();
    expect((await between.store.sessions.list({ userId: "ann" }, {})).sessions).toHaveLength(count);
  });

  test("[SND12] a session is named by key, label, or agent", async () => {
    await between.session("agent:other:main", { label: "front" });
    const keyOf = async (request: Partial<SendRequest>) => (await send(request)).sessionKey;
    expect(await keyOf({ sessionKey: "agent:main:session:b", agentId: "Main" })).toBe("session:b");
    expect(await keyOf({ label: "desk" })).toBe("session:b");
    expect(await keyOf({ label: "front", agentId: "other" })).toBe("agent:other:main");
    expect(await keyOf({ agentId: "other" })).toBe("agent:other:main");
    expect(await keyOf({ label: "front" })).toBeUndefined();
  });

  test("[SND12] if all share one main session, an agent's is that one", async () => {
    between = new Between({ scope: "global" });
    const from = await between.session("agent:main:session:a");
    await between.store.sessions.create({ userId: "ann", agentId: "main" }, { key: "global", cwd: "/" });
    expect(await send({ agentId: "main" }, {}, from)).toMatchObject({ status: "sent" });
  });

  test("[FAM11] a session that is not visible is forbidden, under the name that the asker used", async () => {
    between.hidden.add(target.key);
    const error =
      "Session send visibility is restricted to the current session tree (tools.sessions.visibility=tree).";
    const refusal = { status: "forbidden", code: "tree_visibility_restricted", error };
    expect(await send({ sessionKey: target.key })).toMatchObject({ ...refusal, sessionKey: "session:b" });
    expect(await send({ label: "desk" })).toEqual({ runId: expect.anything(), ...refusal });
    nothingSent();
  });

  test("[TLK14] a label that the asker gave its child reaches it under any agent", async () => {
    await between.session("agent:claude:acp:c1", { label: "mender", spawnedBy: asker.key });
    await between.session("agent:claude:acp:c2", { label: "other", spawnedBy: target.key });
    const to = async (label: string, more = {}) => send({ label }, more);
    expect((await to("mender")).sessionKey).toBe("agent:claude:acp:c1");
    expect((await to("mender", { sandboxed: true })).sessionKey).toBe("agent:claude:acp:c1");
    for (const label of ["other", "nobody"])
      expect((await to(label)).error).toBe(`No session found with label: ${label}`);
  });

  test("[TLK14] a label shared by several children with different numbers is ambiguous", async () => {
    for (const [id, label] of Object.entries({ c1: "mender (2)", c2: "mender (3)", c3: "mender (no)" }))
      await between.session(`agent:claude:acp:${id}`, { label, spawnedBy: asker.key });
    expect(await send({ label: "mender" })).toMatchObject({
      code: "ambiguous",
      error: expect.stringContaining("agent:claude:acp:c1, agent:claude:acp:c2 ("),
    });
    expect((await send({ label: "mender (3)" })).sessionKey).toBe("agent:claude:acp:c2");
  });

  test("[FAM11] a sandboxed session looks up only labels of its own agent", async () => {
    await between.session("agent:other:main", { label: "front" });
    expect(await send({ label: "front", agentId: "other" }, { sandboxed: true })).toMatchObject({
      status: "forbidden",
      code: "sandbox_restricted",
      error: "Sandboxed sessions_send label lookup is limited to this agent",
    });
    expect(await send({ label: "desk", agentId: "main" }, { sandboxed: true })).toMatchObject({
      status: "sent",
    });
  });
});

describe("sending", () => {
  test("without a wait, the message is durable, and the reply comes later", async () => {
    const caller = between.caller(asker, { callId: "c1" });
    const result = await sendToSession(between.deps, caller, {
      sessionKey: "session:b",
      message: " As given.\n",
    });
    expect(result).toEqual({
      runId: deliveryRunId("ann", "c1"),
      status: "sent",
      sessionKey: "session:b",
      delivery: { status: "pending", mode: "announce" },
    });
    const provenance = {
      kind: "inter_session",
      sourceSessionKey: "agent:main:main",
      sourceChannel: "cli",
      sourceTool: "sessions_send",
      rootId: "c1",
      hops: 0,
      deliveryId: "c1",
    };
    expect(await between.books.runs.get(result.runId)).toMatchObject({
      state: "queued",
      lane: "nested",
      kind: "send",
      idempotencyKey: "delivery:c1",
      entryId: "c1",
      message: { role: "user", content: " As given.\n", provenance },
      provenance,
      root: { rootId: "c1", hops: 0 },
      startedBy: null,
      session: { key: target.key },
    });
    const [request] = between.accepted;
    expect(request).toMatchObject({ pair: [asker.uid, target.uid] });
    expect(request?.awaitedBy).toBeUndefined();
    expect(request?.options).toEqual({
      origin: "inter_session",
      requestDigests: expect.any(Object),
      extraSystemPrompt: expect.stringMatching(/^Agent-to-agent message context:\n/),
      sequel: {
        type: "reply",
        asker: { key: asker.key, sessionId: asker.sessionId, channel: "cli" },
        target: { key: target.key, sessionId: target.sessionId },
        request: " As given.\n",
        turns: 5,
      },
    });
    const prompt = request?.options?.extraSystemPrompt ?? "";
    for (const part of [asker.key, target.key, "channel cli", "no channel"]) expect(prompt).toContain(part);
    expect(prompt).not.toContain("_SKIP");
  });

  test("a run sends under its own root, one hop further, with its channel as the asker's", async () => {
    const { run } = await between.books.running("ann/x", {
      root: { rootId: "root", hops: 1 },
      options: { deliverTo: { channel: "desk", to: "ann" } },
    });
    const desk = await between.session("agent:main:slack:group:G1:thread:42");
    await send({ sessionKey: desk.key, timeoutSeconds: 0, message: "y".repeat(9000) }, { run, callId: "c2" });
    const [request] = between.accepted;
    expect(request).toMatchObject({
      root: { rootId: "root", hops: 2 },
      startedBy: run.runId,
      provenance: { rootId: "root", hops: 2 },
      options: {
        sequel: {
          deliverTo: { channel: "desk", to: "ann" },
          announceTo: { channel: "slack", to: "G1", threadId: "42" },
          target: { channel: "slack" },
        },
      },
    });
    expect(request?.options?.sequel).toHaveProperty("request.length", 4000);
  });

  test("[FAM10] between a session and its ancestors, nothing is counted and no exchange starts", async () => {
    const child = await between.session("agent:main:subagent:x:c1", { spawnedBy: asker.key });
    const grandchild = await between.session("agent:other:subagent:x:c2", { spawnedBy: child.key });
    const sibling = await between.session("agent:main:subagent:x:c3", { spawnedBy: asker.key });
    await send({ sessionKey: grandchild.key });
    await send({ sessionKey: asker.key }, {}, grandchild);
    await send({ sessionKey: sibling.key }, {}, child);
    const [down, up, across] = between.accepted;
    for (const each of [down, up]) {
      expect(each?.pair).toBeUndefined();
      expect(each?.options?.sequel).toMatchObject({ turns: 0 });
    }
    expect(across?.pair).toEqual([child.uid, sibling.uid]);
    expect(across?.options?.sequel).toMatchObject({ turns: 5 });
  });

  test.each([undefined, true])("a child announces only in its own thread: %s", async (ownThread) => {
    const delivery = { channel: "desk", to: "ann", threadId: "42" };
    const child = await between.session("agent:main:subagent:x:c1", {
      spawnedBy: "agent:main:z",
      delivery,
      ...(ownThread === undefined ? {} : { ownThread }),
    });
    await send({ sessionKey: child.key });
    const sequel = between.accepted[0]?.options?.sequel as { announceTo?: object };
    expect(sequel.announceTo).toEqual(ownThread === undefined ? undefined : delivery);
  });

  test("[FAM12] a note is written as the target's own message, without an answer", async () => {
    const { run } = await between.books.running("ann/x");
    const result = await send({ sessionKey: "session:b", role: "assistant", timeoutSeconds: 5 }, { run });
    expect(result).toEqual({ runId: result.runId, status: "sent", sessionKey: "session:b" });
    expect(await between.books.runs.get(result.runId)).toMatchObject({
      kind: "note",
      isSilent: true,
      startedBy: null,
      message: { role: "assistant", content: [{ type: "text", text: "Is it open?" }] },
      provenance: { sourceSessionKey: asker.key },
      options: {},
    });
  });

  test("[FAM13] is refused over budget, with the numbers", async () => {
    const { run } = await between.books.running("ann/x", { root: { rootId: "root", hops: 8 } });
    expect(await send({ sessionKey: "session:b" }, { run })).toMatchObject({
      runId: expect.stringMatching(/./),
      status: "error",
      code: "budget_exceeded",
      sessionKey: "session:b",
      budget: { rootId: "root", limit: "hops", figure: 9, allowed: 8 },
    });
    const root = { rootId: "root2", hops: 0 };
    const results = [];
    for (let each = 0; each < 6; each++) {
      results.push((await send({ sessionKey: "session:b" }, { run: { ...run, root } })).code);
    }
    expect(results).toEqual([...Array(5).fill(undefined), "budget_exceeded"]);
  });

  test("[FAM13] a failed lookup is not a denial, and can be retried", async () => {
    const sessions = new Proxy(between.store.sessions, {
      get: (real, name) =>
        name === "find" ? () => Promise.reject(new Error("EIO")) : Reflect.get(real, name),
    });
    const child = await between.session("agent:main:subagent:x:c1", { spawnedBy: "agent:main:session:z" });
    const app = { ...between.deps, store: { ...between.store, sessions } };
    expect(
      await sendToSession(app, between.caller(asker), { sessionKey: child.key, message: "x" }),
    ).toMatchObject({ status: "error", code: "lookup_failed", retryable: true });
    nothingSent();
  });

  test("a message from outside any session has no session to reply to", async () => {
    const caller = between.caller(null);
    const result = await sendToSession(between.deps, caller, { sessionKey: target.key, message: "Hello" });
    expect(result).toEqual({ runId: result.runId, status: "sent", sessionKey: "session:b" });
    const [request] = between.accepted;
    expect(request?.provenance).toMatchObject({ kind: "external_user", sourceTool: "sessions_send" });
    expect(request?.provenance).not.toHaveProperty("sourceSessionKey");
    expect(request?.options).toEqual({ origin: "inter_session", requestDigests: expect.any(Object) });
    expect(request?.pair).toBeUndefined();
  });
});
