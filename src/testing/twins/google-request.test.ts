import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectRefused, expectTaken, generateRequest, imageData } from "../../../test/support/twins.ts";
import { checkRequest } from "../server/check-request.ts";
import type { Twin } from "../server/start-twin.ts";
import { startTwin } from "../server/start-twin.ts";
import { signatures } from "./signatures.ts";

describe("turns", () => {
  let twin: Twin;
  beforeAll(async () => {
    twin = await startTwin({ api: "google-generative-ai" });
  });
  afterAll(() => twin.close());

  const user = (...parts: unknown[]) => ({ role: "user", parts });
  const model = (...parts: unknown[]) => ({ role: "model", parts });
  const hello = { text: "Hello" };

  const call = (name: string, id?: string) => ({
    functionCall: { name, args: {}, ...(id === undefined ? {} : { id }) },
  });
  const response = (name: string, id?: string) => ({
    functionResponse: { name, response: { ok: true }, ...(id === undefined ? {} : { id }) },
  });
  const callTurn = "function call turn comes immediately after a user turn";
  const responseTurn = "function response turn comes immediately after a function call turn";

  describe("the order of turns", () => {
    test.each([
      [[model(hello), user(hello)], "turns_not_alternating", "alternate between user and model"],
      [[user(hello), model(hello), model(hello), user(hello)], "turns_not_alternating", "alternate"],
      [[model(call("find")), user(response("find"))], "call_turn_misplaced", callTurn],
      [
        [user(hello), model(hello), model(call("find")), user(response("find"))],
        "call_turn_misplaced",
        callTurn,
      ],
      [[user(hello), model(hello)], "last_turn_model", "ends with a user role or a function response"],
      [[model(hello)], "last_turn_model", "single turn requests end with a user role"],
      [[user(hello), model(call("find"))], "last_turn_model", "ends with a user role"],
      [[user(call("find"))], "call_of_user", callTurn],
      [[user(hello), model(response("find")), user(hello)], "response_of_model", responseTurn],
    ])("[TWA1] refuses %j", (contents, rule, says) =>
      expectRefused(twin, generateRequest({ contents }), { rule, says }),
    );

    test("[TWA1] accepts alternating turns, and several user turns in a row", async () => {
      await expectTaken(twin, generateRequest({ contents: [user(hello), model(hello), user(hello)] }));
      await expectTaken(twin, generateRequest({ contents: [user(hello), user(hello)] }));
    });
  });

  describe("calls and responses", () => {
    const asked = (calls: object[], responses: object[]) => [
      user(hello),
      model(...calls),
      user(...responses),
    ];
    const count = "number of function response parts is equal to the number of function call parts";
    test.each([
      ["none", asked([call("find")], [hello]), "response_count", count],
      ["one of two", asked([call("find"), call("take")], [response("find")]), "response_count", count],
      [
        "a surplus response",
        asked([call("find")], [response("find"), response("find")]),
        "response_count",
        count,
      ],
      [
        "a response without a call",
        asked([hello], [response("find")]),
        "response_without_call",
        responseTurn,
      ],
      ["a response first", [user(response("find"))], "response_without_call", responseTurn],
      [
        "a late one",
        [...asked([call("find")], [response("find")]), user(response("find"))],
        "response_without_call",
        responseTurn,
      ],
      ["another name", asked([call("find")], [response("take")]), "response_name", "name does not match"],
      [
        "a name twice",
        asked([call("find"), call("take")], [response("find"), response("find")]),
        "response_name",
        "name",
      ],
      ["another ID", asked([call("find", "a")], [response("find", "b")]), "response_id", "id does not match"],
      [
        "an ID of another name",
        asked([call("find", "a")], [response("take", "a")]),
        "response_id",
        "id does not match",
      ],
      [
        "one ID twice",
        asked([call("find", "a"), call("find", "b")], [response("find", "a"), response("find", "a")]),
        "response_id",
        "id does not match",
      ],
      [
        "calls with the same ID",
        asked([call("find", "a"), call("find", "a")], [response("find", "a"), response("find", "a")]),
        "call_id_repeated",
        "unique",
      ],
    ])("[TWA1] refuses %s", (_, contents, rule, says) =>
      expectRefused(twin, generateRequest({ contents }), { rule, says }),
    );

    test("[TWA1] accepts responses by ID in any order, by name without IDs, and with text after them", async () => {
      const byId = asked(
        [call("find", "a"), call("take", "b")],
        [response("take", "b"), response("find", "a"), hello],
      );
      await expectTaken(twin, generateRequest({ contents: byId }));
      const byName = asked([call("find"), call("find")], [response("find"), response("find")]);
      await expectTaken(twin, generateRequest({ contents: [...byName, model(hello), user(hello)] }));
    });
  });

  describe("names and arguments", () => {
    const called = (functionCall: unknown) => [user(hello), model({ functionCall }), user(response("find"))];
    const responded = (functionResponse: unknown) => [
      user(hello),
      model(call("find")),
      user({ functionResponse }),
    ];
    test.each([
      [
        called({ name: "9lives", args: {} }),
        "function_name",
        "parts[0].function_call.name: Invalid function name",
      ],
      [called({ name: "a b", args: {} }), "function_name", "Invalid function name"],
      [called({ name: "a".repeat(65), args: {} }), "function_name", "maximum length of 64"],
      [called({ args: {} }), "function_name", "Name cannot be empty."],
      [called("find"), "function_form", "contents[1].parts[0].function_call"],
      [called({ name: "find", args: "{}" }), "function_args", "google.protobuf.Struct"],
      [called({ name: "find", args: [] }), "function_args", "function_call.args"],
      [responded({ name: "find", response: "ok" }), "function_response", "function_response.response"],
      [responded({ name: "find" }), "function_response", "google.protobuf.Struct"],
      [
        responded({ name: "", response: {} }),
        "function_name",
        "function_response.name: Name cannot be empty.",
      ],
    ])("[TWA1] refuses %j", (contents, rule, says) =>
      expectRefused(twin, generateRequest({ contents }), { rule, says }),
    );

    test("[TWA1] refuses declarations with bad or repeated names", async () => {
      const declared = (...names: string[]) => ({
        tools: [{ functionDeclarations: names.map((name) => ({ name })) }],
      });
      const says = "tools[0].function_declarations[1].name: Invalid function name";
      await expectRefused(twin, generateRequest(declared("find", "a/b")), { rule: "function_name", says });
      const twice = "Duplicate function declaration found: find";
      await expectRefused(twin, generateRequest(declared("find", "find")), {
        rule: "declaration_repeated",
        says: twice,
      });
      await expectTaken(twin, generateRequest(declared("find", "mcp:a.b-c_d", "_".padEnd(64, "x"))));
    });

    test("[TWA1] accepts a call without arguments", () =>
      expectTaken(twin, generateRequest({ contents: called({ name: "find" }) })));
  });
});

