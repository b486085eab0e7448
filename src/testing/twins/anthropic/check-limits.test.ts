import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  expectRefused,
  expectTaken,
  imageData,
  messagesRequest,
  send,
} from "../../../../test/support/twins.ts";
import { checkRequest } from "../../server/check-request.ts";
import type { Twin } from "../../server/start-twin.ts";
import { startTwin } from "../../server/start-twin.ts";
import type { TwinRequest } from "../contract.ts";

let twin: Twin;
beforeAll(async () => {
  twin = await startTwin({ api: "anthropic-messages" });
});
afterAll(() => twin.close());

const cache_control = { type: "ephemeral" };
const text = (words: string, fields: object = {}) => ({ type: "text", text: words, ...fields });
const user = (content: unknown) => ({ messages: [{ role: "user", content }] });

describe("limits", () => {
  test("[TWA8] refuses a fifth breakpoint, wherever the five are", async () => {
    const four = {
      tools: [{ name: "find", input_schema: { type: "object" }, cache_control }],
      system: [text("Be brief.", { cache_control })],
      ...user([text("One", { cache_control }), text("Two", { cache_control })]),
    };
    await expectTaken(twin, messagesRequest(four));
    const says = "A maximum of 4 blocks with cache_control may be provided. Found 5.";
    await expectRefused(twin, messagesRequest({ ...four, cache_control }), {
      rule: "too_many_breakpoints",
      says,
    });
  });

  test("[TWA8] refuses a prompt that is longer than the window", async () => {
    const long = messagesRequest(user("word ".repeat(200_000)));
    await expectRefused(twin, long, { rule: "prompt_too_long", says: "tokens > 200000 maximum" });
    expect(checkRequest("anthropic-messages", long, { contextWindow: 1_000_000 })).toBeNull();
    const small = await startTwin({ api: "anthropic-messages", contextWindow: 100 });
    const refused = await send(small, messagesRequest(user("word ".repeat(100))));
    expect(await refused.text()).toMatch(/prompt is too long: 1\d\d tokens > 100 maximum/);
    await small.close();
  });

  test("[TWA8] an image counts by its pixels", () => {
    const shown = (width: number, height: number) => {
      const source = { type: "base64", media_type: "image/png", data: imageData("png", width, height) };
      return messagesRequest(user([{ type: "image", source }]));
    };
    const fits = (request: TwinRequest, contextWindow: number) =>
      checkRequest("anthropic-messages", request, { contextWindow }) === null;
    expect([fits(shown(750, 100), 100), fits(shown(750, 100), 180)]).toEqual([false, true]);
    expect([fits(shown(8000, 8000), 1600), fits(shown(8000, 8000), 1680)]).toEqual([false, true]);
  });

  test("[TWA8] an image is no text to be counted by its bytes", () => {
    const data = Buffer.concat([Buffer.from(imageData("png", 9, 9), "base64"), Buffer.alloc(3_000_000)]);
    const source = { type: "base64", media_type: "image/png", data: data.toString("base64") };
    return expectTaken(twin, messagesRequest(user([{ type: "image", source }])));
  });

  test("[TWA8] refuses more than 32 MB, by what was sent or by what it comes to", async () => {
    const huge = messagesRequest(user("a".repeat(32 * 1024 * 1024)));
    await expectRefused(twin, huge, {
      rule: "request_too_large",
      says: "maximum allowed number of bytes",
      status: 413,
    });
  });

  test("[TWA8] what was sent counts, not what it comes to, and whether or not it was said before", async () => {
    const { path, headers, body } = messagesRequest();
    const padded = new Blob([JSON.stringify(body), " ".repeat(33 * 1024 * 1024)]).stream();
    const init = { method: "POST", headers: headers as Record<string, string>, body: padded, duplex: "half" };
    const response = await fetch(new URL(path, twin.url), init as RequestInit);
    expect(response.status).toBe(413);
    expect(twin.requests.at(-1)?.refusal?.rule).toBe("request_too_large");
  });

  test("[TWA8] refuses half a surrogate pair, wherever it stands", async () => {
    const says = "no low surrogate in string";
    await expectRefused(twin, messagesRequest(user("cut \ud83d")), { rule: "ill_formed_text", says });
    const system = [text("cut \ude00")];
    await expectRefused(twin, messagesRequest({ system }), { rule: "ill_formed_text", says });
    await expectTaken(twin, messagesRequest(user("whole \ud83d\ude00")));
  });
});
