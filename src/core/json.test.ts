import fc from "fast-check";
import { expect, test } from "vitest";
import { stringifyDeep, stringifyJson } from "./json.ts";

test("[ST22] the JSON writer for deep values gives the same text for any value", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(stringifyDeep(value)).toBe(JSON.stringify(value));
    }),
  );
  expect(stringifyDeep({ a: undefined, b: [1] })).toBe('{"b":[1]}');
});

test("[ENT4] writes a value nested 200,000 levels deep", () => {
  const text = `${'{"a":['.repeat(100_000)}${"]}".repeat(100_000)}`;
  expect(stringifyDeep(JSON.parse(text))).toBe(text);
  expect(stringifyJson(JSON.parse(text))).toBe(text);
});
