import { describe, expect, test } from "vitest";
import {
  assistant,
  contextOf,
  result,
  summary,
  textOfTokens,
  user,
} from "../../../test/support/conversation.ts";
import type { ContextMessage } from "../../core/context.ts";
import { textTokens } from "../text-tokens.ts";
import { sections } from "./check-summary.ts";
import type { CutPlan } from "./plan-cut.ts";
import { planCut } from "./plan-cut.ts";
import type { SummaryOptions } from "./summarize.ts";
import { makeSummary } from "./summarize.ts";
import type { SummaryRequest } from "./summarize-piece.ts";

const contextWindow = 16_000;
const notes = (text: string, from = 0) =>
  sections
    .slice(from)
    .map(({ heading }) => `## ${heading}\n${text}`)
    .join("\n\n");

function planOf(messages: readonly ContextMessage[], cut: string | null = null): CutPlan {
  const plan = planCut(contextOf(messages, cut), { contextWindow });
  if ("nothing" in plan) throw new Error(plan.nothing);
  return plan;
}

/** Returns the answers in order, and then keeps repeating the last one. Records the requests. */
function fake(...answers: readonly (string | (() => Promise<string>))[]) {
  const requests: SummaryRequest[] = [];
  const summarize = async (request: SummaryRequest) => {
    requests.push(request);
    const answer = answers[Math.min(requests.length, answers.length) - 1] ?? "";
    return typeof answer === "string" ? answer : answer();
  };
  return { requests, summarize };
}

const safeguard = { mode: "safeguard", contextWindow } as const;
const small = planOf([
  user("older ask"),
  assistant(`done ${textOfTokens(500)}`),
  user(textOfTokens(6200)),
  assistant("yes"),
]);
const run = (plan: CutPlan, given: Partial<SummaryOptions> & Pick<SummaryOptions, "summarize">) =>
  makeSummary(plan, { ...safeguard, ...given });

