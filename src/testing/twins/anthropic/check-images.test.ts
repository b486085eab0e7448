import { afterAll, beforeAll, describe, test } from "vitest";
import { expectRefused, expectTaken, messagesRequest } from "../../../../test/support/twins.ts";
import type { Twin } from "../../server/start-twin.ts";
import { startTwin } from "../../server/start-twin.ts";

let twin: Twin;
beforeAll(async () => {
  twin = await startTwin({ api: "anthropic-messages" });
});
afterAll(() => twin.close());

import { imageData } from "../../../../test/support/twins.ts";

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
    ["base64 of the other alphabet", source("image/png", "-_-_"), "image_base64", "invalid base64 data"],
    ["other bytes", source("image/png", "aGVsbG8gdGhlcmUh"), "image_unreadable", "Could not process image"],
    [
      "another type than it has",
      source("image/png", imageData("jpeg", 9, 9)),
      "image_type_mismatch",
      "The image was specified using the image/png media type, but the image appears to be a image/jpeg image",
    ],
    ["a long side", png(8001), "image_dimensions", "max allowed size: 8000 pixels"],
    [
      "a high side",
      png(10, 8001),
      "image_dimensions",
      "messages.0.content.0.image.source.base64.data: At least one",
    ],
  ])("[TWA7] refuses an image with %s", (_, from, rule, says) =>
    expectRefused(twin, showing(image(from)), { rule, says }),
  );

  test("[TWA7] refuses an image whose base64 is over 5 MB", () => {
    const bytes = Buffer.concat([
      Buffer.from(imageData("png", 9, 9), "base64"),
      Buffer.alloc(4 * 1024 * 1024),
    ]);
    const request = showing(image(source("image/png", bytes.toString("base64"))));
    return expectRefused(twin, request, { rule: "image_too_large", says: "image exceeds 5 MB maximum" });
  });

  test("[TWA7] more than 20 images may be of 2,000 pixels each, and more than 100 none may be", async () => {
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

  test("[TWA7] takes all four kinds, addresses, and images inside a result", async () => {
    const kinds = (["png", "jpeg", "gif", "webp"] as const).map((kind) =>
      image(source(`image/${kind}`, imageData(kind, 8000, 4))),
    );
    await expectTaken(twin, showing(...kinds, image({ type: "url", url: "https://example.com/a.png" })));
  });

  test("[TWA7] refuses a bad image inside a result", () => {
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
