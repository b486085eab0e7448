import type {
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  SharedV4ProviderOptions,
} from "@ai-sdk/provider";
import fc from "fast-check";
import type { Api, TranscriptMessage } from "../../src/index.ts";
import { providerMetadata } from "./arbitraries.ts";

/** Generators for AI SDK and Skein messages, limited to what each can represent of the other. */

export const apis: readonly Api[] = [
  "anthropic-messages",
  "google-generative-ai",
  "openai-completions",
  "openai-responses",
  "mistral-conversations",
];

const text = fc.string({ unit: "grapheme", maxLength: 12 });
const word = fc.stringMatching(/^[a-z]{1,8}$/);
const base64 = fc
  .uint8Array({ minLength: 1, maxLength: 9 })
  .map((bytes) => Buffer.from(bytes).toString("base64"));
const json = fc.jsonValue({ maxDepth: 2 }).map((value) => JSON.parse(JSON.stringify(value)) as unknown);
const input = fc.dictionary(word, json, { maxKeys: 3 });

/** Removes an object's undefined fields. */
function record(fields: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<Record<string, unknown>> {
  return fc
    .record(fields)
    .map((value) => Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)));
}
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });

/** Metadata as produced by the providers' packages, and unknown metadata. */
const signed = fc.constantFrom<SharedV4ProviderOptions>(
  { anthropic: { signature: "c2ln" } },
  { anthropic: { redactedData: "aGlk", cacheControl: { type: "ephemeral" } } },
  { google: { thoughtSignature: "dGhv", more: 1 } },
  { openai: { itemId: "msg_1", phase: "commentary", annotations: [] } },
  { openai: { itemId: "fc_1" }, google: { thoughtSignature: "dGhv" } },
  { openai: { itemId: 7, phase: null } },
);
const metadata = fc.oneof(providerMetadata, signed) as fc.Arbitrary<SharedV4ProviderOptions>;
const options = { providerOptions: maybe(metadata) };

const textPart = record({ type: fc.constant("text"), text, ...options });
const imagePart = record({
  type: fc.constant("file"),
  mediaType: fc.constantFrom("image/png", "image/jpeg", "image"),
  data: record({ type: fc.constant("data"), data: base64 }),
  filename: maybe(word),
  ...options,
});
const userMessage = record({
  role: fc.constant("user"),
  content: fc.array(fc.oneof(textPart, imagePart), { maxLength: 3 }),
  ...options,
});

const reasoningPart = record({ type: fc.constant("reasoning"), text, ...options });
/** The contents of one Responses API item. IDs are assigned below. */
const reasoningItem = fc
  .tuple(
    fc.array(
      text.filter((each) => each !== ""),
      { maxLength: 3 },
    ),
    fc.option(base64),
  )
  .map(([texts, encrypted]) =>
    (texts.length === 0 ? [""] : texts).map((each) => ({
      type: "reasoning",
      text: each,
      providerOptions: { openai: { itemId: "rs_", reasoningEncryptedContent: encrypted } },
    })),
  );
const callPart = record({
  type: fc.constant("tool-call"),
  toolCallId: word,
  toolName: word,
  input,
  ...options,
});
const assistantMessage = fc
  .record({
    groups: fc.array(
      fc.oneof(
        textPart.map((part) => [part]),
        reasoningPart.map((part) => [part]),
        reasoningItem,
        callPart.map((part) => [part]),
      ),
      { maxLength: 4 },
    ),
    providerOptions: maybe(metadata),
  })
  .map(({ groups, providerOptions }) => ({
    role: "assistant",
    content: groups.flatMap((group, index) => group.map((part) => numbered(part, index))),
    ...(providerOptions === undefined ? {} : { providerOptions }),
  }));

/** No two items share an ID. */
function numbered(part: object, index: number): object {
  const { type, providerOptions } = part as { type: string; providerOptions?: SharedV4ProviderOptions };
  if (type !== "reasoning" || typeof providerOptions?.openai?.itemId !== "string") return part;
  return {
    ...part,
    providerOptions: { ...providerOptions, openai: { ...providerOptions.openai, itemId: `rs_${index}` } },
  };
}

