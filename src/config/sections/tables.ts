import { text, textLike } from "../settings/kinds.ts";
import type { Setting, Table } from "../settings/setting.ts";

type Keys = Pick<Table, "keySchema" | "readKey" | "fallbackKeys">;

/** Tables inherit nothing, but JavaScript treats this name specially. */
export const noProto = { not: { const: "__proto__" } };

/** Keys of a form. */
export function keysLike(pattern: string, more: Keys["keySchema"] = {}): Keys {
  const expression = new RegExp(pattern);
  return {
    keySchema: { pattern, ...more },
    readKey: (key) => (expression.test(key) && key !== "__proto__" ? key : null),
    fallbackKeys: [],
  };
}

/** How a name of the user's own is read: any text. */
export const anyName: Keys = {
  keySchema: { minLength: 1, ...noProto },
  readKey: (text) => (text === "" || text === "__proto__" ? null : text),
  fallbackKeys: [],
};

const header: Setting<string> = {
  node: "setting",
  about: "A header of every request; never shown.",
  kind: text,
  secret: true,
};

export const headers: Table<typeof header> = {
  node: "table",
  about: "Headers of every request.",
  keyName: "<header>",
  keyExpected: "the name of a header",
  ...keysLike("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$", noProto),
  of: header,
};

/** Variables of the environment of a program that is started. Their values are secrets. */
export function environment(about: string, aboutOne: string): Table<Setting<string>> {
  return {
    node: "table",
    about,
    keyName: "<variable>",
    keyExpected: "the name of a variable: letters, digits and underscore",
    ...keysLike("^[A-Za-z_][A-Za-z0-9_]*$", noProto),
    of: {
      node: "setting",
      about: aboutOne,
      kind: textLike("^[^\\u0000]*$", "text"),
      secret: true,
    },
    keepsCase: true,
  };
}
