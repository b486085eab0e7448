import { spawn } from "node:child_process";
import { once } from "node:events";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { isStepCount, jsonSchema, streamText, tool } from "ai";
import { afterEach, describe, expect, test } from "vitest";
import type { ChatMessage, ChatOptions } from "../../src/entry-ai-sdk.ts";
import { createChat, readUIMessages } from "../../src/entry-ai-sdk.ts";
import { scriptedModel } from "../../src/entry-testing.ts";
import { BrowserChat, fetchFrom, lineOfMessage } from "../support/browser-chat.ts";
import { HeldModel } from "../support/held-model.ts";
import { supportProgram } from "../support/programs.ts";
import type { OpenedSkein } from "../support/skein.ts";
import { answering, closeAll, newFolder, withScript } from "../support/skein.ts";
import { soon } from "../support/soon.ts";

const held: HeldModel[] = [];
afterEach(async () => {
  for (const model of held.splice(0)) model.close();
  await closeAll();
});

const look = tool({
  description: "Looks.",
  inputSchema: jsonSchema<object>({ type: "object" }),
  execute: async () => "three gardens",
});

async function heldModel() {
  const server = await HeldModel.start();
  held.push(server);
  const model = createOpenAICompatible({ name: "held", baseURL: server.url, apiKey: "none" })("model");
  return { server, model };
}

function chatWith({ skein }: OpenedSkein, model: ChatOptions["model"], options: Partial<ChatOptions> = {}) {
  const chat = createChat(skein, {
    model,
    session: (_, chatId) => ({ userId: "ann", sessionId: chatId }),
    answer: (call) =>
      streamText({
        ...call,
        tools: { look },
        stopWhen: isStepCount(5),
        maxRetries: 0,
        onError: () => undefined,
      }),
    ...options,
  });
  const fetch = fetchFrom(chat);
  const load = async (): Promise<ChatMessage[]> =>
    (await fetch("http://localhost/api/chat/trip")).json() as Promise<ChatMessage[]>;
  const browser = (messages: ChatMessage[] = []) => new BrowserChat("trip", messages, fetch);
  /** A browser that opens the page again. */
  const reload = async () => {
    const page = browser(await load());
    await page.resumeStream();
    return page;
  };
  return { chat, fetch, load, browser, reload };
}

