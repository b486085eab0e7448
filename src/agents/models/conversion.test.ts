import type { LanguageModelV4Prompt } from "@ai-sdk/provider";
import type { ModelMessage } from "ai";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyPrompt, anyTranscript, apis } from "../../../test/support/sdk-arbitraries.ts";
import type { MessageDraft } from "../../core/seal.ts";
import { sealEntry } from "../../core/seal.ts";
import type { Change, TranscriptMessage } from "../../transcript/contract.ts";
import { fromModelMessages } from "./from-model-messages.ts";
import { toModelMessages } from "./to-model-messages.ts";

/** The value as read back from disk. */
function written(message: MessageDraft): TranscriptMessage {
  const { entry } = sealEntry({ type: "message", message }, { id: "e", parentId: null, time: 1 });
  return (entry as unknown as { message: TranscriptMessage }).message;
}

/** The message without fields that SDK messages lack: time, model and cost. */
function said(message: TranscriptMessage): object {
  const fields = ["role", "content", "toolCallId", "toolName", "isError", "skein"];
  return Object.fromEntries(Object.entries(message).filter(([field]) => fields.includes(field)));
}

describe("conversion to and from the AI SDK's messages", () => {
  test.each(apis)("[CNV1] %s: a Skein message survives the SDK's format unchanged", (api) => {
    fc.assert(
      fc.property(anyTranscript, (messages) => {
        const report: Change[] = [];
        const prompt = toModelMessages(messages, { api, report: (change) => report.push(change) });
        const back = fromModelMessages(prompt, { api }).messages.map(written);
        expect(back.map(said)).toEqual(messages.map(said));
        expect(report).toEqual([]);
      }),
    );
  });

  test.each(apis)("[CNV1] %s: an SDK message survives Skein's format and a file unchanged", (api) => {
    fc.assert(
      fc.property(anyPrompt, (prompt) => {
        const report: Change[] = [];
        const tell = (change: Change) => report.push(change);
        const { messages } = fromModelMessages(prompt, { api, report: tell });
        expect(toModelMessages(messages.map(written), { api, report: tell })).toEqual(prompt);
        expect(report).toEqual([]);
      }),
    );
  });

  test("[CNV1] a prompt is a list of the SDK's messages", () => {
    const prompt: LanguageModelV4Prompt = toModelMessages([{ role: "user", content: "Hello" }], {
      api: "anthropic-messages",
      system: "Be brief.",
    });
    const messages: ModelMessage[] = prompt;
    expect(messages).toEqual([
      { role: "system", content: "Be brief." },
      { role: "user", content: [{ type: "text", text: "Hello" }] },
    ]);
  });
});
