import fc from "fast-check";
import { expect, test } from "vitest";
import { matchesGlob } from "./glob.ts";

test.each([
  ["", "", true],
  ["", "a", false],
  ["*", "", true],
  ["?", "", false],
  ["*", "anything at all", true],
  ["read", "read", true],
  ["read", "Read", false],
  ["read", "reader", false],
  ["read_*", "read_file", true],
  ["*_file", "read_file", true],
  ["*file", "filefile", true],
  ["a*b*c", "a-b-b-c", true],
  ["a*b*c", "a-c-b", false],
  ["r??d", "read", true],
  ["r?d", "read", false],
  ["?", "😀", true],
  ["**", "a", true],
  ["[a-z]+", "b", false],
  ["a.b", "axb", false],
  ["*?", "", false],
])("the glob %j on %j: %j", (pattern, name, fits) => {
  expect(matchesGlob(pattern, name)).toBe(fits);
});

test("a glob matches what the equivalent regular expression matches", () => {
  const letters = (all: string) => fc.string({ unit: fc.constantFrom(...all), maxLength: 8 });
  fc.assert(
    fc.property(letters("ab*?"), letters("ab"), (pattern, name) => {
      const same = pattern.replaceAll("*", ".*").replaceAll("?", ".");
      expect(matchesGlob(pattern, name)).toBe(new RegExp(`^${same}$`, "s").test(name));
    }),
  );
});

test("a pattern that provokes backtracking is harmless", () => {
  expect(matchesGlob(`${"*a".repeat(200)}b`, "a".repeat(100_000))).toBe(false);
});
