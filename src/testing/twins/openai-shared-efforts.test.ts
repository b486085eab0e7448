import { expect, test } from "vitest";
import { chat, user as chatUser, check as checkChat } from "../../../test/support/twin-chat.ts";
import { ask, check as checkResponses, user } from "../../../test/support/twin-responses.ts";

const refusalsOf = (model: string, effort: unknown) => [
  checkResponses({ ...ask(user()), model, reasoning: { effort } }),
  checkChat({ ...chat(chatUser()), model, reasoning_effort: effort }),
];

test("[TWB29] an effort that the model does not take is refused in the server's words", () => {
  const [refusal] = refusalsOf("gpt-5.1-codex", "none");
  expect(refusal).toEqual({
    status: 400,
    rule: "unsupported_effort",
    body: {
      error: {
        message:
          "Unsupported value: 'none' is not supported with the 'gpt-5.1-codex' model. Supported values are: 'low', 'medium', and 'high'.",
        type: "invalid_request_error",
        param: "reasoning.effort",
        code: "unsupported_value",
      },
    },
  });
});

const efforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
test.each([
  ["o1", "low medium high"],
  ["o1-mini", ""],
  ["o3-2025-04-16", "low medium high"],
  ["o4-mini", "low medium high"],
  ["gpt-5", "minimal low medium high"],
  ["gpt-5-nano-2025-08-07", "minimal low medium high"],
  ["gpt-5-pro", "high"],
  ["gpt-5-codex", "low medium high"],
  ["gpt-5.1", "none low medium high"],
  ["gpt-5.1-chat-latest", "medium"],
  ["gpt-5.1-codex-max", "low medium high xhigh"],
  ["gpt-5.2-pro", "medium high xhigh"],
  ["gpt-5.4-mini", "none low medium high xhigh"],
  ["gpt-5.6-sol", "none low medium high xhigh max"],
  ["gpt-9", efforts.join(" ")],
])("[TWB29] %s takes %s", (model, taken) => {
  for (const each of [0, 1]) {
    const found = efforts.filter((effort) => refusalsOf(model, effort)[each] === null);
    expect(found.join(" ")).toBe(taken);
  }
});

test("[TWB29] without an effort there is nothing to refuse", () => {
  for (const effort of [undefined, null]) expect(refusalsOf("gpt-5-pro", effort)).toEqual([null, null]);
});
