import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectRefused, expectTaken, generateRequest, imageData } from "../../../../test/support/twins.ts";
import { checkRequest } from "../../server/check-request.ts";
import type { Twin } from "../../server/start-twin.ts";
import { startTwin } from "../../server/start-twin.ts";

let twin: Twin;
beforeAll(async () => {
  twin = await startTwin({ api: "google-generative-ai" });
});
afterAll(() => twin.close());

const hello = { text: "Hello" };
const said = (...parts: unknown[]) => generateRequest({ contents: [{ role: "user", parts }] });
const showing = (mimeType: unknown, data: unknown) => said(hello, { inlineData: { mimeType, data } });
const png = imageData("png", 9, 9);

describe("inline data", () => {
  test.each([
    ["image/svg+xml", png, "mime_type", "Unsupported MIME type: image/svg+xml"],
    ["image/gif", imageData("gif", 9, 9), "mime_type", "Unsupported MIME type: image/gif"],
    ["png", png, "mime_type", "Unsupported MIME type: png"],
    [undefined, png, "mime_type", "inline_data.mime_type"],
    [
      "image/png",
      "so!",
      "data_base64",
      "contents[0].parts[1].inline_data.data' (TYPE_BYTES), Base64 decoding failed",
    ],
    ["image/png", undefined, "data_base64", "Base64 decoding failed"],
    ["image/png", "", "data_empty", "data must not be empty"],
    ["image/png", "aGVsbG8gdGhlcmUh", "image_unreadable", "Unable to process input image."],
  ])("[TWA16] refuses %s of %j", (mimeType, data, rule, says) =>
    expectRefused(twin, showing(mimeType, data), { rule, says }),
  );

  test("[TWA16] looks inside functions' responses", async () => {
    const answered = (mimeType: string) => [
      { role: "user", parts: [hello] },
      { role: "model", parts: [{ functionCall: { name: "look", args: {} } }] },
      {
        role: "user",
        parts: [
          {
            functionResponse: {
              name: "look",
              response: {},
              parts: [{ inlineData: { mimeType, data: png } }],
            },
          },
        ],
      },
    ];
    const says = "Unsupported MIME type: image/bmp";
    await expectRefused(twin, generateRequest({ contents: answered("image/bmp") }), {
      rule: "mime_type",
      says,
    });
    await expectTaken(twin, generateRequest({ contents: answered("image/png") }));
  });

  test("[TWA16] takes images, documents and sound, in either alphabet of base64", async () => {
    for (const kind of ["png", "jpeg", "webp"] as const) {
      await expectTaken(twin, showing(`image/${kind}`, imageData(kind, 9000, 9)));
    }
    await expectTaken(twin, showing("application/pdf", "JVBERg=="));
    await expectTaken(twin, showing("audio/wav", "_-8"));
    await expectTaken(
      twin,
      said({ fileData: { mimeType: "image/png", fileUri: "https://example.com/a.png" } }),
    );
  });
});

describe("limits", () => {
  test("[TWA17] refuses a prompt that is longer than the window", async () => {
    const long = said({ text: "word ".repeat(1000) });
    expect(checkRequest("google-generative-ai", long, { contextWindow: 1000 })).toMatchObject({
      rule: "prompt_too_long",
      body: {
        error: {
          code: 400,
          status: "INVALID_ARGUMENT",
          message: expect.stringMatching(
            /^The input token count \(12\d\d\) exceeds the maximum number of tokens allowed/,
          ),
        },
      },
    });
    await expectTaken(twin, long);
  });

  test("[TWA17] refuses more than 20 MB", () => {
    const huge = showing("video/mp4", "AAAA".repeat(5 * 1024 * 1024));
    const says = "Request payload size exceeds the limit: 20971520 bytes.";
    return expectRefused(twin, huge, { rule: "request_too_large", says });
  });

  test("[TWA17] refuses half a surrogate pair", () =>
    expectRefused(twin, said({ text: "cut \ud83d" }), { rule: "ill_formed_text", says: "surrogate" }));
});
