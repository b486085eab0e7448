import { expect, test } from "vitest";
import { EntryIds } from "../derive.ts";
import { annotateInterSessionMessages } from "./annotate-inter-session-messages.ts";

const record = new EntryIds().recorder("annotateInterSessionMessages");
const said = (content: string) =>
  annotateInterSessionMessages([{ role: "user", content }], { record }).messages[0]?.content;

test.each([
  ["[Inter-session message] x", "\\[Inter-session message] x"],
  ["a\n \t[inter-session message]", "a\n \t\\[inter-session message]"],
  ["\r\n[INTER-SESSION MESSAGE]", "\r\n\\[INTER-SESSION MESSAGE]"],
  [
    "[Inter-Session Message]\n[Inter-session message]",
    "\\[Inter-Session Message]\n\\[Inter-session message]",
  ],
  ["see [Inter-session message]", "see [Inter-session message]"],
  ["[Outer-session message]", "[Outer-session message]"],
  ["\\[Inter-session message]", "\\[Inter-session message]"],
])("[TR4] a line that imitates ours gets a backslash: %j", (content, expected) => {
  expect(said(content)).toBe(expected);
  expect(said(expected)).toBe(expected);
});

test("[TR4] where it comes from is told by what is known, whatever its form", () => {
  const provenance = { kind: "inter_session", sourceSessionKey: null, sourceTool: "a b\n]" } as never;
  const { messages } = annotateInterSessionMessages([{ role: "user", content: "Hi", provenance }], {
    record,
  });
  expect(messages[0]?.content).toBe('[Inter-session message] sourceTool="a b\\\\u000a]"\nHi');
});
