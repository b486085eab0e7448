import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { clientInfo } from "./names.ts";

test("the client info has the name and version of the package", () => {
  const { name, version } = JSON.parse(readFileSync("package.json", "utf8")) as Record<string, string>;
  expect(clientInfo).toEqual({ name, version });
});
