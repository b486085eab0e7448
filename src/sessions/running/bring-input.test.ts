import { expect, test } from "vitest";
import { missingText } from "./bring-input.ts";

test.each<[readonly string[], readonly string[], string | null]>([
  [[], [], null],
  [["a", "b"], [], "[Skein] The time to wait is over. Still open: a, b."],
  [[], ["c"], "[Skein] Ended without a reply: c."],
  [["a"], ["c"], "[Skein] Ended without a reply: c. The time to wait is over. Still open: a."],
])("[RUN25] open %j, ended without a word %j: a woken sleeper is told %j", (open, ended, text) => {
  expect(missingText(open, ended)).toBe(text);
});
