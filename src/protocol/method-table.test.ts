import fc from "fast-check";
import { Value } from "typebox/value";
import { describe, expect, test } from "vitest";
import { anyOfSchema, openPlaces, unlimitedPlaces } from "../../test/support/schemas.ts";
import { checkParams } from "./check-params.ts";
import type { Method } from "./method.ts";
import { findMethod, methodNames, methodsFor, methodTable } from "./method-table.ts";

const rows = methodNames.map((name): [string, Method] => [name, methodTable[name]]);

/** Objects that other programs write, and the arguments and results of tools, can have additional fields. */
const openResults = [/messages\[\]$/, /provenance$/, /entries\[\]$/, /tools\[\]$/, /arguments$/];

describe("the method table", () => {
  test.each(rows)("the params of %s are closed, and everything in them has a limit", (_, { params }) => {
    expect(openPlaces(params).filter((place) => place !== "arguments")).toEqual([]);
    expect(unlimitedPlaces(params)).toEqual([]);
  });

  test.each(rows)("the result of %s is closed except for foreign content", (_, { result }) => {
    expect(openPlaces(result).filter((place) => !openResults.some((each) => each.test(place)))).toEqual([]);
  });

  test.each(rows)("a valid %s survives the wire", (_, { params, result }) => {
    fc.assert(
      fc.property(anyOfSchema(params), anyOfSchema(result), (given, answer) => {
        const checked = checkParams(params, JSON.parse(JSON.stringify(given)));
        expect(checked).toEqual({ params: expect.objectContaining(given as object) });
        expect(Value.Check(result, JSON.parse(JSON.stringify(answer)))).toBe(true);
      }),
      { numRuns: 15 },
    );
  });

  test.each(rows)("[WLK4] %s refuses unknown fields and garbage", (_, { params }) => {
    for (const garbage of [5, "x", [], true]) expect(checkParams(params, garbage)).toHaveProperty("problems");
    const checked = checkParams(params, { nonsense: 1 });
    expect("problems" in checked && checked.problems).toContainEqual({
      path: "nonsense",
      problem: "is not a known field",
    });
  });

  test("[GSA9] a token may call the methods of its scopes, and those about all users only if it is for all users", () => {
    const admin = methodsFor({ scopes: ["admin"], allUsers: false });
    expect(admin).toContain("sessions.delete");
    expect(admin).not.toContain("sessions.list");
    const forAll = methodsFor({ scopes: ["admin"], allUsers: true }).filter((name) => !admin.includes(name));
    expect(forAll).toEqual([
      "tokens.create",
      "tokens.list",
      "tokens.revoke",
      "maintenance.run",
      "config.get",
      "config.reload",
      "users.list",
      "users.remove",
    ]);
    expect(findMethod("constructor")).toBeNull();
  });
});
