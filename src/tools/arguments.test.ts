import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { findProblems } from "../core/check-schema.ts";
import * as s from "../core/schema.ts";
import type { ReadableTool } from "./run-session-tool.ts";
import { readArguments } from "./run-session-tool.ts";
import { ToolInputError } from "./session-tool.ts";

const parameters = s.object({
  task: s.string({ maxLength: 20 }),
  limit: s.optional(s.integer({ minimum: 1, maximum: 200 })),
  since: s.optional(s.number()),
  mode: s.optional(s.choice(["run", "session"])),
  role: s.optional(s.union([s.literal("user"), s.literal("assistant")])),
  kinds: s.optional(s.array(s.string(), { minItems: 1, maxItems: 3 })),
  thread: s.optional(s.boolean()),
  note: s.optional(s.string({ keep: true, minLength: 1 })),
  runTimeoutSeconds: s.optional(s.integer({ minimum: 0 })),
  attachments: s.optional(
    s.array(
      s.object({
        name: s.string(),
        content: s.string({ keep: true }),
        encoding: s.optional(s.choice(["utf8", "base64"])),
      }),
      { maxItems: 2 },
    ),
  ),
  target: s.optional(s.union([s.string(), s.array(s.string())])),
  extra: s.optional(s.object({})),
});

const channel = 'tool does not support "channel". Use something else.';

const tool: ReadableTool = {
  name: "tool",
  parameters,
  aliases: { prompt: "task", timeoutSeconds: "runTimeoutSeconds", timeout: "runTimeoutSeconds" },
  exclusiveAliases: ["prompt"],
  refusedNames: { channel },
};

const task = "go";
const read = (args: unknown) => readArguments(tool, args);

function mistakeOf(args: unknown): { path: string; message: string; code: string } {
  try {
    return { path: "none", message: JSON.stringify(read(args)), code: "none" };
  } catch (error) {
    if (!(error instanceof ToolInputError)) throw error;
    return { path: error.path, message: error.message, code: error.code };
  }
}

describe("arguments", () => {
  test.each([
    ["floored", { limit: 7.9 }, { limit: 7 }],
    ["clamped from above", { limit: 1e9 }, { limit: 200 }],
    ["clamped from below", { limit: -4 }, { limit: 1 }],
    ["floored without limits", { since: -0.5 }, { since: -1 }],
  ])("a number is %s", (_, given, expected) => {
    expect(read({ task, ...given })).toEqual({ task, ...expected });
  });

  test.each([["5"], [Number.NaN], [Number.POSITIVE_INFINITY], [true], [[1]], [{}]])(
    "%o is not a number",
    (limit) => {
      expect(mistakeOf({ task, limit })).toMatchObject({ path: "limit", code: "invalid_arguments" });
    },
  );

  test.each([
    ["trimmed", { task: "  go \n" }, { task }],
    ["absent when blank", { task, target: " \t" }, { task }],
    ["absent when null", { task, limit: null, kinds: null, extra: null }, { task }],
    ["unchanged if the schema says so", { task, note: "  a \n" }, { task, note: "  a \n" }],
    ["absent when blank if it must not be empty", { task, note: "  " }, { task }],
    ["trimmed in lists, without blank ones", { task, kinds: [" a ", " ", "b"] }, { task, kinds: ["a", "b"] }],
    ["counted in whole characters", { task: "😀".repeat(20) }, { task: "😀".repeat(20) }],
    ["accepted in each of its forms", { task, target: [" a"] }, { task, target: ["a"] }],
  ])("a text is %s", (_, given, expected) => {
    expect(read(given)).toEqual(expected);
  });

  test("the empty content of a file is kept", () => {
    const attachments = [{ name: " a.txt ", content: "", encoding: null }];
    expect(read({ task, attachments })).toEqual({ task, attachments: [{ name: "a.txt", content: "" }] });
  });

  test.each([
    ["a long text", { task: "x".repeat(21) }, "task", "at most 20 characters"],
    ["a value that is not text", { task: 5 }, "task", "task must be a string, got 5"],
    ["an unknown enum value", { task, mode: "rum" }, "mode", 'one of "run", "session", got "rum"'],
    ["an unknown literal", { task, role: "system" }, "role", 'one of "user", "assistant", got "system"'],
    ["no truth", { task, thread: "yes" }, "thread", 'true or false, got "yes"'],
    ["no list", { task, kinds: "main" }, "kinds", 'kinds must be a list, got "main"'],
    ["too many", { task, kinds: ["a", "b", "c", "d"] }, "kinds", "at most 3 items, got 4"],
    ["too few", { task, kinds: [" "] }, "kinds", "at least 1 items, got 0"],
    ["a wrong item", { task, kinds: ["a", 5] }, "kinds.1", "kinds.1 must be a string"],
    ["a gap", { task, kinds: ["a", null] }, "kinds.1", "kinds.1 must be set"],
    ["none of its forms", { task, target: 5 }, "target", "does not match any of the allowed formats, got 5"],
    [
      "a value that is not an object",
      { task, attachments: ["a"] },
      "attachments.0",
      'must be an object, got "a"',
    ],
    [
      "a missing field",
      { task, attachments: [{ name: "a", content: "" }, { content: "" }] },
      "attachments.1.name",
      "attachments.1.name is required",
    ],
    [
      "a wrong enum value deep inside",
      { task, attachments: [{ name: "a", content: "", encoding: "hex" }] },
      "attachments.0.encoding",
      '"base64", got "hex"',
    ],
    [
      "an unknown field deep inside",
      { task, attachments: [{ name: "a", content: "", mime: "x" }] },
      "attachments.0.mime",
      "the parameters are name, content, encoding",
    ],
  ])("[TOL4] %s is refused with its path", (_, given, path, message) => {
    const mistake = mistakeOf(given);
    expect(mistake.path).toBe(path);
    expect(mistake.message).toContain(message);
  });

  test("[TOL4] an enum value in other capitals is accepted", () => {
    expect(read({ task, mode: " Run ", role: "USER" })).toEqual({ task, mode: "run", role: "user" });
    expect(read({ task, mode: " " })).toEqual({ task });
  });

  test("[TOL4] required fields are named, including absent ones", () => {
    expect(mistakeOf({})).toEqual({ path: "task", message: "task is required", code: "invalid_arguments" });
    expect(mistakeOf({ task: "  " }).message).toBe("task is required");
    expect(mistakeOf(null).message).toBe("task is required");
    expect(mistakeOf(undefined).message).toBe("task is required");
  });

  test.each([["text"], [5], [[1]], [true]])(
    "[TOL4] refuses arguments that are not an object: %o",
    (given) => {
      expect(mistakeOf(given)).toMatchObject({ path: "" });
      expect(mistakeOf(given).message).toContain("The arguments for tool must be an object");
    },
  );

  test("an unknown name is refused with the known names and a suggestion", () => {
    const { path, message } = mistakeOf({ task, limti: 5 });
    expect(path).toBe("limti");
    expect(message).toContain(
      'Unknown parameter "limti" (did you mean limit?): the parameters are task, limit, since',
    );
    expect(message).toContain("prompt");
    expect(mistakeOf({ task, whatever: null }).path).toBe("whatever");
    expect(read({ task, whatever: undefined })).toEqual({ task });
  });

  test.each([["__proto__"], ["constructor"], ["toString"], ["hasOwnProperty"]])(
    "%s is an ordinary name",
    (name) => {
      const given = JSON.parse(`{"task": "go", ${JSON.stringify(name)}: {"limit": 5}}`) as unknown;
      expect(mistakeOf(given).path).toBe(name);
    },
  );

  test("a name that the tool refuses has the tool's own text, before all others", () => {
    expect(mistakeOf({ nonsense: 1, channel: "a" })).toMatchObject({ path: "channel", message: channel });
  });

  test("an alias stands for its name; the first in order wins", () => {
    expect(read({ prompt: " go " })).toEqual({ task });
    expect(read({ task, timeout: 1, timeoutSeconds: 2 })).toEqual({ task, runTimeoutSeconds: 2 });
    expect(read({ task, timeout: 1, timeoutSeconds: 2, runTimeoutSeconds: 3 })).toEqual({
      task,
      runTimeoutSeconds: 3,
    });
    expect(read({ task, runTimeoutSeconds: null, timeoutSeconds: "", timeout: 1 })).toEqual({
      task,
      runTimeoutSeconds: 1,
    });
  });

  test("an alias that excludes its name is refused together with it, unless one of them is blank", () => {
    expect(mistakeOf({ task, prompt: "go" })).toMatchObject({
      path: "prompt",
      message: "tool accepts either task or prompt, not both",
    });
    expect(read({ task: " ", prompt: "go" })).toEqual({ task });
    expect(read({ task, prompt: null })).toEqual({ task });
  });

  test("a mistake is reported under the name that was used", () => {
    expect(mistakeOf({ task, timeout: "soon" })).toMatchObject({
      path: "timeout",
      message: 'timeout must be a number, got "soon"',
    });
  });
});

