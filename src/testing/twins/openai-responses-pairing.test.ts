import { test } from "vitest";
import {
  ask,
  call,
  expectRefusal,
  output,
  reasoning,
  said,
  user,
} from "../../../test/support/twin-responses.ts";
import { sealReasoning } from "./signatures.ts";

const persisted = "Items are not persisted when `store` is set to false. Try again with `store` set to true";

test.each([
  [
    "without its content if nothing is stored",
    ask(user(), reasoning("rs_1", { encrypted_content: null }), said(), user()),
    "item_not_found",
    `Item with id 'rs_1' not found. ${persisted}`,
    404,
  ],
  [
    "without its content if it was never stored",
    { ...ask(user(), reasoning("rs_1", { encrypted_content: null }), said(), user()), store: true },
    "item_not_found",
    "Item with id 'rs_1' not found.",
    404,
  ],
  [
    "by reference",
    ask(user(), { type: "item_reference", id: "rs_1" }, said(), user()),
    "item_not_found",
    persisted,
    404,
  ],
  [
    "of another model",
    ask(user(), reasoning("rs_1", { encrypted_content: sealReasoning("o3", "rs_1") }), said(), user()),
    "invalid_encrypted_content",
    "The encrypted content for item rs_1 could not be verified.",
    400,
  ],
  [
    "of another item",
    ask(user(), reasoning("rs_1", { encrypted_content: sealReasoning("gpt-5", "rs_2") }), said(), user()),
    "invalid_encrypted_content",
    "Encrypted content item_id did not match the target item id.",
    400,
  ],
  [
    "forged",
    ask(user(), reasoning("rs_1", { encrypted_content: "gAAAAAforged" }), said(), user()),
    "invalid_encrypted_content",
    "could not be decrypted or parsed",
    400,
  ],
  [
    "forged, without id",
    ask(user(), { type: "reasoning", summary: [], encrypted_content: "gAAAAAforged" }, said(), user()),
    "invalid_encrypted_content",
    "gAAA...rged",
    400,
  ],
  [
    "at the end",
    ask(user(), reasoning("rs_1")),
    "reasoning_without_item",
    "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
    400,
  ],
  [
    "before a user message",
    ask(user(), reasoning("rs_1"), user()),
    "reasoning_without_item",
    "required following item",
    400,
  ],
  [
    "before an output",
    ask(user(), call("a"), reasoning("rs_1"), output("a")),
    "reasoning_without_item",
    "required following item",
    400,
  ],
  [
    "without summary",
    ask(user(), { type: "reasoning", id: "rs_1" }, said(), user()),
    "bad_reasoning",
    "'input[1].summary'",
    400,
  ],
  [
    "with a summary of another kind",
    ask(user(), reasoning("rs_1", { summary: [{ type: "text", text: "x" }] }), said(), user()),
    "bad_reasoning",
    "Supported values are: 'summary_text'.",
    400,
  ],
  [
    "without ID and content",
    ask(user(), { type: "reasoning", summary: [] }, said(), user()),
    "bad_reasoning",
    "'input[1].id'",
    400,
  ],
])("[TWA1] reasoning %s is refused", (_, body, rule, part, status) => {
  expectRefusal(body, rule, part, undefined, status);
});