describe("fields", () => {
  let twin: Twin;
  beforeAll(async () => {
    twin = await startTwin({ api: "google-generative-ai" });
  });
  afterAll(() => twin.close());

  const user = (...parts: unknown[]) => ({ role: "user", parts });
  const hello = { text: "Hello" };

  describe("fields and parts", () => {
    test("[TWA1] refuses a caller without a key, and accepts one in the query", async () => {
      const request = generateRequest();
      const says = "Method doesn't allow unregistered callers";
      await expectRefused(twin, { ...request, headers: {} }, { rule: "api_key", says, status: 403 });
      await expectTaken(twin, { ...request, headers: {}, path: `${request.path}?key=any` });
    });

    test.each([
      [{ contents: undefined }, "no_contents", "GenerateContentRequest.contents: contents is not specified"],
      [{ contents: [] }, "no_contents", "contents is not specified"],
      [{ contents: "Hello" }, "contents_form", "Invalid value at 'contents'"],
      [{ contents: ["Hello"] }, "content_form", "contents[0]"],
      [
        { contents: [{ role: "assistant", parts: [hello] }] },
        "unknown_role",
        "Please use a valid role: user, model.",
      ],
      [
        { contents: [{ role: "user" }] },
        "empty_parts",
        "contents[0].parts: contents.parts must not be empty.",
      ],
      [{ contents: [user()] }, "empty_parts", "contents.parts must not be empty."],
      [{ contents: [{ role: "user", parts: hello }] }, "parts_form", "contents[0].parts"],
      [
        { contents: [user(hello, {})] },
        "empty_part",
        "contents[0].parts[1].data: required oneof field 'data'",
      ],
      [{ contents: [user({ text: "" })] }, "empty_part", "must have one initialized field"],
      [{ contents: [user({ thought: true })] }, "empty_part", "must have one initialized field"],
      [{ contents: [user({ text: 4 })] }, "text_form", "contents[0].parts[0].text"],
      [{ contents: [user({ text: "a", inlineData: {} })] }, "part_of_two_kinds", "Cannot set 'inlineData'"],
      [{ contents: [user({ text: "a", type: "text" })] }, "unknown_field", 'Unknown name "type" at'],
      [{ systemInstruction: { parts: [] } }, "empty_parts", "system_instruction.parts"],
      [{ systemInstruction: { parts: [{ text: "" }] } }, "empty_part", "system_instruction.parts[0].data"],
      [{ systemInstruction: { parts: [{ inlineData: {} }] } }, "system_not_text", "only text is supported"],
    ])("[TWA1] refuses %j", (body, rule, says) => expectRefused(twin, generateRequest(body), { rule, says }));

    test.each(["null", "[]", "4"])("[TWA1] refuses a body that is %s", (body) =>
      expectRefused(twin, { ...generateRequest(), body }, { rule: "body_form", says: "Expected an object" }),
    );

    test("[TWA1] accepts content without a role, a system instruction, and blank text", async () => {
      await expectTaken(twin, generateRequest({ contents: [{ parts: [hello] }] }));
      await expectTaken(twin, generateRequest({ systemInstruction: { parts: [{ text: "Be brief." }] } }));
      await expectTaken(twin, generateRequest({ contents: [user({ text: " " })] }));
    });
  });
});

