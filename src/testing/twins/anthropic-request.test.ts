import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  anthropicKeys,
  expectRefused,
  expectTaken,
  imageData,
  messagesRequest,
  send,
} from "../../../test/support/twins.ts";
import { checkRequest } from "../server/check-request.ts";
import type { Twin } from "../server/start-twin.ts";
import { startTwin } from "../server/start-twin.ts";
import type { TwinRequest } from "./contract.ts";

describe("turns", () => {
  let twin: Twin;
  beforeAll(async () => {
    twin = await startTwin({ api: "anthropic-messages" });
  });
  afterAll(() => twin.close());

  const said = (role: string, content: unknown = "Hello") => ({ role, content });
  const text = (words: string) => ({ type: "text", text: words });

  describe("the order of turns", () => {
    test.each([
      [[said("assistant"), said("user")], "first_turn_not_user", 'first message must use the "user" role'],
      [[said("user"), said("user")], "turns_not_alternating", 'multiple "user" roles in a row'],
      [
        [said("user"), said("assistant"), said("assistant"), said("user")],
        "turns_not_alternating",
        "assistant",
      ],
      [[said("user"), said("assistant", "The answer is ")], "prefill_ends_in_space", "trailing whitespace"],
      [[said("user"), said("assistant", [text("So:\n")])], "prefill_ends_in_space", "trailing whitespace"],
    ])("[TWA1] refuses %j", (messages, rule, says) =>
      expectRefused(twin, messagesRequest({ messages }), { rule, says }),
    );

    test.each([
      [{ model: "claude-opus-4-6" }],
      [{ model: "claude-opus-5" }],
      [{ thinking: { type: "enabled", budget_tokens: 1024 } }],
      [{ thinking: { type: "adaptive" } }],
    ])("[TWA1] refuses a prefill with %j", (body) => {
      const messages = [said("user"), said("assistant", "The answer is")];
      const says = "The conversation must end with a user message.";
      return expectRefused(twin, messagesRequest({ ...body, messages }), { rule: "prefill", says });
    });

    test("[TWA1] accepts alternating turns, and a prefill for models that support it", async () => {
      await expectTaken(twin, messagesRequest({ messages: [said("user"), said("assistant"), said("user")] }));
      for (const model of ["claude-sonnet-4-5", "claude-3-7-sonnet-20250219", "claude-opus-4-20250514"]) {
        const messages = [said("user"), said("assistant", "The answer is")];
        await expectTaken(twin, messagesRequest({ model, messages }));
      }
    });
  });

  describe("the contents of a turn", () => {
    test.each([
      [[4], "message_form", "messages.0: Input should be a valid dictionary"],
      [[said("system")], "unknown_role", 'Unexpected role "system"'],
      [[said("tool")], "unknown_role", "messages.0.role: Input should be 'user' or 'assistant'"],
      [[{ content: "Hello" }], "unknown_role", "messages.0.role: Field required"],
      [[{ role: "user" }], "content_form", "messages.0.content: Field required"],
      [[said("user", 4)], "content_form", "valid list"],
      [[said("user", ["Hello"])], "content_form", "messages.0.content.0: Input should be a valid dictionary"],
      [[said("user", [{ text: "Hello" }])], "content_form", "messages.0.content.0.type: Field required"],
      [[said("user", [{ type: "image_url" }])], "unknown_block", "Input tag 'image_url' found using 'type'"],
      [[said("user", "")], "empty_content", "messages.0: all messages must have non-empty content"],
      [
        [said("user"), said("assistant", []), said("user")],
        "empty_content",
        "messages.1: all messages must have",
      ],
      [[said("user", [text("")])], "empty_text", "text content blocks must be non-empty"],
      [[said("user", " \n")], "blank_text", "text content blocks must contain non-whitespace text"],
      [[said("user", [text("Hello"), text(" ")])], "blank_text", "non-whitespace"],
      [[said("user", [{ type: "text" }])], "text_form", "messages.0.content.0.text.text: Field required"],
      [
        [said("user", [{ type: "thinking" }])],
        "block_of_other_role",
        "`thinking` blocks can only be in `assistant`",
      ],
      [
        [said("user"), said("assistant", [{ type: "image" }])],
        "block_of_other_role",
        "only be in `user` messages",
      ],
    ])("[TWA1] refuses %j", (messages, rule, says) =>
      expectRefused(twin, messagesRequest({ messages }), { rule, says }),
    );

    test("[TWA1] accepts an empty last assistant turn", () =>
      expectTaken(twin, messagesRequest({ messages: [said("user"), said("assistant", "")] })));
  });
});

