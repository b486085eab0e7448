import { text } from "../settings/kinds.ts";
import type { Setting, Table } from "../settings/setting.ts";

const header: Setting<string> = {
  node: "setting",
  about: "A header that goes with every request; never shown.",
  kind: text,
  secret: true,
};

export const headers: Table<typeof header> = {
  node: "table",
  about: "Headers that go with every request.",
  keyName: "<header>",
  keyExpected: "the name of a header",
  keySchema: { pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$", not: { const: "__proto__" } },
  readKey: (name) => (/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/.test(name) && name !== "__proto__" ? name : null),
  of: header,
  fallbackKeys: [],
};
