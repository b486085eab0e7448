import type { Table } from "../settings/setting.ts";

/** How a name of the user's own is read: any text. Tables inherit nothing, but `__proto__` is no name in JavaScript. */
export const anyName: Pick<Table, "keySchema" | "readKey" | "fallbackKeys"> = {
  keySchema: { minLength: 1, not: { const: "__proto__" } },
  readKey: (text) => (text === "" || text === "__proto__" ? null : text),
  fallbackKeys: [],
};
