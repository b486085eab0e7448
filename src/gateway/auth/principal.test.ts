import { describe, expect, test } from "vitest";
import type { Rights, TokenScope } from "./principal.ts";
import { everyUser, mayCall, scopeFor, tokenScopes } from "./principal.ts";

const rights = (user: string | null, ...scopes: TokenScope[]): Rights => ({ scopes, user, expiresAt: null });

describe("what a principal may call", () => {
  test.each(tokenScopes.flatMap((has) => tokenScopes.map((needs) => [has, needs] as const)))(
    "[GSA9] a token with the scope %s at a method of %s",
    (has, needs) => {
      expect(mayCall(rights("ann", has), { scope: needs }).allowed).toBe(has === needs);
      expect(mayCall(rights("ann", ...tokenScopes), { scope: needs })).toEqual({ allowed: true });
      expect(mayCall(rights("ann"), { scope: needs }).allowed).toBe(false);
    },
  );

  test.each([
    [everyUser, true],
    ["ann", false],
    [null, false],
  ])("[GSA9] a method about all users, by a token of %s: %s", (user, allowed) => {
    const verdict = mayCall(rights(user, "admin"), { scope: "admin", needsAll: true });
    expect(verdict.allowed).toBe(allowed);
    if (!verdict.allowed) expect(verdict.problem).toContain("every user");
    expect(mayCall(rights(user, "admin"), { scope: "admin", needsAll: false }).allowed).toBe(true);
  });

  test("[GSA9] the scope is looked at first, also of a token for every user", () => {
    const verdict = mayCall(rights(everyUser, "admin"), { scope: "read", needsAll: true });
    expect(verdict).toMatchObject({ allowed: false, problem: 'This token lacks the scope "read"' });
  });
});

describe("whose sessions a call is about", () => {
  test.each<[string | null, string | null | undefined, string | null | "no"]>([
    ["ann", undefined, "ann"],
    ["ann", "ann", "ann"],
    ["ann", "bob", "no"],
    ["ann", null, "no"],
    ["ann", "", "no"],
    ["ann", everyUser, "no"],
    ["ann", "ANN", "no"],
    ["ann", "ann ", "no"],
    [null, undefined, null],
    [null, null, null],
    [null, "ann", "no"],
    [null, "", "no"],
    [null, "null", "no"],
    [null, everyUser, "no"],
    [everyUser, undefined, null],
    [everyUser, null, null],
    [everyUser, "ann", "ann"],
    [everyUser, everyUser, everyUser],
  ])("[GSA10] a token of %j, a call that names %j: %j", (user, named, expected) => {
    const scope = scopeFor(rights(user, "read"), named);
    expect(scope.allowed ? scope.userId : "no").toBe(expected);
    if (!scope.allowed) expect(scope.problem).not.toContain("ann");
  });
});