describe("fields", () => {
  let twin: Twin;
  beforeAll(async () => {
    twin = await startTwin({ api: "anthropic-messages" });
  });
  afterAll(() => twin.close());

  const version = { "anthropic-version": "2023-06-01" };

  describe("headers", () => {
    test.each([
      [{ "x-api-key": "any" }, "version_header", "anthropic-version: header is required", 400],
      [
        { ...anthropicKeys, "anthropic-version": "1999" },
        "version_header",
        '"1999" is not a valid version',
        400,
      ],
      [version, "api_key", "x-api-key header is required", 401],
    ])("[TWA1] refuses %j", (headers, rule, says, status) =>
      expectRefused(twin, messagesRequest({}, headers), { rule, says, status }),
    );

    test("[TWA1] accepts both kinds of keys", async () => {
      await expectTaken(twin, messagesRequest());
      await expectTaken(twin, messagesRequest({}, { ...version, authorization: "Bearer any" }));
    });
  });

  describe("fields", () => {
    test.each([
      [{ model: undefined }, "model", "model: Field required"],
      [{ model: 4 }, "model", "model: Input should be a valid string"],
      [{ model: "" }, "model", "at least 1 character"],
      [{ max_tokens: undefined }, "max_tokens", "max_tokens: Field required"],
      [{ max_tokens: 0 }, "max_tokens", "greater than or equal to 1"],
      [{ max_tokens: 1.5 }, "max_tokens", "valid integer"],
      [{ stream: "yes" }, "stream", "valid boolean"],
      [{ messages: undefined }, "messages", "messages: Field required"],
      [{ messages: "Hello" }, "messages", "valid list"],
      [{ messages: [] }, "no_messages", "at least one message is required"],
      [{ system: "" }, "system", "must be non-empty"],
      [{ system: [{ type: "text", text: "" }] }, "system", "must be non-empty"],
      [{ system: [{ type: "text", text: " \n" }] }, "system", "must contain non-whitespace text"],
      [{ system: [{ type: "image" }] }, "system", "system.0"],
      [{ system: 4 }, "system", "valid list"],
    ])("[TWA1] refuses %j", (body, rule, says) => expectRefused(twin, messagesRequest(body), { rule, says }));

    test("[TWA1] refuses more than 100,000 messages", () => {
      const messages = Array.from({ length: 100_001 }, () => ({ role: "user", content: "a" }));
      return expectRefused(twin, messagesRequest({ messages }), {
        rule: "too_many_messages",
        says: "100001",
      });
    });

    test("[TWA1] accepts a system prompt as text and as blocks", async () => {
      await expectTaken(twin, messagesRequest({ system: "Be brief." }));
      await expectTaken(twin, messagesRequest({ system: [{ type: "text", text: "Be brief." }] }));
    });

    test.each(["null", "[]", '"text"', "4"])("[TWA1] refuses a body that is %s", (body) =>
      expectRefused(twin, { ...messagesRequest(), body }, { rule: "body_form", says: "expected an object" }),
    );
  });
});

describe("images", () => {
  let twin: Twin;
  beforeAll(async () => {
    twin = await startTwin({ api: "anthropic-messages" });
  });
  afterAll(() => twin.close());

  const source = (mime: string, data: unknown) => ({ type: "base64", media_type: mime, data });
  const image = (from: unknown) => ({ type: "image", source: from });
  const showing = (...content: unknown[]) => messagesRequest({ messages: [{ role: "user", content }] });
  const png = (width: number, height = 10) => source("image/png", imageData("png", width, height));

  describe("images", () => {
    test.each([
      ["no source", undefined, "image_form", "messages.0.content.0.image.source: Field required"],
      ["an unknown source", { type: "blob" }, "image_form", "Input tag 'blob'"],
      ["no data", source("image/png", undefined), "image_form", "image.source.base64.data: Field required"],
      [
        "an unknown type",
        source("image/jpg", imageData("jpeg", 9, 9)),
        "image_type",
        "base64.media_type: Input should",
      ],
      ["no bytes", source("image/png", ""), "image_empty", "image cannot be empty"],
      ["broken base64", source("image/png", "iVBORw0KG!oAA"), "image_base64", "invalid base64 data"],
      [
        "base64 with a prefix",
        source("image/png", `data:${imageData("png", 9, 9)}`),
        "image_base64",
        "invalid base64",
      ],
      ["base64 in the URL alphabet", source("image/png", "-_-_"), "image_base64", "invalid base64 data"],
      ["other bytes", source("image/png", "aGVsbG8gdGhlcmUh"), "image_unreadable", "Could not process image"],
      [
        "a wrong media type",
        source("image/png", imageData("jpeg", 9, 9)),
        "image_type_mismatch",
        "The image was specified using the image/png media type, but the image appears to be a image/jpeg image",
      ],
      ["too wide", png(8001), "image_dimensions", "max allowed size: 8000 pixels"],
      [
        "too high",
        png(10, 8001),
        "image_dimensions",
        "messages.0.content.0.image.source.base64.data: At least one",
      ],
    ])("[TWA1] refuses an image with %s", (_, from, rule, says) =>
      expectRefused(twin, showing(image(from)), { rule, says }),
    );

    test("[TWA1] refuses an image with more than 5 MB of base64", () => {
      const bytes = Buffer.concat([
        Buffer.from(imageData("png", 9, 9), "base64"),
        Buffer.alloc(4 * 1024 * 1024),
      ]);
      const request = showing(image(source("image/png", bytes.toString("base64"))));
      return expectRefused(twin, request, { rule: "image_too_large", says: "image exceeds 5 MB maximum" });
    });

    test("[TWA1] limits images to 2,000 pixels for more than 20, and refuses more than 100", async () => {
      const twentyOne = Array.from({ length: 21 }, () => image(png(2001)));
      await expectTaken(twin, showing(...twentyOne.slice(1)));
      await expectRefused(twin, showing(...twentyOne), {
        rule: "image_dimensions",
        says: "many-image requests: 2000",
      });
      const hundred = Array.from({ length: 100 }, () => image(png(2000)));
      await expectTaken(twin, showing(...hundred));
      const says = "Too much media: 0 document pages + 101 images > 100";
      await expectRefused(twin, showing(...hundred, image(png(2000))), { rule: "too_many_images", says });
    });

    test("[TWA1] accepts all four formats, URLs, and images inside a result", async () => {
      const kinds = (["png", "jpeg", "gif", "webp"] as const).map((kind) =>
        image(source(`image/${kind}`, imageData(kind, 8000, 4))),
      );
      await expectTaken(twin, showing(...kinds, image({ type: "url", url: "https://example.com/a.png" })));
    });

    test("[TWA1] refuses a bad image inside a result", () => {
      const messages = [
        { role: "user", content: "Look" },
        { role: "assistant", content: [{ type: "tool_use", id: "a", name: "look", input: {} }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "a", content: [image(png(9000))] }] },
      ];
      const tools = [{ name: "look", input_schema: { type: "object" } }];
      const says = "messages.2.content.0.tool_result.content.0.image.source.base64.data";
      return expectRefused(twin, messagesRequest({ tools, messages }), { rule: "image_dimensions", says });
    });
  });
});