describe("making a summary", () => {
  test("requests a good one once", async () => {
    const { requests, summarize } = fake(notes("older ask done"));
    const made = await run(small, { summarize });
    expect(made).toMatchObject({ text: notes("older ask done"), chunks: 1, retried: false, missing: [] });
    expect(requests).toHaveLength(1);
    expect(requests[0]?.prompt).toContain("[User]: older ask\n\n[Assistant]: done");
    expect(requests[0]?.maxTokens).toBe(3200);
    expect(made).toMatchObject({ usage: { requests: 1, output: textTokens(notes("older ask done")) } });
  });

  test("requests missing parts once more, by name", async () => {
    const { requests, summarize } = fake(notes("x", 2), notes("x"));
    expect(await run(small, { summarize })).toMatchObject({ retried: true, missing: [], text: notes("x") });
    expect(requests).toHaveLength(2);
    expect(requests[1]?.prompt).toContain('"Goal", "Decisions"');
  });

  test.each<[string, string, string | (() => Promise<string>), object]>([
    ["the better one counts", notes("x", 1), notes("x", 3), { text: notes("x", 1), missing: ["goal"] }],
    [
      "the second fails",
      notes("x", 1),
      () => Promise.reject(new Error("no")),
      { text: notes("x", 1), retried: true },
    ],
    [
      "most sections are enough",
      notes("x", 3),
      notes("x", 3),
      { missing: ["goal", "decisions", "openWork"] },
    ],
    ["garbage twice", "asdf", "qwer", { failure: "poor" }],
    ["empty twice", "", " \n", { failure: "empty" }],
    ["too long twice", notes("x".repeat(5000)), notes("x".repeat(5000)), { failure: "too_long" }],
    ["too long, then good", notes("x".repeat(5000)), notes("x"), { text: notes("x"), retried: true }],
    ["empty, then good", "", notes("x"), { text: notes("x"), retried: true }],
  ])("at the second attempt: %s", async (_, first, second, expected) => {
    const { requests, summarize } = fake(first, second);
    expect(await run(small, { summarize })).toMatchObject(expected);
    expect(requests).toHaveLength(2);
  });

  test("default mode accepts any shape that is not empty or too long", async () => {
    const made = (answer: string) => run(small, { ...fake(answer), mode: "default" });
    expect(await made("Just words.")).toMatchObject({ text: "Just words.", retried: false });
    expect(await made("")).toMatchObject({ failure: "empty" });
    expect(await made("x".repeat(16_001))).toMatchObject({ failure: "too_long" });
  });

  test.each<[string, () => Promise<string>, object]>([
    [
      "fails",
      () => Promise.reject(new Error("no\nmodel")),
      { failure: "failed", note: "the summarizer failed: no\\u000amodel" },
    ],
    [
      "throws at once",
      () => {
        throw "odd";
      },
      { failure: "failed", note: "the summarizer failed: odd" },
    ],
    ["answers something else", () => Promise.resolve(7 as unknown as string), { failure: "empty" }],
  ])("[CMP11] a summarizer that %s fails with its own code", async (_, answer, expected) => {
    const { summarize } = fake(answer);
    expect(await run(small, { summarize, mode: "default" })).toMatchObject(expected);
  });

  test("[CMP11] a summarizer that hangs is abandoned on abort, and its late failure is harmless", async () => {
    const abort = new AbortController();
    const late = Promise.withResolvers<string>();
    const asked = Promise.withResolvers<void>();
    const summarize = () => {
      asked.resolve();
      return late.promise;
    };
    const making = run(small, { summarize, signal: abort.signal });
    await asked.promise;
    abort.abort();
    expect(await making).toMatchObject({ failure: "aborted" });
    late.reject(new Error("too late"));
    expect(await run(small, { summarize, signal: abort.signal })).toMatchObject({ failure: "aborted" });
    const timeout = AbortSignal.timeout(1);
    expect(
      await run(small, { summarize: () => new Promise(() => undefined), signal: timeout }),
    ).toMatchObject({
      failure: "timed_out",
    });
  });

  test("[CMP11] a range that no model sees needs no summary", async () => {
    const hidden = { role: "bashExecution", command: "x", output: "y", excludeFromContext: true } as const;
    const plan: CutPlan = { ...small, toSummarize: [hidden] };
    const { requests, summarize } = fake(notes("x"));
    expect(await run(plan, { summarize })).toMatchObject({ failure: "nothing_said" });
    expect(requests).toEqual([]);
  });

  test("includes the previous summary to be updated", async () => {
    const plan = planOf([
      summary("Once upon a time."),
      user("a"),
      assistant(textOfTokens(500)),
      user(textOfTokens(6200)),
      assistant("c"),
    ]);
    const { requests, summarize } = fake(notes("x"));
    await run(plan, { summarize });
    expect(requests[0]?.prompt).toContain("<previous-summary>\nOnce upon a time.\n</previous-summary>");
  });
});

const numbered = (count: number, tokens: number) =>
  Array.from({ length: count }, (_, index) => user(`n${index}n ${textOfTokens(tokens)} m${index}m`));
const sizeOf = ({ system, prompt }: SummaryRequest) => textTokens(system) + textTokens(prompt);

