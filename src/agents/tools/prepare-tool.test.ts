import fc from "fast-check";
import Type from "typebox";
import { describe, expect, test, vi } from "vitest";
import * as z from "zod";
import type { ToolCallContext } from "../contract.ts";
import type { StandardSchema, ToolParameters } from "./define-tool.ts";
import { defineTool } from "./define-tool.ts";
import { prepareTool, toolOutput } from "./prepare-tool.ts";

const good = { name: "weather", description: "Tells the weather.", execute: (args: unknown) => args };
const prepared = (parameters: ToolParameters) => prepareTool(defineTool({ ...good, parameters }));

const call: ToolCallContext = {
  about: { runId: "r", userId: "ann", agentId: "main", sessionKey: "main", sessionId: "s", cwd: "/work" },
  toolCallId: "call_1",
  entryId: "e",
  signal: new AbortController().signal,
  state: {},
  whileWaiting: async (_, wait) => ({ entered: true, value: await wait() }),
};

const byTypeBox = Type.Object(
  {
    city: Type.String(),
    days: Type.Number({ default: 3 }),
    unit: Type.Optional(Type.Union([Type.Literal("C"), Type.Literal("F")])),
    stops: Type.Optional(Type.Array(Type.Object({ at: Type.Integer() }))),
  },
  { additionalProperties: false },
);
const byZod = z.object({ city: z.string(), days: z.number().default(3) });

describe("the schema for the model", () => {
  test("TypeBox, zod and no parameters all give JSON Schema of an object", async () => {
    expect((await prepared(byTypeBox)).inputSchema).toEqual(JSON.parse(JSON.stringify(byTypeBox)));
    expect((await prepared(byZod)).inputSchema).toEqual({
      type: "object",
      properties: { city: { type: "string" }, days: { type: "number", default: 3 } },
      required: ["city"],
    });
    expect((await prepareTool(defineTool(good))).inputSchema).toEqual({
      type: "object",
      properties: {},
      additionalProperties: false,
    });
  });

  test("converts a zod schema that does not convert itself", async () => {
    const { validate } = byZod["~standard"];
    const older = Object.create(byZod, {
      "~standard": { value: { version: 1, vendor: "zod", validate } },
    }) as typeof byZod;
    const { inputSchema } = await prepared(older);
    expect(inputSchema).toMatchObject({ type: "object", required: ["city"] });
    expect(inputSchema).not.toHaveProperty("$schema");
  });

  const standard = (rest: object): StandardSchema => ({
    "~standard": { version: 1, vendor: "own", validate: (value) => ({ value }), ...rest },
  });
  test.each([
    ["cannot be converted", standard({})],
    ["is a string", z.string() as never],
    ["contains what JSON Schema cannot express", z.object({ at: z.date() })],
    [
      "throws when it is converted",
      standard({
        jsonSchema: {
          input: () => {
            throw new Error("no");
          },
        },
      }),
    ],
  ])("refuses a schema that %s", async (_, parameters) => {
    await expect(prepared(parameters)).rejects.toMatchObject({
      code: "invalid_arguments",
      message: expect.stringContaining('"weather"'),
    });
  });
});

