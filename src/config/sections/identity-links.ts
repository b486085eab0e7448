import { textLike } from "../settings/kinds.ts";
import type { List, Table } from "../settings/setting.ts";

const peers: List<string> = {
  node: "list",
  about: "One person's ids on channels, each as channel:peer; they share this name.",
  of: textLike("^[^:]+:.+$", "a channel and a peer, as channel:peer"),
};

const namePattern = /^[^:\s][^:]*$/;

export const identityLinks: Table<typeof peers> = {
  node: "table",
  about: "People who are known on several channels, by a name for each.",
  keyName: "<name>",
  keyExpected: "a name without colons",
  keySchema: { pattern: namePattern.source, not: { const: "__proto__" } },
  readKey: (text) => (namePattern.test(text) && text !== "__proto__" ? text : null),
  of: peers,
  fallbackKeys: [],
};
