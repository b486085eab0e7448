import { expect, test } from "vitest";
import { chat, check, expectRefusal, image, user } from "../../../../test/support/twin-chat.ts";
import { images, posted } from "../../../../test/support/twin-fetch.ts";
import { openaiChat } from "./format.ts";

test("[TWB1] only a POST on its own path is served", () => {
  const request = posted("/v1/chat/completions?a=b", {});
  expect(openaiChat.serves(request)).toBe(true);
  expect(openaiChat.serves({ ...request, method: "GET" })).toBe(false);
  expect(openaiChat.serves(posted("/v1/responses", {}))).toBe(false);
});

test.each([
  [
    "bytes of another type",
    images.png.replace("png", "jpeg"),
    "image_type_mismatch",
    "does not represent a valid image",
  ],
  [
    "an unsupported type",
    images.of("image/bmp", Buffer.from("BM")),
    "image_type_unsupported",
    "You uploaded an unsupported image.",
  ],
  ["no base64", "data:image/png;base64,****", "image_not_base64", "Invalid base64 image_url."],
  ["base64 cut off", images.png.slice(0, -1), "image_not_base64", "Invalid base64"],
  ["nothing in it", "data:image/png;base64,", "image_not_base64", "Invalid base64"],
  ["no data URL", "file:///a.png", "image_not_base64", "Invalid base64"],
  ["an animated GIF", images.animatedGif, "image_animated", "unsupported image"],
])("[TWB6] images: %s", (_, url, rule, part) => {
  expectRefusal(chat(image(url)), rule, part, "messages[0].content[0].image_url");
});

test("[TWB6] images of a request have a number and a size", () => {
  const many = user(
    Array.from({ length: 1_501 }, () => ({ type: "image_url", image_url: { url: "https://x.org/" } })),
  );
  expectRefusal(chat(many), "too_many_images");
  const large = images.of(
    "image/png",
    Buffer.concat([Buffer.from("89504e470d0a1a0a", "hex"), Buffer.alloc(27e6)]),
  );
  expectRefusal(chat(image(large)), null);
  expectRefusal(chat(image(large), image(large)), "images_too_large", "exceeds the allowed limit of 50MB.");
});

test("[TWB8] a request does not end in an assistant's turn", () => {
  expectRefusal(chat(user(), { role: "assistant", content: "x" }), "last_message_assistant", "last message");
});

test("[TWB8] a request longer than the context window is refused as the server does it", () => {
  const long = chat(user("a".repeat(4_000)));
  const tools = [{ type: "function", function: { name: "t", description: "d".repeat(4_000) } }];
  expect(check(long, 1_001)).toBeNull();
  expect(check(long, 1_000)).toEqual({
    status: 400,
    rule: "context_length",
    body: {
      error: {
        message:
          "This model's maximum context length is 1000 tokens. However, your messages resulted in 1001 tokens. Please reduce the length of the messages.",
        type: "invalid_request_error",
        param: "messages",
        code: "context_length_exceeded",
      },
    },
  });
  const refusal = check({ ...chat(user()), tools }, 1_000);
  expect(JSON.stringify(refusal?.body)).toContain("in the functions");
});

test("[TWB8] no text is longer than the server takes", () => {
  const part =
    "Expected a string with maximum length 10485760, but got a string with length 10485761 instead.";
  expectRefusal(chat(user("a".repeat(10_485_761))), "text_too_long", part, "messages[0].content");
});
