import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { connect } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { everyApi, generateRequest, messagesRequest, send } from "../../../test/support/twins.ts";
import { SkeinError } from "../../core/errors.ts";
import type { Scripted, ScriptedReply, TwinApi, TwinRequest } from "../twins/contract.ts";
import { checkRequest } from "./check-request.ts";
import type { Twin, TwinOptions } from "./start-twin.ts";
import { RequestLog, startTwin } from "./start-twin.ts";

describe("start twin", () => {
  const twins: Twin[] = [];
  afterEach(() => Promise.all(twins.splice(0).map((twin) => twin.close())));

  async function begin(options: TwinOptions): Promise<Twin> {
    const twin = await startTwin(options);
    twins.push(twin);
    return twin;
  }

  const says = (text: string): ScriptedReply => ({ content: [{ type: "text", text }] });
  const good = (api: TwinApi): TwinRequest =>
    api === "anthropic-messages" ? messagesRequest() : generateRequest();
  const streamed = (api: TwinApi): TwinRequest =>
    api === "anthropic-messages"
      ? messagesRequest({ stream: true })
      : { ...generateRequest(), path: "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse" };

  describe.each(everyApi)("a twin of %s", (api) => {
    test("plays the queued replies, one per request, then a fixed text", async () => {
      const twin = await begin({ api, replies: [says("first")] });
      twin.enqueue(says("second"), says("third"));
      const texts: string[] = [];
      for (let round = 0; round < 5; round += 1) texts.push(await (await send(twin, good(api))).text());
      for (const [index, word] of [
        "first",
        "second",
        "third",
        "nothing to add",
        "nothing to add",
      ].entries()) {
        expect(texts[index]).toContain(word);
      }
    });

    test("derives the reply from the request once nothing is queued; an invalid reply is a status 500", async () => {
      const otherwise = ({ path }: TwinRequest) => says(`asked at ${path}`);
      const twin = await begin({ api, replies: [says("first")], otherwise });
      expect(await (await send(twin, good(api))).text()).toContain("first");
      expect(await (await send(twin, good(api))).text()).toContain(`asked at ${good(api).path}`);
      const odd = await begin({ api, otherwise: () => ({ text: "hi" }) as unknown as Scripted });
      expect((await send(odd, good(api))).status).toBe(500);
    });

    test("listens only on loopback, at the address that the AI SDK expects", async () => {
      const twin = await begin({ api });
      expect(twin.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/v1(?:beta)?$/);
      expect(twin.api).toBe(api);
    });

    test("plays text exactly, streamed or not", async () => {
      const text = '🌿 Kyōto, 京都\n\n"so"'.repeat(50);
      for (const shift of ["", "a"]) {
        const twin = await begin({ api, replies: [says(shift + text), says(shift + text)] });
        expect(JSON.stringify(await (await send(twin, good(api))).json())).toContain(
          JSON.stringify(shift + text),
        );
        const { events } = await listen(await send(twin, streamed(api)));
        const pieces = events.join("\n").matchAll(/"text":("(?:[^"\\]|\\.)*")/g);
        expect([...pieces].map((match) => JSON.parse(match[1] ?? "")).join("")).toBe(shift + text);
      }
    });

    test("two twins never produce the same ID", async () => {
      const call: ScriptedReply = { content: [{ type: "toolCall", name: "find", arguments: {} }] };
      const answers: string[] = [];
      for (let round = 0; round < 3; round += 1) {
        const twin = await begin({ api, replies: [call, call] });
        for (let asked = 0; asked < 2; asked += 1) answers.push(await (await send(twin, good(api))).text());
      }
      const ids = answers.flatMap((text) =>
        [...text.matchAll(/"(?:id|responseId)":"(.+?)"/g)].map((match) => match[1]),
      );
      expect(ids).toHaveLength(12);
      expect(new Set(ids).size).toBe(12);
    });

    test("a refused request leaves the queue unchanged, and is recorded with its refusal", async () => {
      const twin = await begin({ api, replies: [says("first")] });
      const bad = { ...good(api), body: {} };
      expect((await send(twin, bad)).status).toBe(400);
      expect(await (await send(twin, good(api))).text()).toContain("first");
      expect(twin.requests.map(({ refusal }) => refusal === null)).toEqual([false, true]);
      expect(twin.requests[1]).toMatchObject({ method: "POST", path: good(api).path, body: good(api).body });
      expect(twin.requests[0]?.refusal).toEqual(checkRequest(api, bad));
    });

    test("invalid JSON, invalid UTF-8 and unknown paths are refused in the provider's format", async () => {
      const twin = await begin({ api });
      const refused = async (request: TwinRequest, status: number, rule: string) => {
        const response = await send(twin, request);
        expect(response.status).toBe(status);
        expect(response.headers.get("content-type")).toBe("application/json");
        expect(await response.json()).toMatchObject({ error: { message: expect.any(String) } });
        expect(twin.requests.at(-1)?.refusal?.rule).toBe(rule);
      };
      await refused({ ...good(api), body: "{" }, 400, "not_json");
      await refused({ ...good(api), body: "" }, 400, "not_json");
      await refused({ ...good(api), path: "/v2/other" }, 404, "not_served");
      await refused({ ...good(api), method: "GET" }, 404, "not_served");
      const bytes = await fetch(new URL(good(api).path, twin.url), {
        method: "POST",
        body: new Uint8Array([0xff]),
      });
      expect(bytes.status).toBe(400);
      expect(twin.requests.at(-1)?.refusal?.rule).toBe("not_utf8");
    });

    test("a body beyond every limit is refused, and the twin continues", async () => {
      const twin = await begin({ api });
      const body = "a".repeat(150 * 1024 * 1024);
      const response = await send(twin, { ...good(api), body });
      expect(response.status).toBe(413);
      expect(await response.json()).toMatchObject({ error: { message: "Request exceeds the maximum size" } });
      expect(twin.requests.at(-1)?.refusal?.rule).toBe("body_too_large");
      expect((await send(twin, good(api))).status).toBe(200);
    });

    test("a status has its message and a retry delay", async () => {
      const twin = await begin({
        api,
        replies: [{ fault: "status", status: 429, retryAfter: "7", message: "Slow down" }],
      });
      const response = await send(twin, good(api));
      expect([response.status, response.headers.get("retry-after")]).toEqual([429, "7"]);
      expect(await response.json()).toMatchObject({ error: { message: "Slow down" } });
      expect(twin.requests[0]?.refusal).toBeNull();
    });

    test.each([
      [{ text: "hi" }, "a reply with content"],
      ["hi", "a reply such as"],
      [null, "a reply such as"],
      [{ fault: "nope" }, "one of status, cut, stall, garbage, slow"],
      [{ fault: "status" }, "a status from 200 to 599"],
      [{ fault: "cut", reply: says("x") }, "to have afterEvents"],
      [{ fault: "stall", afterEvents: 1 }, "the fault's reply"],
      [{ fault: "slow", reply: says("x"), bytes: 0 }, "number of bytes"],
      [{ fault: "slow", bytes: 3 }, "the fault's reply"],
      [{ content: [{ type: "tool_use", name: "find", input: {} }] }, "content[0] to be a block of type"],
      [{ content: [{ type: "text", text: "x" }, { type: "text" }] }, "content[1] to be a text block"],
      [
        { content: [{ type: "toolCall", name: "find", arguments: "{}" }] },
        "a toolCall block with a name and arguments",
      ],
      [{ content: [{ type: "thinking", text: "x" }] }, "a thinking block"],
      [{ content: [], stopReason: "end_turn" }, "stopReason to be one of stop, length, toolUse"],
      [{ content: [], usage: { input: "many" } }, "usage with numbers"],
    ])("a malformed script, %j, is refused when it is queued", async (script, expected) => {
      const scripted = script as unknown as Scripted;
      const refusal = { code: "invalid_arguments", message: expect.stringContaining(expected) };
      await expect(startTwin({ api, replies: [says("x"), scripted] })).rejects.toMatchObject(refusal);
      const twin = await begin({ api });
      expect(() => twin.enqueue(says("first"), scripted)).toThrow(expect.objectContaining(refusal));
      // A rejected list queues nothing.
      expect(JSON.stringify(await (await send(twin, good(api))).json())).toContain("nothing to add");
    });

    test("cuts a stream after the given number of events", async () => {
      const twin = await begin({
        api,
        replies: [{ fault: "cut", reply: says("far too long to be said"), afterEvents: 2 }],
      });
      const { events, error } = await listen(await send(twin, streamed(api)));
      expect(events).toHaveLength(2);
      expect(error).not.toBeNull();
    });

    test("stalls a stream after the given number of events, until the client disconnects", async () => {
      const twin = await begin({
        api,
        replies: [{ fault: "stall", reply: says("far too long"), afterEvents: 1 }],
      });
      const leaving = new AbortController();
      const response = await send(twin, streamed(api), leaving.signal);
      const { events, error } = await listen(response, () => leaving.abort());
      expect(events).toHaveLength(1);
      expect(error).toMatchObject({ name: "AbortError" });
      expect((await send(twin, good(api))).status).toBe(200);
    });

    test("sends garbage in the middle of a stream", async () => {
      const reply = says("far too long to be said");
      const twin = await begin({ api, replies: [reply, { fault: "garbage", reply, afterEvents: 1 }] });
      const whole = await listen(await send(twin, streamed(api)));
      const broken = await listen(await send(twin, streamed(api)));
      expect(broken.events).toHaveLength(whole.events.length + 1);
      expect(() => JSON.parse(broken.events[1]?.replace(/^data: /, "") ?? "")).toThrow();
    });

    test.each(["cut", "garbage"] as const)("a reply without a stream has faults too: %s", async (fault) => {
      const twin = await begin({ api, replies: [{ fault, reply: says("far too long"), afterEvents: 1 }] });
      const response = await send(twin, good(api));
      await expect(response.json()).rejects.toThrow();
    });

    test("close ends every connection, and nothing listens anymore", async () => {
      const stalled: Scripted = { fault: "stall", reply: says("far too long"), afterEvents: 1 };
      const twin = await startTwin({ api, replies: [stalled] });
      const idle = connect(Number(new URL(twin.url).port), "127.0.0.1");
      await once(idle, "connect");
      const response = await send(twin, streamed(api));
      const heard = listen(response);
      const gone = once(idle, "close");
      await Promise.all([twin.close(), twin.close()]);
      expect((await heard).error).not.toBeNull();
      await gone;
      await expect(send(twin, good(api))).rejects.toThrow();
    });

    test("a client that disconnects during its request is not recorded", async () => {
      const twin = await begin({ api });
      const { port } = new URL(twin.url);
      const leaving = httpRequest({ port, host: "127.0.0.1", method: "POST", path: good(api).path });
      leaving.on("error", () => leaving.destroy());
      leaving.setHeader("content-length", 1000);
      leaving.setHeader("expect", "100-continue");
      leaving.flushHeaders();
      await once(leaving, "continue");
      leaving.write("{");
      leaving.destroy();
      expect((await send(twin, good(api))).status).toBe(200);
      await twin.close();
      await new Promise((resolve) => setImmediate(resolve));
      expect(twin.requests).toHaveLength(1);
    });

    test("a script that JSON cannot represent is a server error", async () => {
      const call = { type: "toolCall", name: "find", arguments: { big: 1n } } as const;
      const twin = await begin({ api, replies: [{ content: [call] }] });
      expect((await send(twin, good(api))).status).toBe(500);
    });
  });

  test("a wire format without a twin is reported", async () => {
    const api = "smoke-signals" as TwinApi;
    await expect(startTwin({ api })).rejects.toThrow(SkeinError);
    expect(() => checkRequest(api, messagesRequest())).toThrow(
      /There is no twin for "smoke-signals"\. Use one of/,
    );
  });

  interface Heard {
    readonly events: readonly string[];
    readonly error: unknown;
  }

  /** Returns all events, and the error if any. `afterFirst` is called after the first event. */
  async function listen(response: Response, afterFirst?: () => void): Promise<Heard> {
    const decoder = new TextDecoder();
    let text = "";
    let error: unknown = null;
    try {
      for await (const chunk of response.body ?? []) {
        text += decoder.decode(chunk as Uint8Array, { stream: true });
        if (/\r?\n\r?\n/.test(text)) afterFirst?.();
      }
    } catch (caught) {
      error = caught;
    }
    return { events: text.split(/\r?\n\r?\n/).filter((each) => each !== ""), error };
  }
});

describe("request log", () => {
  test("keeps the newest 1,000 requests", () => {
    const log = new RequestLog();
    for (let round = 0; round < 1010; round += 1)
      log.add({ ...messagesRequest({ round }), refusal: null }, 10);
    expect(log.requests).toHaveLength(1000);
    expect(log.requests[0]?.body).toMatchObject({ round: 10 });
    expect(log.requests.at(-1)?.body).toMatchObject({ round: 1009 });
  });

  test("keeps large requests up to 256 MB, and always the last one", () => {
    const log = new RequestLog();
    const mebibyte = 1024 * 1024;
    for (let round = 0; round < 10; round += 1) {
      log.add({ ...messagesRequest({ round }), refusal: null }, 60 * mebibyte);
    }
    expect(log.requests.map(({ body }) => (body as { round: number }).round)).toEqual([6, 7, 8, 9]);
    log.add({ ...messagesRequest({ round: 10 }), refusal: null }, 300 * mebibyte);
    expect(log.requests).toHaveLength(1);
  });
});
