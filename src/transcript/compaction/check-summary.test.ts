import { describe, expect, test } from "vitest";
import { checkSummary, describeProblems, hasMostSections, isComplete, sections } from "./check-summary.ts";
import { maxSummaryCharacters } from "./limits.ts";

const good = sections.map(({ heading }) => `## ${heading}\nSomething.`).join("\n\n");
const options = { summaryTokens: 16_000, ask: null };

describe("checking a summary", () => {
  test.each<[string, string, object]>([
    [
      "a complete summary",
      good,
      { missing: [], empty: [], isTooLong: false, isBlank: false, lacksAsk: false },
    ],
    [
      "headings as models write them",
      good.replaceAll(/^## (.*)$/gm, "# **$1:**"),
      { missing: [], empty: [] },
    ],
    ["numbered headings, lower case", good.replace("## Goal", "### 1. goal"), { missing: [] }],
    [
      "a missing section",
      good.replace("## Constraints", "Constraints"),
      { missing: ["constraints"], empty: [] },
    ],
    [
      "an empty section",
      good.replace("## Goal\nSomething.", "## Goal\n \n"),
      { empty: ["goal"], missing: [] },
    ],
    ["nothing", " \n ", { isBlank: true }],
    ["too many characters", `${good}${"x".repeat(maxSummaryCharacters)}`, { isTooLong: true }],
    [
      "too many tokens, but few characters",
      `${good}${"京".repeat(15_000)}${"都".repeat(800)}`,
      { isTooLong: true },
    ],
  ])("%s", (_, text, expected) => {
    expect(checkSummary(text, { ...options, summaryTokens: 6000 })).toMatchObject(expected);
  });

  test.each<[string, string, string, boolean]>([
    [
      "in other words",
      "please rename getUserName to fetchUserName everywhere",
      "Rename getUserName to fetchUserName",
      false,
    ],
    [
      "not at all",
      "please rename getUserName to fetchUserName everywhere",
      "Talked about the weather in Kyoto",
      true,
    ],
    ["in Chinese", "请把京都的行程改成三天", "用户要把京都的行程改为三天", false],
    ["not at all, in Chinese", "请把京都的行程改成三天", "讨论了天气与午饭", true],
    ["a request with hardly any words", "ok!", "Talked about the weather", false],
  ])("the latest request is mentioned: %s", (_, ask, text, lacksAsk) => {
    expect(checkSummary(`${good}\n${text}`, { ...options, ask }).lacksAsk).toBe(lacksAsk);
  });

  test("grades a summary as fine, good enough or neither", () => {
    const check = (text: string) => checkSummary(text, options);
    const without = (count: number) =>
      sections
        .slice(count)
        .map(({ heading }) => `## ${heading}\nx`)
        .join("\n");
    expect([isComplete(check(good)), isComplete(check(without(1)))]).toEqual([true, false]);
    expect([0, 1, 3, 4, 7].map((count) => hasMostSections(check(without(count))))).toEqual([
      true,
      true,
      true,
      false,
      false,
    ]);
  });

  test("problems are named", () => {
    const check = checkSummary("## Goal\n\n## Decisions\nx", {
      ...options,
      ask: "rename everything everywhere now",
    });
    const [missing, empty, ask] = describeProblems(check, 16_000);
    expect(missing).toContain(
      '"Open work", "Constraints", "Pending asks", "Exact identifiers", "Files touched"',
    );
    expect(empty).toContain('"Goal"');
    expect(ask).toContain("last request");
    expect(describeProblems(checkSummary("", options), 16_000)[0]).toContain("empty");
  });

  test("checks pathological text without slowing down", () => {
    for (const hostile of ["#".repeat(1e6), "## ".repeat(3e5), `## ${" *_".repeat(3e5)}`, "京".repeat(1e6)]) {
      expect(checkSummary(hostile, { ...options, ask: hostile }).isTooLong).toBe(true);
    }
  });
});
