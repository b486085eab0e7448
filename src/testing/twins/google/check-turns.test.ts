import { afterAll, beforeAll, describe, test } from "vitest";
import { expectRefused, expectTaken, generateRequest } from "../../../../test/support/twins.ts";
import type { Twin } from "../../server/start-twin.ts";
import { startTwin } from "../../server/start-twin.ts";

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
  ])("[TWA12] refuses %j", (contents, rule, says) =>
    expectRefused(twin, generateRequest({ contents }), { rule, says }),
  );

  test("[TWA12] takes turns that alternate, and several of the user's in a row", async () => {
    await expectTaken(twin, generateRequest({ contents: [user(hello), model(hello), user(hello)] }));
    await expectTaken(twin, generateRequest({ contents: [user(hello), user(hello)] }));
  });
});

describe("calls and responses", () => {
  const asked = (calls: object[], responses: object[]) => [user(hello), model(...calls), user(...responses)];
  const count = "number of function response parts is equal to the number of function call parts";
  test.each([
    ["none", asked([call("find")], [hello]), "response_count", count],
    ["one of two", asked([call("find"), call("take")], [response("find")]), "response_count", count],
    ["one too many", asked([call("find")], [response("find"), response("find")]), "response_count", count],
    ["one of no call", asked([hello], [response("find")]), "response_without_call", responseTurn],
    ["one at first", [user(response("find"))], "response_without_call", responseTurn],
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
    ["another id", asked([call("find", "a")], [response("find", "b")]), "response_id", "id does not match"],
    [
      "an id of another name",
      asked([call("find", "a")], [response("take", "a")]),
      "response_id",
      "id does not match",
    ],
    [
      "one id twice",
      asked([call("find", "a"), call("find", "b")], [response("find", "a"), response("find", "a")]),
      "response_id",
      "id does not match",
    ],
    [
      "calls with one id",
      asked([call("find", "a"), call("find", "a")], [response("find", "a"), response("find", "a")]),
      "call_id_repeated",
      "unique",
    ],
  ])("[TWA13] refuses %s", (_, contents, rule, says) =>
    expectRefused(twin, generateRequest({ contents }), { rule, says }),
  );

  test("[TWA13] takes responses by id in any order, by name without ids, and with text behind", async () => {
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
    [responded({ name: "", response: {} }), "function_name", "function_response.name: Name cannot be empty."],
  ])("[TWA14] refuses %j", (contents, rule, says) =>
    expectRefused(twin, generateRequest({ contents }), { rule, says }),
  );

  test("[TWA14] refuses declarations with bad or repeated names", async () => {
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

  test("[TWA14] takes a call without arguments", () =>
    expectTaken(twin, generateRequest({ contents: called({ name: "find" }) })));
});
