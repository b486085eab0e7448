import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { toolOutput } from "./tool-output.ts";

const text = (value: string) => ({ content: [{ type: "text", text: value }] });
const circular: Record<string, unknown> = {};
circular.self = circular;
async function* stream() {
  yield "a";
}

describe("toolOutput", () => {
  test.each([
    ["a text", "sunny", text("sunny")],
    ["an empty text", "", text("(no output)")],
    ["nothing", undefined, text("(no output)")],
    ["null", null, text("(no output)")],
    ["no blocks", { content: [] }, text("(no output)")],
    ["a number", 0, text("0")],
    ["false", false, text("false")],
    ["an object", { a: [1, null], at: undefined }, text('{"a":[1,null]}')],
    ["blocks", { content: [{ type: "text", text: "a" }], other: 1 }, text("a")],
    ["a content that is no blocks", { content: "a" }, text('{"content":"a"}')],
    ["unknown blocks", { content: [{ type: "video" }] }, text('{"content":[{"type":"video"}]}')],
  ])("[TOL7] %s", (_, returned, output) => {
    expect(toolOutput(returned)).toEqual(output);
  });

  test("[TOL7] blocks keep what goes with them", () => {
    const content = [{ type: "image", data: "aGk=", mimeType: "image/png" }];
    expect(toolOutput({ content, isError: true, details: { ms: 3 } })).toEqual({
      content,
      isError: true,
      details: { ms: 3 },
    });
  });

  test.each([
    ["bigint", { n: 1n }, '"n" in it is of type bigint'],
    ["a function", () => 1, "it is of type function"],
    ["a function inside", { a: { run: () => 1 } }, '"run" in it is of type function'],
    ["a symbol", [Symbol("s")], "of type symbol"],
    ["a Map", { map: new Map([[1, 2]]) }, "of type Map"],
    [
      "details of itself",
      { content: [{ type: "text", text: "x" }], details: circular },
      "details are no JSON",
    ],
    ["itself", circular, "contains itself"],
    ["a stream", stream(), "a stream"],
    [
      "what throws",
      {
        toJSON: () => {
          throw new Error("not today");
        },
      },
      "not today",
    ],
  ])("[TOL7] a result that holds %s is a failed one that says so", (_, returned, problem) => {
    const output = toolOutput(returned);
    expect(output).toMatchObject({ isError: true, content: [{ text: expect.stringContaining(problem) }] });
  });

  test("[TOL7] JSON arrives as it was", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const [block] = toolOutput({ value }).content;
        expect(JSON.parse(block?.type === "text" ? block.text : "")).toEqual(
          JSON.parse(JSON.stringify({ value })),
        );
      }),
    );
  });
});
