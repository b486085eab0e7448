import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { Method, Scope } from "./method.ts";
import { methodNames, methodTable } from "./method-table.ts";

const page = readFileSync(new URL("../../docs/gateway-api.md", import.meta.url), "utf8");

/** These optional fields are documented once for all methods that accept them. */
const ofAll = ["userId", "agentId"];

interface ParamsSchema {
  readonly properties: Readonly<Record<string, unknown>>;
  readonly required?: readonly string[];
}

function rowOf(name: string, { about, params, adminOnly = [] }: Method): string {
  const { properties, required = [] } = params as unknown as ParamsSchema;
  const takes = Object.keys(properties)
    .filter((field) => required.includes(field) || !ofAll.includes(field))
    .map((field) => `${field}${required.includes(field) ? "" : "?"}${adminOnly.includes(field) ? "!" : ""}`);
  return `| \`${name}\` | ${about} | ${takes.map((field) => `\`${field}\``).join(" ")} |`.replace(
    / {2}/,
    " ",
  );
}

/** Returns the rows under a heading, up to the next one. */
function rowsUnder(heading: string): readonly string[] {
  const [, behind = ""] = page.split(`\n${heading}\n`);
  const [part = ""] = behind.split(/\n#+ /);
  return part.split("\n").filter((line) => line.startsWith("| `"));
}

describe("the documentation of the gateway's methods", () => {
  test.each<Scope>(["read", "write", "tools", "admin"])(
    "lists each method with its description and params: %s",
    (scope) => {
      const names = methodNames.filter((name) => methodTable[name].scope === scope);
      expect(rowsUnder(`### Scope \`${scope}\``)).toEqual(
        names.map((name) => rowOf(name, methodTable[name])),
      );
    },
  );
});
