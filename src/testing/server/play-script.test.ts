import { request as httpRequest } from "node:http";
import { afterEach, describe, expect, test } from "vitest";
import { posted } from "../../../test/support/twin-fetch.ts";
import { anthropicKeys, generateRequest, messagesRequest, send } from "../../../test/support/twins.ts";
import type { ScriptedReply, TwinApi, TwinRequest } from "../twins/contract.ts";
import type { Twin } from "./start-twin.ts";
import { startTwin } from "./start-twin.ts";

const twins: Twin[] = [];
afterEach(() => Promise.all(twins.splice(0).map((twin) => twin.close())));

const hello = [{ role: "user", content: "Hello" }];
const requests: readonly (readonly [TwinApi, TwinRequest])[] = [
  ["anthropic-messages", messagesRequest({ stream: true }, anthropicKeys)],
  [
    "google-generative-ai",
    { ...generateRequest(), path: "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse" },
  ],
  ["openai-completions", posted("/v1/chat/completions", { model: "gpt-5", stream: true, messages: hello })],
  ["openai-responses", posted("/v1/responses", { model: "gpt-5", stream: true, store: false, input: hello })],
  [
    "mistral-conversations",
    posted("/v1/chat/completions", { model: "mistral-small-latest", stream: true, messages: hello }),
  ],
];
const reply: ScriptedReply = { content: [{ type: "text", text: "京都で三日。Three days. 🍵" }] };

/** Removes everything that differs between answers. */
const bare = (stream: string) =>
  stream.replaceAll(
    /"(?:id|responseId|item_id|message_id|created|created_at|completed_at|p)":\s*("[^"]*"|\d+)/g,
    "",
  );

/** Returns the sizes of the chunks that a client receives. */
function sizesOf(twin: Twin, { path, method, headers, body }: TwinRequest): Promise<number[]> {
  return new Promise((resolve, reject) => {
    const asked = httpRequest(new URL(path, twin.url), { method, headers }, (response) => {
      const sizes: number[] = [];
      response.on("data", (piece: Buffer) => sizes.push(piece.length));
      response.on("end", () => resolve(sizes));
    });
    asked.on("error", reject);
    asked.end(JSON.stringify(body));
  });
}

describe.each(requests)("faults of %s", (api, request) => {
  test("a reply in tiny pieces is the same reply, in more pieces than it has events", async () => {
    const twin = await startTwin({ api, replies: [reply, { fault: "slow", reply, bytes: 2 }] });
    twins.push(twin);
    const whole = await (await send(twin, request)).text();
    const slow = await send(twin, request);
    expect(slow.status).toBe(200);
    const text = await slow.text();
    expect(text).not.toContain("\ufffd");
    expect(bare(text)).toBe(bare(whole));
  });

  test("no piece exceeds the given size", async () => {
    const twin = await startTwin({ api, replies: [{ fault: "slow", reply, bytes: 2 }] });
    twins.push(twin);
    const sizes = await sizesOf(twin, request);
    expect(sizes.length).toBeGreaterThan(50);
    expect(Math.max(...sizes)).toBe(2);
  });

  test.each([
    [429, "7"],
    [529, "0.5"],
    [503, "Wed, 21 Oct 2026 07:28:00 GMT"],
  ])("status %i has the provider's body, and a retry delay", async (status, retryAfter) => {
    const replies = [{ fault: "status", status, retryAfter, message: "Not now" } as const];
    const twin = await startTwin({ api, replies });
    twins.push(twin);
    const response = await send(twin, request);
    expect([response.status, response.headers.get("retry-after")]).toEqual([status, retryAfter]);
    expect(response.headers.get("content-type")).toContain("application/json");
    const body = (await response.json()) as { message?: string; error?: { message: string } };
    expect(body.error?.message ?? body.message).toBe("Not now");
  });
});
