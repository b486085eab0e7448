import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { ourselves } from "./ourselves.ts";

test("we call ourselves what the package is called", () => {
  const { name, version } = JSON.parse(readFileSync("package.json", "utf8")) as Record<string, string>;
  expect(ourselves).toEqual({ name, version });
});