describe("arguments of any kind", () => {
  const names = [...Object.keys(parameters.properties), "prompt", "timeout", "timeoutSeconds"];
  const near = fc.oneof(
    fc.record(
      {
        task: fc.string({ minLength: 1, maxLength: 20 }),
        limit: fc.double({ noNaN: true, noDefaultInfinity: true }),
        since: fc.float({ noNaN: true }),
        mode: fc.constantFrom("run", " SESSION", "x"),
        kinds: fc.array(fc.string(), { maxLength: 4 }),
        note: fc.string(),
        attachments: fc.array(fc.record({ name: fc.string({ minLength: 1 }), content: fc.string() }), {
          maxLength: 3,
        }),
        target: fc.oneof(fc.string(), fc.array(fc.string())),
        prompt: fc.constantFrom("", "  ", "go"),
        timeout: fc.double({ noNaN: true }),
      },
      { requiredKeys: ["task"] },
    ),
    fc.dictionary(fc.constantFrom(...names), fc.anything()),
    fc.anything(),
  );

  test("throw only a ToolInputError, match the schema once parsed, and parse the same again", () => {
    let taken = 0;
    fc.assert(
      fc.property(near, (given) => {
        let args: Record<string, unknown>;
        try {
          args = read(given);
        } catch (error) {
          if (error instanceof ToolInputError) return;
          throw error;
        }
        taken += 1;
        expect(findProblems(parameters, args, 5)).toEqual([]);
        expect(read(args)).toEqual(args);
      }),
    );
    expect(taken).toBeGreaterThan(5);
  });

  test("an object whose properties cannot be read is refused", () => {
    const hostile = {
      get task(): string {
        throw new Error("no");
      },
    };
    expect(mistakeOf(hostile).message).toBe("The arguments cannot be read");
    expect(mistakeOf({ task, attachments: [hostile] }).message).toBe("The arguments cannot be read");
    expect(
      mistakeOf({
        task,
        extra: new Proxy(
          {},
          {
            ownKeys: () => {
              throw new Error("no");
            },
          },
        ),
      }).message,
    ).toBe("The arguments cannot be read");
  });
});