describe("limits", () => {
  let twin: Twin;
  beforeAll(async () => {
    twin = await startTwin({ api: "anthropic-messages" });
  });
  afterAll(() => twin.close());

  const cache_control = { type: "ephemeral" };
  const text = (words: string, fields: object = {}) => ({ type: "text", text: words, ...fields });
  const user = (content: unknown) => ({ messages: [{ role: "user", content }] });

  describe("limits", () => {
    test("[TWA1] refuses a fifth cache breakpoint, anywhere", async () => {
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

    test("[TWA1] refuses a prompt longer than the window", async () => {
      const long = messagesRequest(user("word ".repeat(200_000)));
      await expectRefused(twin, long, { rule: "prompt_too_long", says: "tokens > 200000 maximum" });
      expect(checkRequest("anthropic-messages", long, { contextWindow: 1_000_000 })).toBeNull();
      const small = await startTwin({ api: "anthropic-messages", contextWindow: 100 });
      const refused = await send(small, messagesRequest(user("word ".repeat(100))));
      expect(await refused.text()).toMatch(/prompt is too long: 1\d\d tokens > 100 maximum/);
      await small.close();
    });

    test("[TWA1] counts an image by its pixels", () => {
      const shown = (width: number, height: number) => {
        const source = { type: "base64", media_type: "image/png", data: imageData("png", width, height) };
        return messagesRequest(user([{ type: "image", source }]));
      };
      const fits = (request: TwinRequest, contextWindow: number) =>
        checkRequest("anthropic-messages", request, { contextWindow }) === null;
      expect([fits(shown(750, 100), 100), fits(shown(750, 100), 180)]).toEqual([false, true]);
      expect([fits(shown(8000, 8000), 1600), fits(shown(8000, 8000), 1680)]).toEqual([false, true]);
    });

    test("[TWA1] does not count an image by its bytes", () => {
      const data = Buffer.concat([Buffer.from(imageData("png", 9, 9), "base64"), Buffer.alloc(3_000_000)]);
      const source = { type: "base64", media_type: "image/png", data: data.toString("base64") };
      return expectTaken(twin, messagesRequest(user([{ type: "image", source }])));
    });

    test("[TWA1] refuses more than 32 MB, by the sent or the decoded size", async () => {
      const huge = messagesRequest(user("a".repeat(32 * 1024 * 1024)));
      await expectRefused(twin, huge, {
        rule: "request_too_large",
        says: "maximum allowed number of bytes",
        status: 413,
      });
    });

    test("[TWA1] counts the sent size, not the decoded one, declared or not", async () => {
      const { path, headers, body } = messagesRequest();
      const padded = new Blob([JSON.stringify(body), " ".repeat(33 * 1024 * 1024)]).stream();
      const init = {
        method: "POST",
        headers: headers as Record<string, string>,
        body: padded,
        duplex: "half",
      };
      const response = await fetch(new URL(path, twin.url), init as RequestInit);
      expect(response.status).toBe(413);
      expect(twin.requests.at(-1)?.refusal?.rule).toBe("request_too_large");
    });

    test("[TWA1] refuses half a surrogate pair anywhere", async () => {
      const says = "no low surrogate in string";
      await expectRefused(twin, messagesRequest(user("cut \ud83d")), { rule: "ill_formed_text", says });
      const system = [text("cut \ude00")];
      await expectRefused(twin, messagesRequest({ system }), { rule: "ill_formed_text", says });
      await expectTaken(twin, messagesRequest(user("whole \ud83d\ude00")));
    });
  });
});