describe("signatures", () => {
  let twin: Twin;
  beforeAll(async () => {
    twin = await startTwin({ api: "google-generative-ai" });
  });
  afterAll(() => twin.close());

  const user = (...parts: unknown[]) => ({ role: "user", parts });
  const model = (...parts: unknown[]) => ({ role: "model", parts });
  const hello = { text: "Hello" };

  const flash = "gemini-2.5-flash";
  const pro = "gemini-3-pro-preview";
  const sign = (by: string) => signatures.sign("google-generative-ai", by, "Hm");
  const call = (thoughtSignature?: unknown) => ({
    functionCall: { name: "find", args: {} },
    thoughtSignature,
  });
  const response = { functionResponse: { name: "find", response: {} } };
  const step = (thoughtSignature?: unknown) => [model(call(thoughtSignature)), user(response)];
  const missing = "Function call is missing a thought_signature in functionCall parts.";

  describe("thought signatures", () => {
    test.each([
      [
        "invalid base64",
        "so!",
        "signature_base64",
        "thought_signature' (TYPE_BYTES), Base64 decoding failed",
      ],
      ["cut off", sign(flash).slice(0, 61), "signature_base64", "Base64 decoding failed"],
      ["no text", 4, "signature_base64", "Base64 decoding failed"],
      ["of another model", sign("gemini-2.5-pro"), "signature_corrupted", "Corrupted thought signature."],
      [
        "of another provider",
        signatures.sign("anthropic-messages", flash, "Hm"),
        "signature_corrupted",
        "Corrupted",
      ],
      ["forged", "c2tlaW4=", "signature_corrupted", "Corrupted thought signature."],
    ])("[TWA1] refuses one that is %s", (_, signature, rule, says) =>
      expectRefused(twin, generateRequest({ contents: [user(hello), ...step(signature)] }), { rule, says }),
    );

    test("[TWA1] accepts its own on any part, even alone, and the documented placeholders", async () => {
      const thought = model({ text: "Hm", thought: true }, { ...hello, thoughtSignature: sign(flash) });
      await expectTaken(twin, generateRequest({ contents: [user(hello), thought, user(hello)] }));
      const alone = model(hello, { text: "", thoughtSignature: sign(flash) });
      await expectTaken(twin, generateRequest({ contents: [user(hello), alone, user(hello)] }));
      for (const stand of ["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"]) {
        await expectTaken(twin, generateRequest({ contents: [user(hello), ...step(stand)] }, pro));
      }
    });

    test("[TWA1] from Gemini 3 on, each step of the turn needs a signature on its first call", async () => {
      const refused = (contents: object[], by = pro) =>
        expectRefused(twin, generateRequest({ contents }, by), { rule: "signature_missing", says: missing });
      await refused([user(hello), ...step()]);
      await refused([user(hello), ...step(sign(pro)), ...step()]);
      await refused([user(hello), model(call(), call(sign(pro))), user(response, response)]);
      await refused([user(hello), ...step()], "gemini-flash-latest");
    });

    test("[TWA1] is required only on the first call, not in earlier turns, and not on older models", async () => {
      const taken = (contents: object[], by = pro) => expectTaken(twin, generateRequest({ contents }, by));
      await taken([user(hello), model(call(sign(pro)), call()), user(response, response)]);
      await taken([user(hello), ...step(), model(hello), user(hello)]);
      await taken([
        user(hello),
        ...step(),
        model(hello),
        user(hello),
        ...step(sign(pro)),
        ...step(sign(pro)),
      ]);
      await taken([user(hello), ...step()], flash);
      await taken([user(hello), ...step()], "gemini-3-pro-image-preview");
    });
  });
});

describe("inline data", () => {
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
    ])("[TWA1] refuses %s of %j", (mimeType, data, rule, says) =>
      expectRefused(twin, showing(mimeType, data), { rule, says }),
    );

    test("[TWA1] checks function responses too", async () => {
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

    test("[TWA1] accepts images, documents and audio, in either base64 alphabet", async () => {
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
    test("[TWA1] refuses a prompt longer than the window", async () => {
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

    test("[TWA1] refuses more than 20 MB", () => {
      const huge = showing("video/mp4", "AAAA".repeat(5 * 1024 * 1024));
      const says = "Request payload size exceeds the limit: 20971520 bytes.";
      return expectRefused(twin, huge, { rule: "request_too_large", says });
    });

    test("[TWA1] refuses half a surrogate pair", () =>
      expectRefused(twin, said({ text: "cut \ud83d" }), { rule: "ill_formed_text", says: "surrogate" }));
  });
});
