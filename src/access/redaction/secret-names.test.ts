import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { keyKind, keyKindBefore } from "./secret-names.ts";

describe("the kind of a name", () => {
  test.each([
    ["password", "password"],
    ["DB_PASS", "password"],
    ["on.the.first.pass", null],
    ["OPENAI_API_KEY", "secret"],
    ["apiKey", "secret"],
    ["SOME_KEY", "secret"],
    ["someKey", null],
    ["SESSION_KEY", null],
    ["secret_key_base", "secret"],
    ["database", null],
    ["X-Auth-Token", "secret"],
    ["pageToken", null],
    ["maxTokens", null],
    ["auth", "secret"],
    ["proxy-auth", "authorization"],
    ["user_auth", null],
    ["Proxy-Authorization", "authorization"],
    ["Cookie", "cookie"],
    ["Set-Cookie", "setCookie"],
    ["broken", null],
    ["ey", null],
    ["", null],
  ])("%s is %s", (name, kind) => {
    expect(keyKind(name)).toBe(kind);
  });

  const part = fc.constantFrom(
    ..."password pass Pass secret token Token key Key KEY api API auth Auth base session page cookie Set _ - . 1 x é".split(
      " ",
    ),
  );
  const name = fc.array(part, { minLength: 1, maxLength: 6 }).map((parts) => parts.join(""));

  test("does not depend on the case of separated words", () => {
    fc.assert(
      fc.property(name, (given) => {
        const words = given.replace(/([a-z0-9])([A-Z])/g, "$1-$2").toLowerCase();
        if (!/^[A-Z0-9_]+$/.test(given)) expect(keyKind(given)).toBe(keyKind(words));
      }),
    );
  });

  test("is the same for a name in a text, with quotes and spaces", () => {
    const around = fc.constantFrom(
      ['"', '"'],
      ["'", "' "],
      ["", "    "],
      ['["', '"]'],
      ['\\"', '\\"'],
      ["", ""],
    );
    fc.assert(
      fc.property(
        name.filter((given) => !given.includes("é")),
        around,
        (given, [before, after]) => {
          const text = `, ${before}${given}${after}=`;
          const units = Uint16Array.from(text, (char) => char.charCodeAt(0));
          expect(keyKindBefore(units, text.length - 1, 0)).toBe(keyKind(given));
        },
      ),
    );
  });
});
