import { text, textLike } from "../settings/kinds.ts";
import type { Setting, Table } from "../settings/setting.ts";
import { table } from "../settings/setting.ts";

type Keys = Pick<Table, "keyName" | "keyExpected" | "keySchema" | "readKey" | "fallbackKeys">;

/** In JavaScript, this name refers to an object's prototype. */
const noProto = { not: { const: "__proto__" } };

/** Keys that match a pattern. `__proto__` is always rejected. Set `canBeProto` if the pattern matches it. */
export function keysLike(
  keyName: string,
  keyExpected: string,
  pattern: string,
  { canBeProto = false } = {},
): Keys {
  const expression = new RegExp(pattern);
  return {
    keyName,
    keyExpected,
    keySchema: { pattern, ...(canBeProto ? noProto : {}) },
    readKey: (key) => (expression.test(key) && key !== "__proto__" ? key : null),
    fallbackKeys: [],
  };
}

/** Arbitrary keys, except `__proto__`. */
export function anyName(keyName: string, keyExpected: string): Keys {
  return {
    keyName,
    keyExpected,
    keySchema: { minLength: 1, ...noProto },
    readKey: (key) => (key === "" || key === "__proto__" ? null : key),
    fallbackKeys: [],
  };
}

const secretText = (about: string, kind = text): Setting<string> => ({
  node: "setting",
  about,
  kind,
  secret: true,
});

export const headers = table(
  "Headers sent with every request.",
  keysLike("<header>", "a header name", "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$", { canBeProto: true }),
  secretText("A header sent with every request. Its value is never shown."),
);

/** Environment variables for a program that Skein starts. Their values are secrets. */
export function environment(about: string, aboutOne: string): Table<Setting<string>> {
  const expected = "a variable name: letters, digits and underscores";
  const keys = keysLike("<variable>", expected, "^[A-Za-z_][A-Za-z0-9_]*$", { canBeProto: true });
  return {
    ...table(about, keys, secretText(aboutOne, textLike("^[^\\u0000]*$", "text"))),
    keepsCase: true,
  };
}
