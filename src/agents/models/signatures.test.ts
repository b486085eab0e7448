import type { LanguageModelV4Prompt } from "@ai-sdk/provider";
import { describe, expect, test } from "vitest";
import type { AssistantBlock } from "../../core/messages.ts";
import type { Api } from "../../transcript/contract.ts";
import { fromModelMessages } from "./from-model-messages.ts";
import { toModelMessages } from "./to-model-messages.ts";

type Parts = Extract<LanguageModelV4Prompt[number], { role: "assistant" }>["content"];

const item = (id: string, summary: readonly string[], encrypted: string | null) =>
  JSON.stringify({
    type: "reasoning",
    id,
    summary: summary.map((text) => ({ type: "summary_text", text })),
    encrypted_content: encrypted,
  });
const openai = (fields: Record<string, string | null>) => ({ providerOptions: { openai: fields } });

/** Each part as represented in the SDK and in our format. */
const cases: readonly [string, Api, Parts, AssistantBlock[]][] = [
  [
    "Anthropic's thinking",
    "anthropic-messages",
    [{ type: "reasoning", text: "hm", providerOptions: { anthropic: { signature: "c2ln" } } }],
    [{ type: "thinking", thinking: "hm", thinkingSignature: "c2ln" }],
  ],
  [
    "Anthropic's redacted thinking",
    "anthropic-messages",
    [{ type: "reasoning", text: "", providerOptions: { anthropic: { redactedData: "aGlk" } } }],
    [{ type: "thinking", thinking: "", thinkingSignature: "aGlk", redacted: true }],
  ],
  [
    "Google's signatures of thinking, text and call",
    "google-generative-ai",
    [
      { type: "reasoning", text: "hm", providerOptions: { google: { thoughtSignature: "YQ==" } } },
      { type: "text", text: "Yes.", providerOptions: { google: { thoughtSignature: "Yg==" } } },
      {
        type: "tool-call",
        toolCallId: "c",
        toolName: "read",
        input: { path: "a" },
        providerOptions: { google: { thoughtSignature: "Yw==" } },
      },
    ],
    [
      { type: "thinking", thinking: "hm", thinkingSignature: "YQ==" },
      { type: "text", text: "Yes.", textSignature: "Yg==" },
      { type: "toolCall", id: "c", name: "read", arguments: { path: "a" }, thoughtSignature: "Yw==" },
    ],
  ],
  [
    "a reasoning item of Responses, each summary a part",
    "openai-responses",
    [
      { type: "reasoning", text: "a", ...openai({ itemId: "rs_1", reasoningEncryptedContent: "ZW5j" }) },
      { type: "reasoning", text: "b", ...openai({ itemId: "rs_1", reasoningEncryptedContent: "ZW5j" }) },
      { type: "reasoning", text: "", ...openai({ itemId: "rs_2", reasoningEncryptedContent: null }) },
    ],
    [
      { type: "thinking", thinking: "a\n\nb", thinkingSignature: item("rs_1", ["a", "b"], "ZW5j") },
      { type: "thinking", thinking: "", thinkingSignature: item("rs_2", [], null) },
    ],
  ],
  [
    "a text of Responses with its ID and phase",
    "openai-responses",
    [{ type: "text", text: "Yes.", ...openai({ itemId: "msg_1", phase: "final_answer" }) }],
    [{ type: "text", text: "Yes.", textSignature: '{"v":1,"id":"msg_1","phase":"final_answer"}' }],
  ],
  [
    "fields that Skein has no place for",
    "anthropic-messages",
    [{ type: "text", text: "Yes.", providerOptions: { anthropic: { citations: [{ type: "x" }] } } }],
    [
      {
        type: "text",
        text: "Yes.",
        skein: { providerMetadata: { anthropic: { citations: [{ type: "x" }] } } },
      },
    ],
  ],
];

describe("signatures", () => {
  test.each(cases)("%s", (_, api, parts, blocks) => {
    const prompt: LanguageModelV4Prompt = [{ role: "assistant", content: parts }];
    const { messages } = fromModelMessages(prompt, { api });
    expect(messages).toMatchObject([{ role: "assistant", content: blocks }]);
    expect(toModelMessages([{ role: "assistant", content: blocks }], { api })).toEqual(prompt);
  });

  test("only the last part of a streamed item carries its encrypted content", () => {
    const content: Parts = [
      { type: "reasoning", text: "a", ...openai({ itemId: "rs_1" }) },
      { type: "reasoning", text: "", ...openai({ itemId: "rs_1", reasoningEncryptedContent: null }) },
      { type: "reasoning", text: "b", ...openai({ itemId: "rs_1", reasoningEncryptedContent: "ZW5j" }) },
    ];
    const { messages } = fromModelMessages([{ role: "assistant", content }]);
    expect(messages[0]).toMatchObject({
      api: "openai-responses",
      provider: "openai",
      content: [{ thinking: "a\n\nb", thinkingSignature: item("rs_1", ["a", "b"], "ZW5j") }],
    });
  });

  test("an unnamed signer is recognized by the signature", () => {
    const signed = (name: string, field: string) =>
      fromModelMessages([
        {
          role: "assistant",
          content: [{ type: "reasoning", text: "hm", providerOptions: { [name]: { [field]: "c2ln" } } }],
        },
      ]).messages[0];
    expect(signed("anthropic", "redactedData")).toMatchObject({ provider: "anthropic" });
    expect(signed("google", "thoughtSignature")).toMatchObject({ api: "google-generative-ai" });
    expect(signed("nobody", "signature")).toMatchObject({ provider: "unknown", api: "unknown" });
  });

  test("pi's Responses call IDs are split, also in results, and older text signatures are understood", () => {
    const prompt = toModelMessages(
      [
        {
          role: "assistant",
          content: [
            { type: "text", text: "Yes.", textSignature: "msg_old" },
            {
              type: "toolCall",
              id: "call_1|fc_1",
              name: "read",
              arguments: {},
              skein: { providerMetadata: { openai: { itemId: "fc_0", more: "x" } } },
            },
          ],
        },
        { role: "toolResult", toolCallId: "call_1|fc_1", content: [{ type: "text", text: "x" }] },
      ],
      { api: "openai-responses" },
    );
    expect(prompt).toMatchObject([
      {
        content: [
          openai({ itemId: "msg_old" }),
          { toolCallId: "call_1", ...openai({ itemId: "fc_1", more: "x" }) },
        ],
      },
      { role: "tool", content: [{ toolCallId: "call_1", toolName: "read" }] },
    ]);
  });
});
