import type { LanguageModelV4Content } from "@ai-sdk/provider";
import type { ModelMessage } from "ai";
import { describe, expect, test } from "vitest";
import { apis } from "../../../test/support/sdk-arbitraries.ts";
import type { MessageDraft } from "../../core/seal.ts";
import { sealEntry } from "../../core/seal.ts";
import type { Api, Change, TranscriptMessage } from "../../transcript/contract.ts";
import { assistantMessageOf } from "./assistant-message.ts";
import { fromModelMessages } from "./from-model-messages.ts";
import { toModelMessages } from "./to-model-messages.ts";

const written = (message: MessageDraft) =>
  (
    sealEntry({ type: "message", message }, { id: "e", parentId: null, time: 1 }).entry as never as {
      message: TranscriptMessage;
    }
  ).message;

const pdf = { type: "file" as const, mediaType: "application/pdf", filename: "a.pdf" };
const bytes = { ...pdf, data: { type: "data" as const, data: "JVBERi0=" } };

/** Converts a request and returns the parts that are sent and the reported changes. */
function sent(message: ModelMessage, api: Api) {
  const told: Change[] = [];
  const { messages } = fromModelMessages([message], { api });
  const prompt = toModelMessages(messages.map(written), { api, report: (change) => told.push(change) });
  return { content: prompt[0]?.content, told: told.map(({ kind }) => kind), messages };
}

