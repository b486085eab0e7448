import { Value } from "typebox/value";
import { describe, expect, test } from "vitest";
import type { ErrorCode } from "../core/errors.ts";
import { errorCatalogue, SkeinError } from "../core/errors.ts";
import { invalidRequest, WireErrorSchema, wiredErrors, wireErrorOf, wireErrors } from "./errors.ts";

const codes = Object.keys(errorCatalogue) as ErrorCode[];
const secret = "/srv/private/place";
const everything = new Proxy({}, { get: () => secret }) as never;
const reader = (isAdmin: boolean) => ({ isAdmin, newErrorId: () => "e-1" });

describe("errors on the wire", () => {
  test("every code of the catalogue is mapped to an existing code", () => {
    expect(Object.keys(wiredErrors).toSorted()).toEqual(codes.toSorted());
    for (const { code } of Object.values(wiredErrors)) expect(wireErrors[code].status).toBeGreaterThan(399);
  });

  test.each(codes)("%s matches the schema for every reader", (code) => {
    for (const isAdmin of [true, false]) {
      const wired = wireErrorOf(new SkeinError(code, everything), reader(isAdmin));
      expect(Value.Check(WireErrorSchema, wired)).toBe(true);
      expect(wired.code).toBe(wiredErrors[code].code);
    }
  });

  test.each(["locked", "write_failed", "unreadable_file", "invalid_config", "model_auth"] as const)(
    "%s shows file paths only to admins",
    (code) => {
      const error = new SkeinError(code, everything);
      expect(wireErrorOf(error, reader(true)).message).toContain(secret);
      expect(JSON.stringify(wireErrorOf(error, reader(false)))).not.toContain(secret);
    },
  );

  test("the remedy is the end of the message, and is withheld with it", () => {
    for (const code of codes) {
      const error = new SkeinError(code, everything);
      for (const isAdmin of [true, false]) {
        const { message, remedy } = wireErrorOf(error, reader(isAdmin));
        expect(remedy).toBe(message === error.message ? error.remedy : undefined);
        expect(message.endsWith(remedy ?? "")).toBe(true);
      }
    }
  });

  test("an unexpected error shows only an ID", () => {
    for (const error of [new Error(secret), secret, null, new SkeinError("internal", { problem: secret })]) {
      const wired = wireErrorOf(error, reader(true));
      expect(wired).toMatchObject({ code: "internal", details: { errorId: "e-1" } });
      expect(JSON.stringify(wired)).not.toContain(secret);
    }
  });

  test("[WLK4] an invalid request lists every path", () => {
    const problems = [
      { path: "limit", problem: "must be integer" },
      { path: "x", problem: "is not a known field" },
    ];
    expect(invalidRequest(problems)).toMatchObject({ code: "invalid_request", details: { problems } });
    expect(invalidRequest(problems).message).toContain("limit must be integer, and 1 more");
  });
});
