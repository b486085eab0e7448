import { expect, test } from "vitest";
import type { ThinkingBlock } from "../../core/messages.ts";
import { EntryIds } from "../derive.ts";
import { resolveTranscriptPolicy } from "../policy.ts";
import { normalizeThinking, readReasoningItem } from "./normalize-thinking.ts";

const record = new EntryIds().recorder("normalizeThinking");

/** Returns what remains of a thinking block that this model produced. */
function left(provider: string, model: string, block: Omit<ThinkingBlock, "type">) {
  const policy = resolveTranscriptPolicy({ provider, model });
  const content = [{ type: "thinking" as const, ...block }];
  const { messages } = normalizeThinking([{ role: "assistant", provider, model, content }], {
    policy,
    record,
  });
  return messages[0]?.content;
}

test.each([
  ["a signature in base64", { thinking: "Hm.", thinkingSignature: "c2ln" }, 1],
  ["another signature", { thinking: "Hm.", thinkingSignature: "sig-1" }, 0],
  ["none", { thinking: "Hm." }, 0],
  ["an empty text", { thinking: "", thinkingSignature: "c2ln" }, 0],
])(
  "[TR5] Claude served by Google keeps thinking only in a form that Google accepts: %s",
  (_, block, count) => {
    expect(left("google", "claude-sonnet-4-5", block)).toHaveLength(count);
  },
);

test("[TR5] metadata of another provider is not sent with an answer", () => {
  const policy = resolveTranscriptPolicy({ provider: "google", model: "gemini-3-pro-preview" });
  const skein = { providerMetadata: { google: { thoughtSignature: "x" } } };
  const call = { type: "toolCall" as const, id: "a", name: "read", arguments: {}, skein };
  const message = {
    role: "assistant" as const,
    provider: "gproxy",
    model: "gemini-3",
    content: [call],
    skein,
  };
  const { messages, changes } = normalizeThinking([message], { policy, record });
  expect(JSON.stringify(messages)).not.toContain("thoughtSignature");
  expect(changes.map(({ kind }) => kind)).toEqual(["metadata_removed"]);
});

const item = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "sealed" };

test.each([
  ["the item of pi", JSON.stringify(item), { id: "rs_1", encrypted_content: "sealed" }],
  ["no signature", undefined, null],
  ["a signature of another provider", "c2lnbmVk", null],
  ["broken JSON", "{", null],
  ["an item of another type", JSON.stringify({ ...item, type: "message" }), null],
  ["an item without a type", JSON.stringify({ ...item, type: undefined }), null],
  ["an id of another item", JSON.stringify({ ...item, id: "msg_1" }), null],
  ["no encrypted content", JSON.stringify({ ...item, encrypted_content: null }), null],
])("[TR10] a signature that is %s", (_, signature, expected) => {
  expect(readReasoningItem(signature)).toEqual(expected);
});
