import fc from "fast-check";
import { Check } from "typebox/schema";
import { describe, expect, test } from "vitest";
import { findProblems, fits } from "./check-schema.ts";
import * as s from "./schema.ts";

const leaf: fc.Arbitrary<s.Schema> = fc.constantFrom(
  s.string(),
  s.string({ minLength: 1, maxLength: 2 }),
  s.string({ pattern: "^[ab]+$" }),
  s.number({ exclusiveMinimum: 0, maximum: 1 }),
  s.integer({ minimum: 0 }),
  s.boolean(),
  s.literal("a"),
  s.choice(["a", "b"]),
  s.unknown(),
  s.record(s.unknown(), { maxProperties: 1 }),
);
const { schema: anySchema } = fc.letrec<{ schema: s.Schema }>((tie) => ({
  schema: fc.oneof(
    { depthSize: "small", maxDepth: 3 },
    leaf,
    tie("schema").map((each) => s.array(each, { minItems: 1, maxItems: 2, uniqueItems: true })),
    tie("schema").map((each) => s.record(each)),
    tie("schema").map((each) => s.nullable(each)),
    fc.tuple(tie("schema"), tie("schema")).map((each) => s.union(each)),
    fc.tuple(tie("schema"), tie("schema")).map(([a, b]) => s.object({ a, b: s.optional(b) })),
    fc.tuple(tie("schema"), tie("schema")).map(([a, b]) => s.closed({ a, b: s.optional(b) })),
    fc
      .tuple(tie("schema"), tie("schema"))
      .map(([a, b]) =>
        s.closed(
          { a: s.optional(a), b: s.optional(b) },
          { oneOf: [{ required: ["a"] }, { required: ["b"] }] },
        ),
      ),
    tie("schema").map((b) => s.openUnion("a", [s.object({ a: s.literal("a"), b })])),
  ),
}));

const anyLeaf = fc.constantFrom<unknown>("", "a", "ab", "abc", "😀😀", "c", 0, 0.5, 1, -1, true, null);
const { value: anyValue } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", maxDepth: 3 },
    anyLeaf,
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom("a", "b", "c"), tie("value"), { maxKeys: 3, noNullPrototype: true }),
  ),
}));

describe("checking a value", () => {
  test("agrees with another JSON Schema validator", () => {
    fc.assert(
      fc.property(anySchema, anyValue, (schema, value) => {
        const isFit = Check({ ...schema }, value);
        expect(fits(schema, value)).toBe(isFit);
        expect(findProblems(schema, value, 20).length > 0).toBe(!isFit);
      }),
      { numRuns: 1000 },
    );
  });

  test("[ENT6] lists missing, unknown and wrong properties with their paths", () => {
    const schema = s.closed({ list: s.array(s.object({ a: s.string() })), b: s.integer(), c: s.string() });
    const value = { list: [{ a: "" }, { a: 1 }, {}], b: 0.5, zz: 1 };
    const found = findProblems(schema, value, 20).map(({ path, keyword }) => [path.join("."), keyword]);
    expect(found).toEqual([
      ["c", "required"],
      ["zz", "unknown"],
      ["list.1.a", "type"],
      ["list.2.a", "required"],
      ["b", "type"],
    ]);
    expect(findProblems(schema, value, 2)).toHaveLength(2);
  });

  test("does not read the items of a list that is too long", () => {
    const list = Array.from({ length: 3 }, () => "a");
    Object.defineProperty(list, 0, {
      get: () => {
        throw new Error("read");
      },
    });
    const [problem] = findProblems(s.array(s.string(), { maxItems: 2 }), list, 20);
    expect(problem?.keyword).toBe("maxItems");
  });
});
