import { describe, expect, test } from "vitest";
import { textTokens } from "../text-tokens.ts";
import { sections } from "./check-summary.ts";
import type { PromptParts } from "./prompts.ts";
import { summarizerSystem, summaryPrompt } from "./prompts.ts";

const parts: PromptParts = {
  conversation: "[User]: Hello",
  summary: null,
  order: "newer",
  splitTurn: false,
  mostCharacters: 16_000,
};

describe("instructions for a summarizer", () => {
  test("forbid continuing the conversation, and give its language and every heading in order", () => {
    expect(summarizerSystem).toMatch(/do not continue the conversation/);
    expect(summarizerSystem).toMatch(/language of the conversation/);
    const prompt = summaryPrompt(parts);
    const places = sections.map(({ heading }) => prompt.indexOf(`\n## ${heading}\n`));
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    expect(Math.min(...places)).toBeGreaterThan(prompt.indexOf("</conversation>"));
    expect(prompt).toContain("16000 characters");
  });

  test("ask to update the previous summary, or to add to a later one", () => {
    const newer = summaryPrompt({ ...parts, summary: "So far." });
    expect(newer).toContain("<previous-summary>\nSo far.\n</previous-summary>");
    expect(newer).toContain("Update them");
    const older = summaryPrompt({ ...parts, summary: "Since then.", order: "older" });
    expect(older).toContain("<later-summary>\nSince then.\n</later-summary>");
    expect(older).toContain("came after this conversation");
    expect(summaryPrompt(parts)).not.toMatch(/-summary>/);
  });

  test("mention a split turn, files, the focus and earlier problems", () => {
    expect(summaryPrompt({ ...parts, splitTurn: true })).toContain("in the middle of a turn");
    const files = { readFiles: ["a.ts"], modifiedFiles: ["b.ts"] };
    expect(summaryPrompt({ ...parts, files })).toContain(
      "<known-files>\nchanged b.ts\nread a.ts\n</known-files>",
    );
    expect(summaryPrompt({ ...parts, instructions: "the tests" })).toContain("<focus>\nthe tests\n</focus>");
    expect(summaryPrompt({ ...parts, problems: ["It was empty."] })).toContain("It was empty.");
  });

  test("[XRW10] apart from the conversation and notes, a request is small, whatever its instructions", () => {
    const long = "京都".repeat(50_000);
    const files = {
      readFiles: Array.from({ length: 500 }, (_, index) => `${index}${long.slice(0, 900)}`),
      modifiedFiles: [long],
    };
    const prompt = summaryPrompt({ ...parts, conversation: "", files, instructions: long, splitTurn: true });
    expect(textTokens(prompt) + textTokens(summarizerSystem)).toBeLessThan(1500);
  });
});
