import fc from "fast-check";
import type { Change, TranscriptMessage } from "../../src/index.ts";
import type { StepResult } from "../../src/transcript/contract.ts";
import type { Recorder } from "../../src/transcript/derive.ts";
import { EntryIds } from "../../src/transcript/derive.ts";

/** Transcripts in every order and size, for the steps that shrink them. */

const text = fc.oneof(
  { weight: 3, arbitrary: fc.string({ maxLength: 30 }) },
  fc.tuple(fc.constantFrom("a", "😀", "京", " \n"), fc.nat(12_000)).map(([one, count]) => one.repeat(count)),
);
const textBlock = text.map((each) => ({ type: "text" as const, text: each }));
const image = fc.constant({ type: "image" as const, data: "aGk=", mimeType: "image/png" });
const callId = fc.constantFrom("a", "b", "c", "d", "e", "f");
const tool = fc.constantFrom("read_file", "web_search", "bash");
const timestamp = fc.option(fc.nat(1_000_000), { nil: undefined, freq: 3 });

const user = fc.record({ role: fc.constant("user" as const), content: fc.oneof(text, fc.array(textBlock)) });
const assistant = fc
  .tuple(fc.array(fc.oneof(textBlock, callBlock()), { maxLength: 3 }), timestamp)
  .map(([content, time]) => ({
    role: "assistant" as const,
    content,
    ...(time === undefined ? {} : { timestamp: time }),
  }));
const result = fc.record({
  role: fc.constant("toolResult" as const),
  toolCallId: callId,
  toolName: tool,
  content: fc.array(fc.oneof({ weight: 4, arbitrary: textBlock }, image), { maxLength: 5 }),
  isError: fc.boolean(),
});

function callBlock() {
  return fc.record({
    type: fc.constant("toolCall" as const),
    id: callId,
    name: tool,
    arguments: fc.constant({ path: "x" }),
  });
}

export const anyTurns: fc.Arbitrary<TranscriptMessage[]> = fc.array(
  fc.oneof(user, assistant, { weight: 2, arbitrary: result }),
  { maxLength: 25 },
);

/** A step that runs on messages with the entry IDs `0`, `1` and so on and records its changes. */
export type Step = (messages: readonly TranscriptMessage[], record: Recorder) => StepResult;

export function run(step: Step, messages: readonly TranscriptMessage[], name = "step"): StepResult {
  const ids = new EntryIds(
    messages,
    messages.map((_, index) => String(index)),
  );
  return step(messages, ids.recorder(name));
}

export function kinds(changes: readonly Change[]): string[] {
  return changes.map(({ kind }) => kind);
}
