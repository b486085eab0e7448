import { text, textLike } from "../settings/kinds.ts";
import type { Setting, Table } from "../settings/setting.ts";
import { table } from "../settings/setting.ts";

type Keys = Pick<Table, "keyName" | "keyExpected" | "keySchema" | "readKey" | "fallbackKeys">;

/** Tables have no prototype, but JavaScript still treats this name specially. */
const noProto = { not: { const: "__proto__" } };

/** Keys that match a pattern. `canBeProto` means that the pattern also matches `__proto__`, which is rejected. */
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

/** Keys that are any text. */
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
  "Headers of every request.",
  keysLike("<header>", "the name of a header", "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$", { canBeProto: true }),
  secretText("A header of every request; never shown."),
);

/** Environment variables for a program that Skein starts. Their values are secrets. */
export function environment(about: string, aboutOne: string): Table<Setting<string>> {
  const expected = "the name of a variable: letters, digits and underscore";
  const keys = keysLike("<variable>", expected, "^[A-Za-z_][A-Za-z0-9_]*$", { canBeProto: true });
  return {
    ...table(about, keys, secretText(aboutOne, textLike("^[^\\u0000]*$", "text"))),
    keepsCase: true,
  };
}