describe("a range that is too large for one request", () => {
  test("[XRW10] is processed in pieces, each updating the notes, and no request exceeds half the window", async () => {
    const { requests, summarize } = fake(notes("first word"), notes("second word"), notes("third word"));
    const made = await run(planOf(numbered(40, 500)), { summarize });
    expect(made).toMatchObject({ text: notes("third word"), chunks: requests.length });
    expect(requests.length).toBeGreaterThan(2);
    expect(Math.max(...requests.map(sizeOf))).toBeLessThanOrEqual(contextWindow * 0.5);
    expect(requests[1]?.prompt).toContain(`<previous-summary>\n${notes("first word")}\n</previous-summary>`);
    expect(requests[2]?.prompt).toContain(`<previous-summary>\n${notes("second word")}\n</previous-summary>`);
    const order = [
      ...requests
        .map(({ prompt }) => prompt)
        .join("")
        .matchAll(/n(\d+)n/g),
    ].map(([, number]) => Number(number));
    expect(order).toEqual(order.map((_, index) => index));
  });

  test("[XRW10] a message larger than a piece keeps its head and tail", async () => {
    const { requests, summarize } = fake(notes("x"));
    await run(planOf([...numbered(1, 50_000), assistant("b"), user("c"), assistant("d")]), { summarize });
    expect(requests).toHaveLength(1);
    expect(sizeOf(requests[0] as SummaryRequest)).toBeLessThanOrEqual(contextWindow * 0.5);
    for (const mark of ["n0n", "m0m", "characters left out"]) expect(requests[0]?.prompt).toContain(mark);
  });

  test("[CMP11] a failure in any piece fails the whole summary", async () => {
    const { summarize } = fake(notes("x"), () => Promise.reject(new Error("no")));
    expect(await run(planOf(numbered(40, 500)), { summarize })).toMatchObject({ failure: "failed" });
  });

  test("[CMP19] messages beyond the budget are read backwards, the previous summary last", async () => {
    const older = numbered(60, 300);
    async function* pages(): AsyncGenerator<readonly ContextMessage[]> {
      for (let end = older.length; end > 0; end -= 7) yield older.slice(Math.max(0, end - 7), end);
    }
    const plan = planOf(
      [
        summary("The very first."),
        ...numbered(30, 300).map((_, index) => user(`r${index}r ${textOfTokens(300)}`)),
      ],
      "e1",
    );
    const { requests, summarize } = fake(notes("one word"), notes("two word"));
    const made = await run(plan, { summarize, older: pages() });
    expect(made).toMatchObject({ chunks: requests.length, text: notes("two word") });
    expect(made).toHaveProperty("olderTokens", expect.closeTo(60 * 300, -4));
    const prompts = requests.map(({ prompt }) => prompt);
    for (const { content } of [...older]) expect(prompts.join("")).toContain(content);
    expect(prompts[0]).toContain("r0r");
    expect(prompts[0]).not.toContain("-summary>");
    expect(prompts[1]).toContain(`<later-summary>\n${notes("one word")}\n</later-summary>`);
    expect(prompts.findIndex((prompt) => prompt.includes("n59n"))).toBeLessThan(
      prompts.findIndex((prompt) => prompt.includes("n0n")),
    );
    expect(prompts.at(-1)).toContain("[Summary of what came before]: The very first.");
    expect(Math.max(...requests.map(sizeOf))).toBeLessThanOrEqual(contextWindow * 0.5);
  });

  test("[CMP16] quotes a request that is only in the older pages, not the previous summary's", async () => {
    const groups = (from: number, count: number) =>
      Array.from({ length: count }, (_, index) => [
        assistant("", `c${from + index}`),
        result(`c${from + index}`, textOfTokens(1000)),
      ]).flat();
    async function* pages(): AsyncGenerator<readonly ContextMessage[]> {
      yield groups(0, 2);
      yield [assistant("done"), user("The new one."), ...groups(10, 2)];
      yield [user("In between.")];
    }
    const before = "## Goal\nx\n\n## The request under way\n> The old one.";
    const plan = planOf([summary(before), ...groups(20, 12)], "e1");
    const made = await run(plan, { ...fake(notes("x")), older: pages() });
    expect(made).toMatchObject({ text: `${notes("x")}\n\n## The request under way\n> The new one.` });
  });

  test("[CMP16] a turn that is cut in two keeps its request word for word", async () => {
    const groups = Array.from({ length: 12 }, (_, index) => [
      assistant("", `c${index}`),
      result(`c${index}`, textOfTokens(1000)),
    ]);
    const plan = planOf([user("Find the leak in the cellar."), ...groups.flat()]);
    expect(plan.splitTurn).toBe(true);
    const { requests, summarize } = fake(notes("leak in the cellar"));
    const made = await run(plan, { summarize });
    expect(made).toMatchObject({
      text: `${notes("leak in the cellar")}\n\n## The request under way\n> Find the leak in the cellar.`,
    });
    expect(requests.at(-1)?.prompt).toContain("in the middle of a turn");
  });
});