describe("the arguments", () => {
  test.each([
    ["TypeBox", byTypeBox],
    ["zod", byZod],
  ])("[TOL4] %s: fills in defaults and leaves the input unchanged", async (_, parameters) => {
    const given = Object.freeze({ city: "Kyoto" });
    expect(await (await prepared(parameters)).check(given)).toEqual({ args: { city: "Kyoto", days: 3 } });
  });

  test.each([
    [{}, "city: is required, got nothing"],
    [{ city: "K", days: "3" }, 'days: must be number, got "3"'],
    [{ city: "K", unit: "K" }, 'unit: must be one of "C", "F", got "K"'],
    [{ city: "K", stops: [{ at: 1 }, { at: 1.5 }] }, "stops.1.at: must be integer, got 1.5"],
    [{ city: "K", town: "\u001b[2J" }, 'town: is not known, got "\\u001b[2J"'],
  ])("[TOL4] TypeBox: %j", async (args, problem) => {
    expect(await (await prepared(byTypeBox)).check(args)).toEqual({ problem });
  });

  test("[TOL4] zod reports the expected value in its own words", async () => {
    expect(await (await prepared(byZod)).check({ city: 5 })).toEqual({
      problem: "city: Invalid input: expected string, received number, got 5",
    });
  });

  test("[TOL4] at most five mistakes are reported, and long values are cut", async () => {
    const names = ["a", "b", "c", "d", "e", "f", "g"];
    const many = Type.Object(Object.fromEntries(names.map((name) => [name, Type.String()])));
    expect(await (await prepared(many)).check({})).toEqual({
      problem: `${["a", "b", "c", "d", "e"].map((name) => `${name}: is required, got nothing`).join("\n")}\nand 2 more`,
    });
    const long = await (await prepared(byTypeBox)).check({ city: "K", days: "9".repeat(5000) });
    expect("problem" in long && long.problem.length).toBeLessThan(120);
  });

  test("[TOL4] a tool without parameters accepts none; a schema that throws is a mistake", async () => {
    const none = await prepareTool(defineTool(good));
    expect(await none.check({})).toEqual({ args: {} });
    expect(await none.check({ city: "K" })).toEqual({ problem: 'city: is not known, got "K"' });
    const throwing = await prepared({
      "~standard": {
        version: 1,
        vendor: "own",
        validate: () => Promise.reject(new Error("broken")),
        jsonSchema: { input: () => ({ type: "object" }) },
      },
    } as StandardSchema);
    expect(await throwing.check({})).toEqual({ problem: "The arguments could not be checked: broken" });
  });
});

describe("the call", () => {
  test("execute gets the arguments and the session it is called for", async () => {
    const execute = vi.fn(() => "sunny");
    const tool = await prepareTool(defineTool({ ...good, execute, groups: ["sky", "group:net"] }));
    expect(tool.groups).toEqual(["group:sky", "group:net"]);
    expect(await tool.execute({ city: "Kyoto" }, call)).toEqual({
      content: [{ type: "text", text: "sunny" }],
    });
    const { about, signal, toolCallId } = call;
    expect(execute).toHaveBeenCalledWith(
      { city: "Kyoto" },
      { ...about, namespace: null, store: null, attachments: null, state: {}, signal, toolCallId },
    );
  });

  test("an error is passed on to the caller", async () => {
    const execute = () => {
      throw new Error("no network");
    };
    await expect((await prepareTool(defineTool({ ...good, execute }))).execute({}, call)).rejects.toThrow(
      "no network",
    );
  });

  test.each([
    [true, { city: "Kyoto" }, true],
    [false, { city: "Kyoto" }, false],
    [({ days }: { days: number }) => days > 2, { city: "Kyoto" }, true],
    [async ({ days }: { days: number }) => days > 2, { city: "Kyoto", days: 1 }, false],
    [() => false, { city: 1 }, true],
    [() => Promise.reject(new Error("down")), { city: "Kyoto" }, true],
  ])("approval %s of %j", async (approval, args, asked) => {
    const tool = await prepareTool(defineTool({ ...good, parameters: byZod, approval }));
    expect(await tool.needsApproval(args)).toBe(asked);
  });
});

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
    ["content that is not blocks", { content: "a" }, text('{"content":"a"}')],
    ["unknown blocks", { content: [{ type: "video" }] }, text('{"content":[{"type":"video"}]}')],
  ])("%s", (_, returned, output) => {
    expect(toolOutput(returned)).toEqual(output);
  });

  test("blocks keep their metadata", () => {
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
      "circular details",
      { content: [{ type: "text", text: "x" }], details: circular },
      "details cannot be stored as JSON",
    ],
    ["itself", circular, "contains itself"],
    ["a stream", stream(), "a stream"],
    [
      "a getter that throws",
      {
        toJSON: () => {
          throw new Error("not today");
        },
      },
      "not today",
    ],
  ])("a result that contains %s is a failed result that says so", (_, returned, problem) => {
    const output = toolOutput(returned);
    expect(output).toMatchObject({ isError: true, content: [{ text: expect.stringContaining(problem) }] });
  });

  test("JSON arrives unchanged", () => {
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
