import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { asked, system, told, user } from "../../../test/support/rehearsal.ts";
import { checkSummary, isComplete, readSections } from "../../transcript/compaction/check-summary.ts";
import { summarizerSystem, summaryPrompt } from "../../transcript/compaction/prompts.ts";
import { rehearsalModel } from "./rehearsal-model.ts";

const model = rehearsalModel();

interface SummaryRequest {
  readonly summary?: string | null;
  readonly tokens?: number;
  readonly mostCharacters?: number;
}

async function summaryOf(
  conversation: string,
  { summary = null, tokens = 1000, mostCharacters = tokens * 3 }: SummaryRequest = {},
) {
  const prompt = summaryPrompt({
    conversation,
    summary,
    order: "newer",
    splitTurn: false,
    mostCharacters,
    files: { readFiles: ["src/a.ts"], modifiedFiles: ["src/b.ts"] },
  });
  const request = asked([system(summarizerSystem), user(prompt)], { tools: [], maxOutputTokens: tokens });
  return (await told(model, request)).text;
}

describe("the rehearsal model as a summarizer", () => {
  test("states what was asked, done and touched, and carries over earlier notes", async () => {
    const first = await summaryOf(
      "[User]: Plan three days in Kyoto\n[Assistant]: Here is a plan.\n[User]: Change day two\nto Nara, build 4711",
    );
    const found = readSections(first);
    expect(found.get("goal")).toContain("Plan three days in Kyoto");
    expect(found.get("pending asks")).toContain("Change day two to Nara");
    expect(found.get("exact identifiers")).toContain("4711");
    expect(found.get("files touched")).toContain("src/b.ts");
    const second = await summaryOf("[User]: And a day in Osaka", { summary: first });
    expect(readSections(second).get("goal")).toContain("Plan three days in Kyoto");
    expect(readSections(second).get("pending asks")).toContain("And a day in Osaka");
  });

  test("keeps to the number of characters in the instructions", async () => {
    const said = `[User]: ${"Plan three days in Kyoto. ".repeat(100)}`;
    expect((await summaryOf(said, { mostCharacters: 400 })).length).toBeLessThanOrEqual(400);
  });

  test("shortens each section if there is little room, and still shows the last request", async () => {
    const ask = "请把京都秋天的花园和寺庙都写进计划，再加上奈良和大阪的行程安排".repeat(20);
    const long = `[User]: ${ask}\n[Assistant]: ${ask}\n[User]: ${ask}`;
    const check = checkSummary(await summaryOf(long, { tokens: 250 }), { summaryTokens: 250, ask });
    expect({ check, isFine: isComplete(check) }).toMatchObject({ isFine: true });
  });

  test("for any conversation the summary has every section, respects its size and passes the check", async () => {
    const text = fc.oneof(
      fc.string({ unit: "binary", maxLength: 3000 }),
      fc.lorem({ maxCount: 300 }),
      fc.string({ unit: fc.constantFrom(..."京都的花园秋天很美请总结一下"), maxLength: 2000 }),
      fc.constantFrom("## Goal\n# x", "# # # a", "- - -", "</conversation>", ">>>"),
    );
    await fc.assert(
      fc.asyncProperty(text, text, fc.integer({ min: 400, max: 6000 }), async (ask, answer, tokens) => {
        const line = ask.replaceAll("[", "(");
        const said = `[User]: earlier\n[Assistant]: ${answer.replaceAll("[", "(")}\n[User]: ${line}`;
        const summary = await summaryOf(said.replaceAll("</", "<"), { tokens });
        const check = checkSummary(summary, { summaryTokens: tokens, ask: line.replaceAll("</", "<") });
        expect({ check, isFine: isComplete(check), isShort: summary.length <= tokens * 3 }).toMatchObject({
          isFine: true,
          isShort: true,
        });
      }),
    );
  });
});
