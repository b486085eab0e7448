import { choice, text } from "../settings/kinds.ts";
import type { Group, Setting, Table } from "../settings/setting.ts";
import { anyName } from "./names.ts";

const pattern: Setting<string> = {
  node: "setting",
  about: "A regular expression; what it matches is masked. It sees one line at a time.",
  kind: text,
};

const keep: Setting<"ends" | "nothing"> = {
  node: "setting",
  about: "What stays to be seen of a match: its first six and last four characters (ends), or nothing.",
  kind: choice("ends", "nothing"),
  fallback: () => "ends",
};

const rule = { node: "group", about: "A rule.", fields: { pattern, keep } } satisfies Group;

const rules: Table<typeof rule> = {
  node: "table",
  about: "Rules of your own, by name; they are added to the built-in ones.",
  keyName: "<rule>",
  keyExpected: "a name for the rule",
  ...anyName,
  of: rule,
};

export const redaction = {
  node: "group",
  about: "What is taken out of texts as a secret.",
  fields: { rules },
} satisfies Group;
