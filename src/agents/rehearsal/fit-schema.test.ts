import type { JSONObject, JSONSchema7 } from "@ai-sdk/provider";
import fc from "fast-check";
import { Check } from "typebox/schema";
import { describe, expect, test } from "vitest";
import { asked, told } from "../../../test/support/rehearsal.ts";
import { fitSchema } from "./fit-schema.ts";
import { rehearsalModel } from "./rehearsal-model.ts";

const bounded = (type: "number" | "integer") =>
  fc
    .tuple(fc.integer({ min: -50, max: 50 }), fc.integer({ min: 1, max: 60 }), fc.integer({ min: 0, max: 8 }))
    .map(
      ([low, width, which]): JSONObject => ({
        type,
        ...(which & 1 ? { minimum: low } : {}),
        ...(which & 2 ? { maximum: low + width } : {}),
        ...(which & 4 && type === "number" ? { exclusiveMinimum: low } : {}),
      }),
    );

/** Schemas of every kind that at least one value matches. */
const { schema } = fc.letrec<{ schema: JSONObject }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 3, depthSize: "small" },
    fc.constantFrom<JSONObject>(
      { type: "boolean" },
      { type: "null" },
      { const: 7 },
      { type: ["string", "null"] },
    ),
    fc
      .uniqueArray(fc.oneof(fc.string(), fc.integer()), { minLength: 1, maxLength: 4 })
      .map((values) => ({ enum: values })),
    fc
      .tuple(fc.nat(20), fc.nat(20))
      .map(([least, more]) => ({ type: "string", minLength: least, maxLength: least + more })),
    fc.integer({ min: 1, max: 9 }).map((step) => ({ type: "integer", multipleOf: step, minimum: 1 })),
    bounded("number"),
    bounded("integer"),
    fc.tuple(tie("schema"), fc.nat(3)).map(([items, minItems]) => ({ type: "array", items, minItems })),
    fc.nat(5).map((minItems) => ({ type: "array", items: { type: "integer" }, minItems, uniqueItems: true })),
    fc.array(tie("schema"), { minLength: 1, maxLength: 3 }).map((anyOf) => ({ anyOf })),
    fc
      .tuple(fc.dictionary(fc.constantFrom("a", "b", "c", "d"), tie("schema")), fc.nat(2))
      .map(([properties, skip]) => ({
        type: "object",
        properties,
        required: Object.keys(properties).slice(skip),
        additionalProperties: false,
      })),
  ),
}));

describe("a value for a schema", () => {
  test("matches, and is always the same", () => {
    fc.assert(
      fc.property(schema, (each) => {
        const value = fitSchema(each);
        expect({ value, fits: Check(each, value) }).toEqual({ value, fits: true });
        expect(JSON.stringify(fitSchema(structuredClone(each)))).toBe(JSON.stringify(value));
      }),
    );
  });

  test.each([
    [{ $ref: "#/$defs/day", $defs: { day: { type: "string", format: "date" } } }, "2026-01-01"],
    [
      {
        allOf: [
          { type: "object", properties: { a: { const: 1 } }, required: ["a"] },
          { properties: { b: { const: 2 } }, required: ["b"] },
        ],
      },
      { a: 1, b: 2 },
    ],
    [
      { type: "object", minProperties: 2, additionalProperties: { type: "integer" } },
      { field1: 0, field2: 0 },
    ],
    [{ type: "array", prefixItems: [{ const: "x" }, { const: "y" }], minItems: 2 }, ["x", "y"]],
    [{ type: "integer", minimum: -9, maximum: -3 }, -3],
    [{ type: "number", exclusiveMinimum: 0, exclusiveMaximum: 1 }, 0.5],
    [{ $ref: "#" }, null],
    [{ type: "object", properties: { __proto__: { const: 1 } }, required: ["toString"] }, { toString: null }],
    [null, null],
  ])("%j", (given, expected) => {
    expect(fitSchema(given)).toEqual(expected);
  });

  test("a default is used unchanged", () => {
    const days = { type: "integer", minimum: 1, default: 3 };
    expect(fitSchema({ type: "object", properties: { days }, required: ["days"] })).toEqual({ days: 3 });
  });

  test("gives up on an endlessly recursive schema", () => {
    const endless = { type: "object", properties: { next: { $ref: "#" } }, required: ["next"] };
    expect(JSON.stringify(fitSchema(endless)).length).toBeLessThan(1000);
  });

  test("an answer that must be JSON is JSON, also after tool calls", async () => {
    const wanted: JSONSchema7 = {
      type: "object",
      properties: { days: { type: "integer", minimum: 1 } },
      required: ["days"],
    };
    const model = rehearsalModel();
    const json = { type: "json" as const };
    const { text } = await told(model, asked("Plan Kyoto", { responseFormat: { ...json, schema: wanted } }));
    expect(JSON.parse(text)).toEqual({ days: 1 });
    expect(JSON.parse((await told(model, asked("repeat 1, 2", { responseFormat: json }))).text)).toEqual({
      answer: "1, 2",
    });
    const first = await told(model, asked("status", { responseFormat: { ...json, schema: wanted } }));
    expect(first.calls).toMatchObject([{ name: "session_status" }]);
  });
});