const plainOutput = fc.oneof(
  record({ type: fc.constantFrom("text", "error-text"), value: text, ...options }),
  record({ type: fc.constantFrom("json", "error-json"), value: json, ...options }),
  record({ type: fc.constant("execution-denied"), reason: maybe(text), ...options }),
);
const listOutput = record({
  type: fc.constant("content"),
  value: fc
    .tuple(fc.array(fc.oneof(textPart, imagePart), { maxLength: 2 }), imagePart)
    .map(([parts, image]) => [...parts, image]),
});
const resultPart = record({
  type: fc.constant("tool-result"),
  toolCallId: word,
  toolName: word,
  output: fc.oneof({ weight: 3, arbitrary: plainOutput }, listOutput),
  ...options,
});
const toolMessage = record({
  role: fc.constant("tool"),
  content: fc.array(resultPart, { minLength: 1, maxLength: 3 }),
  ...options,
});

/** A prompt without consecutive tool messages. */
export const anyPrompt = fc
  .array(fc.oneof(userMessage, assistantMessage, toolMessage), { maxLength: 6 })
  .map((messages) =>
    messages.filter((message, index) => message.role !== "tool" || messages[index - 1]?.role !== "tool"),
  ) as unknown as fc.Arbitrary<LanguageModelV4Prompt & LanguageModelV4Message[]>;

/** In our format, empty values are absent, and values that have their own field are present. */
const keptMetadata = providerMetadata.filter(
  (each) =>
    Object.keys(each).length > 0 &&
    Object.values(each).every((fields) => Object.keys(fields).length > 0 && !("itemId" in fields)),
);
const ours = (fields: Record<string, fc.Arbitrary<unknown>> = {}) =>
  maybe(
    record({ providerMetadata: maybe(keptMetadata), ...fields }).filter(
      (each) => Object.keys(each).length > 0,
    ),
  );
const signature = fc.oneof(
  base64,
  text,
  fc.constantFrom(
    '{"v":1,"id":"msg_1","phase":"final_answer"}',
    '{"id":"msg_1","v":1,"later":true}',
    "msg_plain",
    '{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"ZW5j"}',
    '{"id":"rs_2","type":"reasoning","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":""}],"status":"done"}',
  ),
);
const textBlock = record({ type: fc.constant("text"), text, textSignature: maybe(signature), skein: ours() });
const plainTextBlock = record({ type: fc.constant("text"), text, skein: ours() });
const imageBlock = record({
  type: fc.constant("image"),
  data: base64,
  mimeType: fc.constantFrom("image/png", "image/webp"),
  skein: ours({ filename: maybe(word) }),
});
const thinkingBlock = record({
  type: fc.constant("thinking"),
  thinking: text,
  thinkingSignature: maybe(signature),
  redacted: maybe(fc.boolean()),
  skein: ours(),
});
const callBlock = record({
  type: fc.constant("toolCall"),
  id: word,
  name: word,
  arguments: input,
  thoughtSignature: maybe(signature),
  skein: ours(),
});
const user = record({
  role: fc.constant("user"),
  content: fc.array(fc.oneof(plainTextBlock, imageBlock), { maxLength: 3 }),
  skein: ours(),
});
const assistant = record({
  role: fc.constant("assistant"),
  content: fc.uniqueArray(fc.oneof(textBlock, thinkingBlock, callBlock), {
    maxLength: 4,
    // A Responses item is one block.
    selector: (block) => block.thinkingSignature ?? {},
  }),
  skein: ours(),
});
const toolResult = record({
  role: fc.constant("toolResult"),
  toolCallId: word,
  toolName: word,
  content: fc.oneof(
    plainTextBlock.map((block) => [block]),
    fc
      .tuple(fc.array(plainTextBlock, { maxLength: 2 }), imageBlock)
      .map(([texts, image]) => [...texts, image]),
  ),
  isError: fc.boolean(),
  skein: ours(),
});

/** Messages in our format. */
export const anyTranscript = fc.array(fc.oneof(user, assistant, toolResult), {
  maxLength: 6,
}) as unknown as fc.Arbitrary<TranscriptMessage[]>;