describe("a chat with useChat", () => {
  test("[AIS6] an answer is streamed, and the stored messages are those of the browser", async () => {
    const opened = await withScript(answering());
    const model = scriptedModel([{ thinking: "Hm.", calls: [{ name: "look" }] }, { text: "Three gardens." }]);
    const { browser, load } = chatWith(opened, model);
    const page = browser();
    await page.sendMessage({ text: "Plan" });
    expect(page.lines).toEqual(["user: Plan", "assistant: (look output-available) Three gardens."]);
    const stored = await load();
    expect(stored.map(lineOfMessage)).toEqual(page.lines);
    expect(stored.map(({ id }) => id)).toEqual(page.messages.map(({ id }) => id));
    expect(stored[1]?.parts.map(({ type }) => type)).toEqual(page.messages[1]?.parts.map(({ type }) => type));
    expect(stored[1]?.metadata?.skein.model).toBe("rehearsal/script");
    expect(await opened.lines("trip", "ann")).toEqual([
      "user: Plan",
      "assistant: (look)",
      "result: three gardens",
      "assistant: Three gardens.",
    ]);
  });

  test("[AIS6] a file and data that only the browser reads are kept", async () => {
    const opened = await withScript(answering());
    const { browser, load } = chatWith(opened, scriptedModel([{ text: "A dot." }]));
    const pixel =
      "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    const page = browser();
    const file = { type: "file", mediaType: "image/png", url: pixel } as const;
    const data = { type: "data-place", data: { city: "Kyoto" } } as const;
    const metadata = { from: "phone" } as never;
    await page.sendMessage({ parts: [{ type: "text", text: "What is it?" }, file, data] as never, metadata });
    const [question] = await load();
    expect(question?.parts).toMatchObject([{ text: "What is it?" }, file, data]);
    expect(question?.metadata).toMatchObject({ from: "phone" });
  });

  test("[AIS12] the session function can read the fields that the browser adds to its request", async () => {
    const opened = await withScript(answering());
    const { browser } = chatWith(opened, scriptedModel([{ text: "Three gardens." }]), {
      session: async (request) => {
        const { journey } = (await request.json()) as { journey: string };
        return { userId: "ann", sessionId: journey };
      },
    });
    await browser().sendMessage({ text: "Plan" }, { body: { journey: "kyoto" } });
    expect(await opened.lines("kyoto", "ann")).toEqual(["user: Plan", "assistant: Three gardens."]);
  });

  test("[AIS7] an answer goes on without its browser, and a reloaded page streams it from the beginning", async () => {
    const opened = await withScript(answering());
    const { server, model } = await heldModel();
    const { browser, load, reload } = chatWith(opened, model);
    const first = browser();
    const sent = first.sendMessage({ text: "Plan" });
    const request = await server.request(0);
    request.stream("Day one: ");
    await soon(() => first.lines[1]).toBe("assistant: Day one: ");
    await first.stop();
    await sent;
    const second = browser(await load());
    const resumed = second.resumeStream();
    await soon(() => second.lines[1]).toBe("assistant: Day one: ");
    request.finish("moss.");
    await resumed;
    expect(second.lines).toEqual(["user: Plan", "assistant: Day one: moss."]);
    expect((await load()).map(lineOfMessage)).toEqual(second.lines);
    expect((await reload()).lines).toEqual(second.lines);
  });

  test("[AIS8] another answer and an edited message are branches, and each can be selected", async () => {
    const opened = await withScript(answering());
    const { browser, load, fetch } = chatWith(opened, scriptedModel(answering("Answer")));
    const page = browser();
    await page.sendMessage({ text: "Plan" });
    await page.sendMessage({ text: "And food?" });
    await page.regenerate();
    const ask = page.messages[0];
    expect(page.lines).toEqual([
      "user: Plan",
      "assistant: Answer 1",
      "user: And food?",
      "assistant: Answer 3",
    ]);
    const [, , , again] = await load();
    expect(again?.metadata?.skein.alternatives).toHaveLength(2);
    await page.sendMessage({ text: "Plan by train", messageId: ask?.id ?? "" });
    expect(page.lines).toEqual(["user: Plan by train", "assistant: Answer 4"]);
    const [edited] = await load();
    const [original = ""] = edited?.metadata?.skein.alternatives ?? [];
    expect(edited?.metadata?.skein.alternatives).toEqual([original, edited?.metadata?.skein.entryId]);
    const select = (entryId: string) =>
      fetch("http://localhost/api/chat/trip", { method: "PATCH", body: JSON.stringify({ entryId }) });
    const back = (await (await select(original)).json()) as ChatMessage[];
    expect(back.map(lineOfMessage)).toEqual([
      "user: Plan",
      "assistant: Answer 1",
      "user: And food?",
      "assistant: Answer 3",
    ]);
    const [, , , newest] = back;
    const [older = ""] = newest?.metadata?.skein.alternatives ?? [];
    const oldest = (await (await select(older)).json()) as ChatMessage[];
    expect(oldest.map(lineOfMessage).at(-1)).toBe("assistant: Answer 2");
    expect((await select("nothing")).status).toBe(404);
  });

  test("[AIS9] after its process was killed, a reloaded page continues the answer with its finished steps", async () => {
    const dir = newFolder();
    const child = spawn(process.execPath, [supportProgram("ai-sdk-child"), dir], { stdio: "inherit" });
    await once(child, "close");
    const opened = await withScript(answering(), {}, { dir });
    const model = scriptedModel([{ text: "Three gardens." }]);
    const { browser, load, reload } = chatWith(opened, model);
    const stored = await load();
    expect(stored.map(lineOfMessage)).toEqual([
      "user: Plan three days in Kyoto",
      "assistant: (look output-available)",
    ]);
    const page = browser(stored);
    await page.resumeStream();
    expect(page.lines).toEqual([
      "user: Plan three days in Kyoto",
      "assistant: (look output-available) Three gardens.",
    ]);
    expect((await load()).map(lineOfMessage)).toEqual(page.lines);
    await reload();
    expect(model.requests).toHaveLength(1);
  });

  test("[AIS10] stopping an answer keeps its text, and the chat goes on", async () => {
    const opened = await withScript(answering());
    const { server, model } = await heldModel();
    const { browser, load, fetch } = chatWith(opened, model);
    const page = browser();
    const sent = page.sendMessage({ text: "Plan" });
    (await server.request(0)).stream("Day one");
    await soon(() => page.lines[1]).toBe("assistant: Day one");
    const stop = () => fetch("http://localhost/api/chat/trip/stream", { method: "DELETE" });
    expect((await stop()).status).toBe(204);
    await sent;
    expect((await stop()).status).toBe(404);
    const [, answer] = await load();
    expect(answer?.metadata?.skein.error).toBe("The answer was stopped.");
    expect(await opened.lines("trip", "ann")).toEqual(["user: Plan", "assistant: Day one [aborted]"]);
    const next = page.sendMessage({ text: "Go on" });
    (await server.request(1)).finish("Day two.");
    await next;
    expect((await load()).map(lineOfMessage)).toEqual(page.lines);
  });

  test("[AIS10] [AIS14] a failed answer is shown, recorded and can be asked for again", async () => {
    const opened = await withScript(answering());
    const model = scriptedModel([
      { text: "Day", error: { message: "The connection was cut." } },
      { text: "Day one." },
    ]);
    const { browser, load, reload } = chatWith(opened, model);
    const page = browser();
    await page.sendMessage({ text: "Plan" });
    expect(page.error?.message).toBe("The answer failed. Try again.");
    expect((await load())[1]?.metadata?.skein.error).toBe("The answer failed. Try again.");
    const session = opened.skein.session({ userId: "ann", sessionId: "trip" });
    const shown = await readUIMessages(session, {
      errorText: (error) => `Failed: ${(error as Error).message}`,
    });
    expect(shown[1]?.metadata?.skein.error).toContain("Failed: The connection was cut.");
    expect((await reload()).lines).toEqual(["user: Plan", "assistant: Day"]);
    await page.regenerate();
    expect((await load()).map(lineOfMessage)).toEqual(["user: Plan", "assistant: Day one."]);
  });

  test("[AIS14] the error of a tool is shown by errorText, also after a reload", async () => {
    const opened = await withScript(answering());
    const broken = tool({
      inputSchema: jsonSchema<object>({ type: "object" }),
      execute: async (): Promise<string> => {
        throw new Error("no route to 10.0.0.5");
      },
    });
    const model = scriptedModel([{ calls: [{ name: "broken" }] }, { text: "It is broken." }]);
    const { browser, load } = chatWith(opened, model, {
      answer: (call) => streamText({ ...call, tools: { broken }, stopWhen: isStepCount(5) }),
      errorText: () => "The tool failed.",
    });
    const page = browser();
    await page.sendMessage({ text: "Plan" });
    for (const messages of [page.messages, await load()]) {
      expect(JSON.stringify(messages)).toContain("The tool failed.");
      expect(JSON.stringify(messages)).not.toContain("10.0.0.5");
    }
  });

  test("[AIS11] a session is answered once at a time", async () => {
    const opened = await withScript(answering());
    const { server, model } = await heldModel();
    const { browser, fetch } = chatWith(opened, model);
    const page = browser();
    const sent = page.sendMessage({ text: "Plan" });
    const request = await server.request(0);
    const other = browser();
    await other.sendMessage({ text: "Me too" });
    expect(other.error?.message).toContain("is being answered");
    const body = JSON.stringify({ entryId: "x" });
    expect((await fetch("http://localhost/api/chat/trip", { method: "PATCH", body })).status).toBe(409);
    request.finish("Done.");
    await sent;
    expect(await opened.lines("trip", "ann")).toEqual(["user: Plan", "assistant: Done."]);
  });

  test("[AIS12] the application decides which session a request reaches", async () => {
    const opened = await withScript(answering());
    const refused = () => new Response("Sign in first.", { status: 401 });
    const { fetch, load } = chatWith(opened, scriptedModel([]), { session: refused });
    for (const method of ["GET", "PATCH", "DELETE"]) {
      const body = method === "PATCH" ? "{}" : null;
      expect((await fetch("http://localhost/api/chat/trip", { method, body })).status).toBe(401);
    }
    await expect(load()).rejects.toThrow();
    expect((await opened.skein.sessions.list({})).sessions).toEqual([]);
  });

  test.each([
    ["no JSON", "nonsense"],
    ["no ID", JSON.stringify({ messages: [] })],
    ["no messages", JSON.stringify({ id: "trip" })],
    [
      "an answer as the last message",
      JSON.stringify({
        id: "trip",
        messages: [{ id: "1", role: "assistant", parts: [{ type: "text", text: "x" }] }],
      }),
    ],
    [
      "a message without content",
      JSON.stringify({
        id: "trip",
        messages: [{ id: "1", role: "user", parts: [{ type: "data-x", data: 1 }] }],
      }),
    ],
  ])("[AIS13] a request with %s is rejected with what is wrong", async (_, body) => {
    const opened = await withScript(answering());
    const { fetch } = chatWith(opened, scriptedModel([]));
    const response = await fetch("http://localhost/api/chat", { method: "POST", body });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { code: "invalid_arguments" } });
  });

  test("a chat that does not exist has no messages and no stream", async () => {
    const opened = await withScript(answering());
    const { load, fetch } = chatWith(opened, scriptedModel([]));
    expect(await load()).toEqual([]);
    expect((await fetch("http://localhost/api/chat/trip/stream")).status).toBe(204);
    expect((await opened.skein.sessions.list({ userId: "ann" })).sessions).toEqual([]);
    expect(await readUIMessages(opened.skein.session({ sessionId: "none" }))).toEqual([]);
  });

  test("a turn that reached its step limit is not continued by a reload", async () => {
    const opened = await withScript(answering());
    const model = scriptedModel(() => ({ calls: [{ name: "look" }] }));
    const { browser, reload } = chatWith(opened, model);
    await browser().sendMessage({ text: "Plan" });
    expect(model.requests).toHaveLength(5);
    await reload();
    expect(model.requests).toHaveLength(5);
  });
});
