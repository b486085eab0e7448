import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SkeinError } from "../../core/errors.ts";
import type { RequestedRights, Rights, TokenScope } from "./principal.ts";
import { everyUser, grantRights, mayCall, scopeFor, tokenScopes } from "./principal.ts";

const rights = (user: string | null, ...scopes: TokenScope[]): Rights => ({ scopes, user, expiresAt: null });

describe("the scopes of a principal", () => {
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
    if (!verdict.allowed) expect(verdict.problem).toContain("all users");
    expect(mayCall(rights(user, "admin"), { scope: "admin", needsAll: false }).allowed).toBe(true);
  });

  test("[GSA9] the scope is checked first, also of a token for every user", () => {
    const verdict = mayCall(rights(everyUser, "admin"), { scope: "read", needsAll: true });
    expect(verdict).toMatchObject({ allowed: false, problem: 'This token lacks the "read" scope' });
  });
});

describe("the user of a call", () => {
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

const now = 1000;
const users = [null, "ann", "bob", everyUser];
const scopes = fc.subarray([...tokenScopes]);
const user = fc.constantFrom(...users);
const end = fc.option(fc.integer({ min: now - 1, max: now + 3 }));
const anyRights: fc.Arbitrary<Rights> = fc.record({ scopes, user, expiresAt: end });
const anyAsked: fc.Arbitrary<RequestedRights> = fc
  .record({ scopes, user, expiresAt: fc.option(end, { nil: undefined }) })
  .map(({ expiresAt, ...rest }) => (expiresAt === undefined ? rest : { ...rest, expiresAt }));

/** Enumerates everything that these rights allow, in the simplest possible form. */
function powersOf(rights: Rights): Set<string> {
  const powers = new Set<string>();
  for (let at = now; at < now + 5; at++) {
    if (rights.expiresAt !== null && at >= rights.expiresAt) continue;
    for (const scope of tokenScopes)
      for (const needsAll of [true, false])
        for (const named of ["ann", "bob", null]) {
          if (!mayCall(rights, { scope, needsAll }).allowed) continue;
          const whose = scopeFor(rights, named);
          if (whose.allowed) powers.add(`${at} ${scope} ${needsAll} ${whose.userId}`);
        }
  }
  // A token without an expiry outlives every token that has one.
  if (rights.expiresAt === null) powers.add("for ever");
  return powers;
}

function granted(asked: RequestedRights, own: Rights | null): Rights | string {
  try {
    return grantRights(asked, own, now);
  } catch (error) {
    if (error instanceof SkeinError) return error.code;
    throw error;
  }
}

describe("creating a token", () => {
  test("[GSA3] a token never grants more than it has", () => {
    fc.assert(
      fc.property(anyAsked, anyRights, (asked, own) => {
        const made = granted(asked, own);
        if (typeof made === "string") return;
        const mine = powersOf(own);
        expect([...powersOf(made)].filter((power) => !mine.has(power))).toEqual([]);
      }),
    );
  });

  test("[GSA3] a forbidden request would have exceeded the token's rights", () => {
    fc.assert(
      fc.property(anyAsked, anyRights, (asked, own) => {
        fc.pre(own.expiresAt === null || own.expiresAt > now);
        if (granted(asked, own) !== "forbidden") return;
        const mine = powersOf(own);
        const wanted = powersOf({ ...asked, expiresAt: asked.expiresAt ?? null });
        expect([...wanted].some((power) => !mine.has(power))).toBe(true);
      }),
    );
  });

  test("[GSA3] a chain of tokens only loses rights", () => {
    fc.assert(
      fc.property(anyRights, fc.array(anyAsked, { maxLength: 5 }), (first, chain) => {
        let last = first;
        for (const asked of chain) {
          const made = granted(asked, last);
          if (typeof made !== "string") last = made;
        }
        const before = powersOf(first);
        expect([...powersOf(last)].every((power) => before.has(power))).toBe(true);
      }),
    );
  });

  test("[GSA3] an omitted expiry is that of the creator", () => {
    const own: Rights = { scopes: ["read", "write"], user: "ann", expiresAt: now + 9 };
    expect(grantRights({ scopes: ["read"], user: "ann" }, own, now).expiresAt).toBe(now + 9);
    expect(grantRights({ scopes: ["read"], user: "ann" }, null, now).expiresAt).toBe(null);
    expect(granted({ scopes: ["read"], user: "ann", expiresAt: null }, own)).toBe("forbidden");
    expect(granted({ scopes: ["read"], user: "ann", expiresAt: now + 10 }, own)).toBe("forbidden");
  });

  test.each<[string, RequestedRights, string]>([
    ["no scope", { scopes: [], user: null }, "invalid_arguments"],
    ["an unknown scope", { scopes: ["root" as TokenScope], user: null }, "invalid_arguments"],
    ["every user without admin", { scopes: ["read"], user: everyUser }, "invalid_arguments"],
    ["an expiry in the past", { scopes: ["read"], user: null, expiresAt: now }, "invalid_arguments"],
    [
      "an expiry that is not a number",
      { scopes: ["read"], user: null, expiresAt: Number.NaN },
      "invalid_arguments",
    ],
    ["a user with an empty ID", { scopes: ["read"], user: "" }, "invalid_user_id"],
    ["half a character", { scopes: ["read"], user: "\ud800" }, "invalid_user_id"],
  ])("[GSA3] %s is refused for every caller", (_, asked, code) => {
    expect(granted(asked, null)).toBe(code);
    expect(granted(asked, { scopes: [...tokenScopes], user: everyUser, expiresAt: null })).toBe(code);
  });

  test("[GSA3] scopes are stored once, in their order", () => {
    const { scopes } = grantRights({ scopes: ["write", "read", "write"], user: null }, null, now);
    expect(scopes).toEqual(["read", "write"]);
  });
});
