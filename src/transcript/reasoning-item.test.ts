import { expect, test } from "vitest";
import { readReasoningItem } from "./reasoning-item.ts";

const item = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "sealed" };

test.each([
  ["the item of pi", JSON.stringify(item), { id: "rs_1", encrypted_content: "sealed" }],
  ["no signature", undefined, null],
  ["a signature of another provider", "c2lnbmVk", null],
  ["broken JSON", "{", null],
  ["an item of another type", JSON.stringify({ ...item, type: "message" }), null],
  ["an item of no type", JSON.stringify({ ...item, type: undefined }), null],
  ["an id of another item", JSON.stringify({ ...item, id: "msg_1" }), null],
  ["nothing sealed", JSON.stringify({ ...item, encrypted_content: null }), null],
])("[TR10] a signature that is %s", (_, signature, expected) => {
  expect(readReasoningItem(signature)).toEqual(expected);
});
