import Type from "typebox";
import { describe, expect, expectTypeOf, test } from "vitest";
import * as z from "zod";
import type { ToolContext, ToolDefinition } from "../../src/index.ts";
import { defineTool, SkeinError } from "../../src/index.ts";

const execute = () => "done";
const good = { name: "weather", description: "Tells the weather.", execute };

describe("defineTool", () => {
  test("[LBR12] the arguments have the type of the parameters", () => {
    const byTypeBox = defineTool({
      ...good,
      parameters: Type.Object({ city: Type.String(), days: Type.Optional(Type.Integer()) }),
      execute: (args, context) => {
        expectTypeOf(args).toEqualTypeOf<{ city: string; days?: number }>();
        expectTypeOf(context).toEqualTypeOf<ToolContext>();
        return args.city;
      },
      approval: ({ city }) => city === "Atlantis",
    });
    const byZod = defineTool({
      ...good,
      parameters: z.object({ city: z.string().default("Kyoto") }),
      execute: (args) => {
        expectTypeOf(args).toEqualTypeOf<{ city: string }>();
        return args.city;
      },
    });
    const without = defineTool({
      ...good,
      execute: (args) => {
        expectTypeOf(args).toEqualTypeOf<Readonly<Record<string, never>>>();
        return 1;
      },
    });
    const tools: readonly ToolDefinition[] = [byTypeBox, byZod, without];
    expect(tools.map(({ parameters }) => parameters === null)).toEqual([false, false, true]);
  });

  test("[LBR12] by default it is not repeated, requires no approval and is in no group; it is frozen", () => {
    const tool = defineTool(good);
    expect(tool).toMatchObject({ replay: "never", approval: "never", groups: [], parameters: null });
    expect(Object.isFrozen(tool)).toBe(true);
  });

  test.each([
    ["a value that is not an object", null, "must be an object"],
    ["no name", { ...good, name: undefined }, "name"],
    ["an empty name", { ...good, name: "" }, "name"],
    ["a name with a space", { ...good, name: "the weather" }, "name"],
    ["a name of 65 characters", { ...good, name: "a".repeat(65) }, "name"],
    ["no description", { ...good, description: undefined }, "description"],
    ["a blank description", { ...good, description: " \n" }, "description"],
    ["no function", { ...good, execute: "run" }, "execute"],
    ["parameters as a string", { ...good, parameters: "city" }, "parameters"],
    ["parameters that are null", { ...good, parameters: null }, "parameters"],
    ["a schema of a list", { ...good, parameters: Type.Array(Type.String()) }, "parameters"],
    ["a Standard Schema without validate", { ...good, parameters: { "~standard": {} } }, "parameters"],
    ["an unknown replay", { ...good, replay: "always" }, "replay"],
    ["an unknown approval", { ...good, approval: "yes" }, "approval"],
    ["groups as a string", { ...good, groups: "weather" }, "groups"],
    ["a pattern as a group", { ...good, groups: ["we*"] }, "groups"],
    ["an unknown field", { ...good, inputSchema: {} }, '"inputSchema"'],
  ])("[TOL2] refuses %s", (_, spec, word) => {
    const attempt = () => defineTool(spec as never);
    expect(attempt).toThrow(SkeinError);
    expect(attempt).toThrow(expect.objectContaining({ code: "invalid_arguments" }));
    expect(attempt).toThrow(word);
  });

  test("[TOL2] accepts names at their limits and a schema that is a function", () => {
    const callable = Object.assign(() => null, {
      "~standard": { version: 1, vendor: "arktype", validate: (value: unknown) => ({ value }) },
    } as const);
    expect(defineTool({ ...good, name: "a".repeat(64), parameters: callable }).parameters).toBe(callable);
  });
});
