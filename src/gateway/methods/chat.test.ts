import { afterEach, describe, expect, test } from "vitest";
import { gifOf, jpegOf, pngOf, webpOf } from "../../../test/support/images.ts";
import { gateOf } from "../../../test/support/run-skein.ts";
import { answering, closeAll } from "../../../test/support/skein.ts";
import { ann, annAdmin, bob, closeTalking, codeOf, openTalking } from "../../../test/support/talking.ts";
import { defineTool } from "../../agents/tools/define-tool.ts";
import { textOf } from "../../core/messages.ts";
import type { RunOptions } from "../../runs/contract.ts";

afterEach(async () => {
  await closeTalking();
  await closeAll();
});

const trip = "agent:main:session:trip";

describe("sending to a session", () => {
  test.each(["agent:main:session:trip", "session:trip", "main"])(
    "a valid key such as %s creates its session for the call's user only",
    async (sessionKey) => {
      const { skein, as } = await openTalking({ script: answering() });
      const sent = await as(ann).call("chat.send", { sessionKey, message: "Hello", idempotencyKey: "1" });
      expect(sent).toMatchObject({ status: "accepted" });
      const { userId, sessionKey: key } = { userId: "ann", sessionKey: sent.sessionKey };
      expect(await skein.session({ userId, sessionKey: key }).record()).not.toBeNull();
      expect(await skein.session({ sessionKey: key }).record()).toBeNull();
    },
  );

  test("IDs and labels must exist, and other methods create nothing", async () => {
    const { as } = await openTalking({ script: answering() });
    const said = { message: "Hello", idempotencyKey: "1" };
    expect(await codeOf(as(ann).call("chat.send", { sessionKey: "nothing", ...said }))).toBe("not_found");
    expect(await codeOf(as(ann).call("sessions.send", { key: "nothing", ...said }))).toBe("not_found");
    expect(await codeOf(as(annAdmin).call("chat.inject", { sessionKey: trip, ...said }))).toBe("not_found");
    expect(await codeOf(as(ann).call("chat.abort", { sessionKey: trip }))).toBe("not_found");
    expect(await codeOf(as(ann).call("runs.list", { sessionKey: trip }))).toBe("not_found");
    expect(await codeOf(as(ann).call("agent", { agentId: "nobody", ...said }))).toBe("not_found");
    expect((await as(ann).call("runs.list", {})).count).toBe(0);
  });

  test("[LIB4] a repeated idempotency key of a user returns the same run, also after a restart and without its session", async () => {
    const first = await openTalking({ script: answering() });
    const params = { sessionKey: trip, message: "Hello", idempotencyKey: "order-17" };
    const sent = await first.as(ann).call("chat.send", params);
    const waited = await first.as(ann).call("agent.wait", { runId: sent.runId });
    expect(await first.as(ann).call("chat.send", params)).toEqual(sent);
    expect(await first.as(bob).call("chat.send", params)).not.toMatchObject({ runId: sent.runId });
    await first.skein.store.sessions.remove({ userId: "ann" }, "trip");
    await closeTalking();
    const next = await openTalking({ script: answering(), dir: first.dir });
    expect(await next.as(ann).call("chat.send", params)).toEqual(sent);
    expect(await next.as(ann).call("agent", params)).toEqual(sent);
    const { message, idempotencyKey } = params;
    const again = await next.as(ann).call("sessions.send", { key: trip, message, idempotencyKey });
    expect(again).toEqual(waited);
    expect(await next.skein.session({ userId: "ann", sessionKey: trip }).record()).toBeNull();
  });

  test.each([
    ["text", "image/png", Buffer.from("no image at all")],
    ["the beginning of an image", "image/png", pngOf(4, 3).subarray(0, 20)],
    ["SVG", "image/svg+xml", Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>')],
    ["PDF", "image/jpeg", Buffer.from("%PDF-1.7 and more of it, as long as it may be")],
  ])(
    "[GTK18] %s as an attachment is refused before anything is accepted or created",
    async (_, mimeType, bytes) => {
      const { skein, as } = await openTalking({ script: answering() });
      const good = { mimeType: "image/png", data: pngOf(4, 3).toString("base64") };
      const bad = { mimeType, data: bytes.toString("base64") };
      const said = { message: "Look", idempotencyKey: "1", attachments: [good, bad] };
      for (const call of [
        () => as(ann).call("chat.send", { sessionKey: trip, ...said }),
        () => as(ann).call("agent", { agentId: "main", ...said }),
        () => as(ann).call("sessions.send", { key: trip, ...said }),
      ])
        await expect(call()).rejects.toMatchObject({
          code: "invalid_arguments",
          message: expect.stringMatching(/Attachment 2.*Send a PNG, JPEG, GIF or WebP image/),
        });
      expect((await as(ann).call("runs.list", {})).count).toBe(0);
      expect((await skein.store.sessions.list({ userId: "ann" }, {})).sessions).toEqual([]);
    },
  );

  test.each([
    ["image/png", pngOf(4, 3)],
    ["image/jpeg", jpegOf(4, 3)],
    ["image/gif", gifOf(4, 3)],
    ["image/webp", webpOf(4, 3)],
  ])("[GTK18] an image is %s by its bytes, whatever its declared type", async (mimeType, bytes) => {
    const { skein, as } = await openTalking({ script: answering() });
    const attachments = [{ mimeType: "image/other", data: bytes.toString("base64") }];
    const said = { sessionKey: trip, message: "Look", idempotencyKey: "1", attachments };
    const { runId } = await as(ann).call("chat.send", said);
    expect((await skein.runs.get(runId))?.message).toMatchObject({
      content: [{ type: "text" }, { type: "image", mimeType }],
    });
  });

  test("an agent without a session means its main session, and the run has its own settings", async () => {
    const { skein, as } = await openTalking({ script: answering() });
    const image = { mimeType: "image/png", data: pngOf(4, 3).toString("base64") };
    const said = { message: "Look at /etc/passwd.png", idempotencyKey: "1" };
    const { runId, sessionKey } = await as(annAdmin).call("agent", {
      agentId: "MAIN",
      ...said,
      model: "rehearsal/script",
      thinking: "low",
      runTimeoutSeconds: 60,
      attachments: [{ name: "a.png", ...image }],
      provenance: { kind: "internal_system", sourceTool: "timer" },
      extraSystemPrompt: "Be brief.",
    });
    expect(sessionKey).toBe("agent:main:main");
    const run = await skein.runs.get(runId);
    const options: RunOptions = {
      model: "rehearsal/script",
      thinking: "low",
      runTimeoutSeconds: 60,
      extraSystemPrompt: "Be brief.",
      origin: "api",
    };
    expect(run).toMatchObject({ options, provenance: { kind: "internal_system", sourceTool: "timer" } });
    expect(run?.message).toMatchObject({ content: [{ type: "text" }, { type: "image" }] });
    for (const field of [{ provenance: { kind: "internal_system" } }, { extraSystemPrompt: "x" }])
      expect(await codeOf(as(ann).call("agent", { agentId: "main", ...said, ...field } as never))).toBe(
        "forbidden",
      );
  });

  test("deliver sends the reply to the session's channel, and is refused without one", async () => {
    const told: string[] = [];
    const desk = { id: "desk", deliver: async ({ text }: { text: string }) => void told.push(text) };
    const { skein, as } = await openTalking({ script: answering(), channels: [desk as never] });
    const said = { message: "Hello", deliver: true };
    const refused = as(ann).call("agent", { sessionKey: trip, ...said, idempotencyKey: "1" });
    expect(await codeOf(refused)).toBe("invalid_arguments");
    expect(await skein.session({ userId: "ann", sessionKey: trip }).record()).toBeNull();
    const delivered = new Promise<void>((resolve) => {
      skein.subscribe(({ type }) => type === "outbox.delivered" && resolve());
    });
    const group = "agent:main:desk:group:team";
    await as(ann).call("agent", { sessionKey: group, ...said, idempotencyKey: "2" });
    await delivered;
    expect(told).toEqual(["Yes. 1"]);
    const { messages } = await as(ann).call("outbox.list", {});
    expect(messages).toMatchObject([{ state: "delivered", target: { channel: "desk", to: "team" } }]);
  });

  test("[GTK8] a note is written as the agent's message without a request to a model", async () => {
    const { skein, as } = await openTalking({ script: answering() });
    const { runId } = await as(annAdmin).call("chat.send", {
      sessionKey: trip,
      message: "Hi",
      idempotencyKey: "1",
    });
    await as(annAdmin).call("agent.wait", { runId });
    const note = { sessionKey: "trip", message: "The office is closed.", idempotencyKey: "2" };
    const noted = await as(annAdmin).call("chat.inject", note);
    const waited = await as(annAdmin).call("agent.wait", { runId: noted.runId });
    expect(waited).toMatchObject({ finished: true, state: "ok", usage: { totalTokens: 0 } });
    expect(await as(annAdmin).call("chat.inject", note)).toEqual(noted);
    const page = await skein.store.sessions.page({ userId: "ann" }, "trip", { along: "branch", limit: 50 });
    const said = (page?.entries ?? []).flatMap((entry) => (entry.type === "message" ? [entry.message] : []));
    const lines = said.map(
      (message) => `${message.role}: ${textOf((message as { content: string }).content)}`,
    );
    expect(lines).toEqual(["user: Hi", "assistant: Yes. 1", "assistant: The office is closed."]);
    expect(await codeOf(as(ann).call("chat.inject", note))).toBe("forbidden");
  });
});

describe("waiting for a run", () => {
  const held = async () => {
    const gate = gateOf();
    const wait = defineTool({ name: "hold", description: "Waits.", execute: () => gate.wait() });
    const script = [{ calls: [{ name: "hold" }] }, { text: "Done." }];
    return { gate, ...(await openTalking({ script, tools: [wait] })) };
  };

  test("a wait returns the outcome of a run, or its state at the timeout", async () => {
    const { gate, as } = await held();
    const sent = await as(ann).call("sessions.send", { key: trip, message: "Go", idempotencyKey: "1" });
    expect(sent).toMatchObject({ finished: false, sessionKey: trip });
    expect(sent).not.toHaveProperty("reply");
    await gate.reached;
    const { runId } = sent;
    expect(await as(ann).call("agent.wait", { runId, timeoutMs: 5 })).toMatchObject({
      finished: false,
      state: "running",
    });
    const end = as(ann).call("agent.wait", { runId });
    gate.pass();
    expect(await end).toMatchObject({ finished: true, state: "ok", reply: "Done." });
    expect(await as(ann).call("agent.wait", { runId, timeoutMs: 0 })).toEqual(await end);
  });

  test("a wait ends when its client disconnects", async () => {
    const { gate, as } = await held();
    const { runId } = await as(ann).call("chat.send", {
      sessionKey: trip,
      message: "Go",
      idempotencyKey: "1",
    });
    await gate.reached;
    const leaving = new AbortController();
    const left = as(ann).call("agent.wait", { runId, timeoutMs: 600_000 }, { signal: leaving.signal });
    leaving.abort();
    expect(await left).toMatchObject({ finished: false });
    gate.pass();
  });

  test("a failed run returns its code, and waiting for an unknown run returns not_found", async () => {
    const { as } = await openTalking({ script: [{ error: { message: "no such key", status: 401 } }] });
    const message = { message: "Go", idempotencyKey: "1", timeoutMs: 60_000 };
    const failed = await as(ann).call("sessions.send", { key: trip, ...message });
    expect(failed).toMatchObject({ finished: true, state: "error", error: { code: "model_auth" } });
    expect(await codeOf(as(ann).call("agent.wait", { runId: "nothing" }))).toBe("not_found");
    expect(await codeOf(as(bob).call("agent.wait", { runId: failed.runId }))).toBe("not_found");
  });
});