describe("parts without a block in the provider's format", () => {
  test("a user's file is sent to providers that accept it, and as a text with its name to the others", () => {
    const message: ModelMessage = { role: "user", content: [{ type: "text", text: "Read this." }, bytes] };
    for (const api of apis) expect(sent(message, api).content).toEqual(message.content);
    const sound = {
      type: "file" as const,
      mediaType: "audio/wav",
      data: { type: "data" as const, data: "AA==" },
    };
    const audio: ModelMessage = { role: "user", content: [sound] };
    expect(sent(audio, "google-generative-ai").content).toEqual([sound]);
    expect(sent(audio, "anthropic-messages").content).toEqual([{ type: "text", text: "[file: audio/wav]" }]);
    expect(sent(audio, "mistral-conversations").messages[0]).toMatchObject({
      content: [{ type: "text", text: "[file: audio/wav]", skein: { part: sound } }],
    });
  });

  const file = (mediaType: string, data: object) => ({ type: "file", mediaType, data });
  test.each([
    ["bad base64", file("application/pdf", { type: "data", data: "!!" })],
    ["no bytes", file("application/pdf", { type: "data", data: "" })],
    ["bytes that are not text", file("application/pdf", { type: "data", data: 7 })],
    ["a blank text", file("text/plain", { type: "text", text: " \n" })],
    ["a blank text in base64", file("text/plain", { type: "data", data: "ICA=" })],
    ["an invalid URL", file("image/png", { type: "url", url: "file:///etc/passwd" })],
  ])("only the name of a broken file is sent: %s", (_, part) => {
    const place = "url" in part.data ? ` at ${String(part.data.url)}` : "";
    const text = `[file: ${part.mediaType}${place}]`;
    const message = { role: "user" as const, content: [{ type: "text" as const, text, skein: { part } }] };
    for (const api of apis)
      expect(toModelMessages([message], { api })[0]?.content).toEqual([{ type: "text", text }]);
  });

  test("a file of a type that Gemini does not read is sent by its name", () => {
    const sentAs = (mediaType: string) => {
      const part = file(mediaType, { type: "data", data: "R0lGODlh" });
      const block = { type: "text" as const, text: `[file: ${mediaType}]`, skein: { part } };
      const [sentMessage] = toModelMessages([{ role: "user", content: [block] }], {
        api: "google-generative-ai",
      });
      return Object(sentMessage?.content[0]).type;
    };
    expect(
      ["image/gif", "image/png", "application/zip", "application/json", "audio/wav"].map(sentAs),
    ).toEqual(["text", "text", "text", "file", "file"]);
  });

  test("a changed text no longer replaces a part", () => {
    const { messages } = fromModelMessages([{ role: "user", content: [bytes] }]);
    const [block] = (messages[0] as { content: { type: "text"; text: string }[] }).content;
    const changed = { role: "user" as const, content: [{ ...block, type: "text" as const, text: "[cut]" }] };
    expect(toModelMessages([changed], { api: "anthropic-messages" })).toEqual([
      { role: "user", content: [{ type: "text", text: "[cut]" }] },
    ]);
  });

  test("addresses, references and texts are kept as they are", () => {
    const url = new URL("https://example.org/a.png");
    const files = [
      { type: "file" as const, mediaType: "image/png", data: { type: "url" as const, url } },
      { ...pdf, data: { type: "reference" as const, reference: { anthropic: "file_1" } } },
      { type: "file" as const, mediaType: "text/plain", data: { type: "text" as const, text: "words" } },
    ];
    const message: ModelMessage = { role: "user", content: files };
    expect(sent(message, "anthropic-messages").content).toEqual(files);
    expect(sent(message, "openai-responses").content).toEqual([
      files[0],
      { type: "text", text: "[file a.pdf: application/pdf]" },
      { type: "text", text: "[file: text/plain]" },
    ]);
  });

  test("a reference without a provider is sent to none", () => {
    const message: ModelMessage = { role: "user", content: [{ ...pdf, data: { "": "file_1" } }] };
    for (const api of apis) expect(sent(message, api).content).toMatchObject([{ type: "text" }]);
  });

  const searched: readonly LanguageModelV4Content[] = [
    {
      type: "tool-call",
      toolCallId: "s1",
      toolName: "web_search",
      input: '{"q":"x"}',
      providerExecuted: true,
    },
    { type: "tool-result", toolCallId: "s1", toolName: "web_search", result: [{ url: "u" }] },
    { type: "source", sourceType: "url", id: "1", url: "https://example.org", title: "T" },
    { type: "file", mediaType: "image/png", data: { type: "data", data: new Uint8Array([1, 2]) } },
    { type: "custom", kind: "openai.compaction", providerMetadata: { openai: { itemId: "cmp_1" } } },
    { type: "tool-approval-request", approvalId: "ap", toolCallId: "s1" },
    { type: "tool-result", toolCallId: "p", toolName: "draw", result: "half", preliminary: true },
    { type: "text", text: "Found.", citations: [] },
  ];
  const facts = { finishReason: { unified: "stop" as const, raw: "end_turn" } };
  const about = {
    provider: "anthropic",
    api: "anthropic-messages",
    model: "claude-sonnet-4-5",
    timestamp: 1,
  };

  test("an answer keeps such parts in their place, through a file", () => {
    const told: Change[] = [];
    const draft = assistantMessageOf(searched, facts, about, (change) => told.push(change));
    const { content } = written(draft) as {
      content: { type: string; skein?: { part?: { type: string } } }[];
    };
    expect(content.map(({ type, skein }) => skein?.part?.type ?? type)).toEqual([
      "tool-call",
      "tool-result",
      "source",
      "file",
      "custom",
      "tool-approval-request",
      "text",
    ]);
    expect(content[3]?.skein?.part).toEqual({
      type: "file",
      mediaType: "image/png",
      data: { type: "data", data: "AQI=" },
    });
    expect(told.map(({ kind }) => kind)).toEqual(["preliminary_result"]);
    expect(draft.stopReason).toBe("stop");
  });

  test.each<[Api, string[], number]>([
    ["anthropic-messages", ["tool-call", "tool-result", "text"], 4],
    ["google-generative-ai", ["tool-call", "tool-result", "file", "text"], 3],
    ["openai-responses", ["custom", "text"], 5],
    ["openai-completions", ["text"], 6],
    ["mistral-conversations", ["text"], 6],
  ])("%s gets back what it accepts, and the rest is reported", (api, types, untold) => {
    const told: Change[] = [];
    const answer = written(assistantMessageOf(searched, facts, about));
    const [message] = toModelMessages([answer], { api, report: (change) => told.push(change) });
    const { content } = message as unknown as { content: { type: string }[] };
    expect(content.map(({ type }) => type)).toEqual(types);
    expect(told).toHaveLength(untold);
    expect(told[0]).toMatchObject({ step: "toModelMessages", kind: "part_not_sent" });
  });

  test("arguments that are not an object are wrapped in one, and this is reported", () => {
    const call = (input: string) => {
      const content = [{ type: "tool-call" as const, toolCallId: "c", toolName: "read", input }];
      return written(assistantMessageOf(content, facts, about)).content[0];
    };
    expect(call('{"a":1}')).toEqual({ type: "toolCall", id: "c", name: "read", arguments: { a: 1 } });
    expect(call("")).toMatchObject({ arguments: {} });
    expect(call('{"a":')).toMatchObject({ arguments: { input: '{"a":' }, skein: { invalidInput: true } });
    expect(call("[1]")).toMatchObject({ arguments: { input: "[1]" }, skein: { invalidInput: true } });
  });

  test("converts system messages and answers to approval requests", () => {
    const told: Change[] = [];
    const { system, messages } = fromModelMessages(
      [
        { role: "system", content: "Be brief.", providerOptions: { anthropic: { cacheControl: 1 } } },
        { role: "system", content: "Be kind." },
        { role: "user", content: "Hello" },
        { role: "system", content: "Be quick." },
        { role: "tool", content: [{ type: "tool-approval-response", approvalId: "a", approved: true }] },
      ],
      { report: (change) => told.push(change) },
    );
    expect(system).toBe("Be brief.\n\nBe kind.");
    expect(messages).toEqual([
      { role: "user", content: [{ type: "text", text: "Hello" }] },
      { role: "custom", customType: "skein.system", content: "Be quick.", display: false },
    ]);
    expect(told.map(({ kind }) => kind)).toEqual([
      "options_not_kept",
      "system_message_moved",
      "approval_not_kept",
    ]);
  });

  const image = { type: "image", data: "AQI=", mimeType: "image/png" };
  test.each<[string, ModelMessage, unknown]>([
    ["a bare string", { role: "assistant", content: "Yes." }, { content: [{ type: "text", text: "Yes." }] }],
    [
      "an image as bytes",
      { role: "user", content: [{ type: "image", image: new Uint8Array([1, 2]), mediaType: "image/png" }] },
      { content: [image] },
    ],
    [
      "an image in a URL",
      { role: "user", content: [{ type: "image", image: "data:image/png;base64,AQI=" }] },
      { content: [image] },
    ],
    [
      "bare base64",
      { role: "user", content: [{ type: "file", data: "AQI=", mediaType: "image/png" }] },
      { content: [image] },
    ],
    [
      "a URL as text",
      { role: "user", content: [{ type: "file", data: "https://e.org/a", mediaType: "image/png" }] },
      { content: [{ text: "[file: image/png at https://e.org/a]" }] },
    ],
    [
      "a reference without a tag",
      { role: "user", content: [{ type: "file", data: { openai: "file-1" }, mediaType: "application/pdf" }] },
      { content: [{ skein: { part: { data: { type: "reference", reference: { openai: "file-1" } } } } }] },
    ],
    [
      "older parts of results",
      {
        role: "tool",
        content: [
          {
            type: "tool-result",
            toolCallId: "c",
            toolName: "shot",
            output: {
              type: "content",
              value: [
                { type: "image-data", data: "AQI=", mediaType: "image/png" },
                { type: "file-url", url: "https://e.org/a.pdf", mediaType: "application/pdf" },
                { type: "image-url", url: "https://e.org/a" },
                { type: "file-id", fileId: "f1" },
                { type: "image-file-reference", providerReference: { openai: "f2" } },
                { type: "custom" },
              ],
            },
          },
        ],
      },
      {
        content: [
          image,
          { text: "[file: application/pdf at https://e.org/a.pdf]" },
          { text: "[file: image at https://e.org/a]" },
          { text: "[file: application]" },
          { text: "[file: image]" },
          { text: "[custom part]" },
        ],
      },
    ],
  ])("[CNV1] converts the SDK's short and older forms: %s", (_, message, expected) => {
    expect(fromModelMessages([message]).messages[0]).toMatchObject(expected as object);
  });
});
