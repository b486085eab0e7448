import { textLike } from "../settings/kinds.ts";
import type { Setting, Table } from "../settings/setting.ts";

const name = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Variables of the environment of a program that is started. Their values are secrets. */
export function environment(about: string, aboutOne: string): Table<Setting<string>> {
  return {
    node: "table",
    about,
    keyName: "<variable>",
    keyExpected: "the name of a variable: letters, digits and underscore",
    keySchema: { pattern: name.source, not: { const: "__proto__" } },
    readKey: (written) => (name.test(written) && written !== "__proto__" ? written : null),
    of: {
      node: "setting",
      about: aboutOne,
      kind: textLike("^[^\\u0000]*$", "text"),
      secret: true,
    },
    fallbackKeys: [],
    keepsCase: true,
  };
}
